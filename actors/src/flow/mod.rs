//! Flows: the actor, what it can be asked, its shards, the handle to all flows of the node, and the sweeper that looks for
//! documents that have lapsed.

mod actor;
mod handle;
mod message;
mod shard;
mod sweeper;

pub(crate) use actor::{FlowActor, FlowContext, LAPSES_AT_ONCE};
pub use handle::Flows;
pub(crate) use sweeper::FlowSweeper;
