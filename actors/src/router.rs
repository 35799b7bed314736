//! Routes each question to the shard that its id names. Refuses questions beyond the limits, and asks again when an
//! actor ended while the question waited.

use std::sync::Arc;
use std::time::Duration;

use actix::MailboxError;
use sakshi_domain::ids::coarse_time;
use sakshi_store::StoreError;
use sakshi_supervision::{Gate, Permit, ShardActor, Shards};

/// The error when a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The node is at its limit of work.
    #[error("the node is at its limit")]
    Overloaded,
    /// The actor or its shard did not answer in time, or kept failing.
    #[error("the actor did not answer")]
    NoAnswer,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reason for a shard's missing answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The actor ended before it answered; ask the record.
    Gone,
    /// An actor was started; ask it.
    Started,
    /// The question timed out.
    TimedOut,
    /// The shard is at its limit of actors.
    Full,
    /// The store failed.
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

/// Sends questions to the shards of one kind of actor, for one worker.
#[derive(Debug)]
pub(crate) struct ShardRouter<A: ShardActor> {
    pub(crate) shards: Arc<Shards<A>>,
    pub(crate) admission: Arc<Gate>,
    pub(crate) ask_timeout: Duration,
    /// Index of the worker's own shard, which serves new ids.
    pub(crate) local: usize,
}

impl<A: ShardActor> Clone for ShardRouter<A> {
    fn clone(&self) -> Self {
        Self { shards: Arc::clone(&self.shards), admission: Arc::clone(&self.admission), ..*self }
    }
}

impl<A: ShardActor> ShardRouter<A> {
    /// Returns the shard byte of a new id. The byte cycles through the values that the local shard serves, and changes
    /// every 64 ms, so that ids created at about the same time are neighbours in the store.
    pub(crate) fn new_shard_byte(&self) -> u8 {
        self.shards.shard_byte(self.local, coarse_time())
    }

    /// Admits a question to a shard. It stays admitted while the caller keeps the permits.
    ///
    /// # Errors
    /// [`AskError::Overloaded`] when the shard or the node has too many in flight.
    pub(crate) fn admit(&self, shard: usize) -> Result<[Permit; 2], AskError> {
        let shard_permit = self.shards.admit(shard).ok_or(AskError::Overloaded)?;
        let node_permit = self.admission.enter().ok_or(AskError::Overloaded)?;
        Ok([shard_permit, node_permit])
    }
}
