//! The way to the actors of a node: routes each question to the shard that its id names, refuses
//! what would be too much, and asks once more when an actor ended while the question waited.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Context, Handler, MailboxError, Message};
use sakshi_domain::ids::coarse_time;
use sakshi_store::StoreError;
use sakshi_supervision::{Gate, Shard, ShardActor, Shards};
use tracing::Instrument as _;

use crate::traced::Traced;

/// How often a question is asked when the actor ends before it answers.
const TRIES: usize = 3;

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

/// Why an actor gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It ended first; ask again.
    Gone,
    /// It took too long.
    TimedOut,
    /// The shard holds as many actors as it may.
    Full,
    /// The actor that had taken the message's contents failed.
    Lost,
}

impl From<MailboxError> for Unanswered {
    fn from(error: MailboxError) -> Self {
        match error {
            MailboxError::Closed => Self::Gone,
            MailboxError::Timeout => Self::TimedOut,
        }
    }
}

/// What a shard answers: the actor's answer, the store's error, or why there is none.
pub(crate) type Answered<T> = Result<Result<T, StoreError>, Unanswered>;

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

    /// Asks the shard that serves `id`.
    pub(crate) async fn ask<M, T>(&self, id: A::Id, message: M) -> Result<T, AskError>
    where
        M: Message<Result = Answered<T>> + Clone + Send + 'static,
        T: Send + 'static,
        Shard<A>: Actor<Context = Context<Shard<A>>> + Handler<Traced<M>>,
    {
        self.ask_with(id, |_| message.clone()).await
    }

    /// The same with a message of its own for each try, which are numbered from 0.
    pub(crate) async fn ask_with<M, T>(&self, id: A::Id, message: impl Fn(usize) -> M) -> Result<T, AskError>
    where
        M: Message<Result = Answered<T>> + Send + 'static,
        T: Send + 'static,
        Shard<A>: Actor<Context = Context<Shard<A>>> + Handler<Traced<M>>,
    {
        let span = sakshi_trace::ask::<A, M>();
        self.try_asking(id, message).instrument(span).await
    }

    async fn try_asking<M, T>(&self, id: A::Id, message: impl Fn(usize) -> M) -> Result<T, AskError>
    where
        M: Message<Result = Answered<T>> + Send + 'static,
        T: Send + 'static,
        Shard<A>: Actor<Context = Context<Shard<A>>> + Handler<Traced<M>>,
    {
        let index = self.shards.index_of(&id);
        let _of_shard = self.shards.admit(index).ok_or(AskError::Overloaded)?;
        let _of_node = self.admission.enter().ok_or(AskError::Overloaded)?;
        for attempt in 0..TRIES {
            let shard = self.shards.get(index).ok_or(AskError::NoAnswer)?;
            let answered = shard.send(Traced::new(message(attempt))).timeout(self.ask_timeout).await.map_err(Unanswered::from);
            match answered.and_then(|answered| answered) {
                Ok(answer) => return Ok(answer?),
                Err(Unanswered::Full) => return Err(AskError::Overloaded),
                Err(Unanswered::TimedOut | Unanswered::Lost) => return Err(AskError::NoAnswer),
                Err(Unanswered::Gone) => {}
            }
        }
        Err(AskError::NoAnswer)
    }
}
