//! Flows: the actor, its messages, its shards, the handle through which the use cases reach them, and the sweeper that ends
//! documents past their deadline.

mod actor;
mod handle;
mod message;
mod shard;
mod sweeper;

pub(crate) use actor::{FlowActor, FlowContext, LAPSES_AT_ONCE};
pub use handle::Flows;
pub(crate) use sweeper::FlowSweeper;
