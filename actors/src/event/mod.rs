//! Events: the actor, its messages, its shards, and the handle to all events of the node.

mod actor;
mod handle;
mod message;
mod shard;

pub(crate) use actor::{EventActor, EventContext};
pub use handle::Events;
pub use message::EventWatch;
pub(crate) use shard::notify_event;
