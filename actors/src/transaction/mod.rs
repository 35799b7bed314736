//! Transactions: the actor, its messages, its shards, the handle to all transactions of the node, and the listener for
//! transactions that other nodes have ended.

mod actor;
mod handle;
mod listener;
mod message;
mod shard;

pub(crate) use actor::{TransactionActor, TransactionContext};
pub use handle::Transactions;
pub(crate) use listener::ChangeListener;
pub use message::{Complete, CompleteReply, View};

#[cfg(test)]
pub(crate) use message::{GetTransaction, Subscribe};
