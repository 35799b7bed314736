//! The event actor and what it can be asked.

mod actor;
mod message;

pub(crate) use actor::EventActor;
pub(crate) use message::{EventQuestion, LookEvent, PatchEvent, Refresh, WatchEvent};
pub use message::{EventView, EventWatch};
