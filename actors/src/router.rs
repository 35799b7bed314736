//! The way to the actors of a node: routes each question to the shard that its id names, refuses
//! what would be too much, and asks once more when an actor ended while the question waited.

use std::sync::Arc;
use std::time::Duration;

use actix::MailboxError;
use sakshi_domain::ids::coarse_time;
use sakshi_store::StoreError;
use sakshi_supervision::{Gate, Permit, ShardActor, Shards};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The node has as much work as it may have.
    #[error("the node is at its limit")]
    Overloaded,
    /// The actor or its shard did not answer in time, or kept failing.
    #[error("the actor did not answer")]
    NoAnswer,
    /// The store has no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The reason why a shard gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The actor ended first; ask the record.
    Gone,
    /// An actor was started; ask it.
    Started,
    /// It took too long.
    TimedOut,
    /// The shard holds as many actors as it may.
    Full,
    /// The store has no answer.
    Store(StoreError),
}

impl From<MailboxError> for Unanswered {
    fn from(error: MailboxError) -> Self {
        match error {
            MailboxError::Closed => Self::Gone,
            MailboxError::Timeout => Self::TimedOut,
        }
    }
}

/// Asks the shards of one kind of actor on behalf of one worker.
#[derive(Debug)]
pub(crate) struct ShardRouter<A: ShardActor> {
    pub(crate) shards: Arc<Shards<A>>,
    pub(crate) admission: Arc<Gate>,
    pub(crate) ask_timeout: Duration,
    /// The shard that serves new ids.
    pub(crate) local: usize,
}

impl<A: ShardActor> Clone for ShardRouter<A> {
    fn clone(&self) -> Self {
        Self { shards: Arc::clone(&self.shards), admission: Arc::clone(&self.admission), ..*self }
    }
}

impl<A: ShardActor> ShardRouter<A> {
    /// The shard byte of a new id: over time each that the local shard serves, and the same one for 64 ms, so that ids made
    /// together stay neighbours in the store.
    pub(crate) fn new_shard_byte(&self) -> u8 {
        self.shards.shard_byte(self.local, coarse_time())
    }

    /// Admits a question to a shard.
    ///
    /// # Errors
    /// [`AskError::Overloaded`] when the shard or the node has too many under way.
    pub(crate) fn admit(&self, shard: usize) -> Result<[Permit; 2], AskError> {
        let of_shard = self.shards.admit(shard).ok_or(AskError::Overloaded)?;
        let of_node = self.admission.enter().ok_or(AskError::Overloaded)?;
        Ok([of_shard, of_node])
    }
}
