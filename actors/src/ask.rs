//! Questions about one record of the store. An actor may hold a live copy of it.
//!
//! A live actor answers. Without one, the shard reads the record, and starts an actor only if the answer needs one. It
//! also reads the record when an actor ended while the question waited: other actors may start and end meanwhile.

use actix::{Addr, AsyncContext as _, Handler, Message, ResponseFuture};
use sakshi_domain::time::Timestamp;
use sakshi_store::{StoreError, StoreFuture};
use sakshi_supervision::{Shard, ShardActor};
use sakshi_trace::Origin;
use tracing::Instrument as _;

use crate::router::{AskError, ShardRouter, Unanswered};

/// Attempts at a question whose actor ends, or only starts, before it answers.
const TRIES_MAX: usize = 5;

/// An actor that holds a live copy of one record until a deadline.
pub(crate) trait RecordActor: ShardActor {
    /// Type of the record.
    type Record: Send + 'static;
    /// True if a question starts an actor even when the shard is full.
    const STARTS_WHEN_FULL: bool;

    /// Reads the record that an actor may be started with.
    fn load(shared: &Self::Shared, id: Self::Id) -> StoreFuture<Option<Self::Record>>;

    /// Returns the time at which the record's actor ends at the latest.
    fn deadline(record: &Self::Record) -> Timestamp;

    /// Builds the actor for a record.
    fn from_record(record: Self::Record, shared: &Self::Shared) -> Self;
}

/// A question that can also be answered without an actor.
pub(crate) trait Question<A: RecordActor>: Clone + Send + 'static {
    /// Type of the answer.
    type Answer: Send + 'static;

    /// Returns the answer for a missing record.
    fn answer_without_record(&self) -> Self::Answer;

    /// Answers from the record. If the answer needs an actor, gives the record back.
    fn try_answer(&self, record: A::Record, _: &A::Shared) -> Result<Self::Answer, A::Record> {
        Err(record)
    }

    /// Returns an actor that can answer without reading the store, and the actor's deadline.
    fn temporary_actor(&self, _: &A::Shared) -> Option<(A, Timestamp)> {
        None
    }
}

/// A question to an actor, with the span and the request of the caller.
#[derive(Debug)]
pub(crate) struct Inquiry<Q> {
    pub(crate) question: Q,
    pub(crate) origin: Origin,
}

/// A question about one record to its shard.
#[derive(Debug)]
pub(crate) struct Ask<A: ShardActor, Q> {
    pub(crate) id: A::Id,
    pub(crate) inquiry: Inquiry<Q>,
    /// True if an actor ended without answering; the shard then answers from the record.
    pub(crate) actor_ended: bool,
}

/// Starts an actor with this record, unless one is live.
pub(crate) struct StartFrom<A: RecordActor> {
    pub(crate) id: A::Id,
    pub(crate) record: A::Record,
}

impl<A: RecordActor> Message for StartFrom<A> {
    type Result = ();
}

/// Starts an actor with a timer for its deadline.
pub(crate) fn start_until<A: ShardActor>(shard: &mut Shard<A>, id: A::Id, deadline: Timestamp, actor: A) -> Addr<A> {
    shard.wake_at(id, deadline.millis());
    shard.start_child(id, actor)
}

impl<A: RecordActor> ShardRouter<A> {
    /// Asks the actor of a record; without one, answers from the record.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer.
    pub(crate) async fn ask_about<Q>(&self, id: A::Id, question: Q) -> Result<Q::Answer, AskError>
    where
        Q: Question<A>,
        Inquiry<Q>: Message<Result = Result<Q::Answer, StoreError>>,
        A: Handler<Inquiry<Q>>,
    {
        let span = sakshi_trace::ask::<A, Q>();
        let index = self.shards.index_of(&id);
        let ask = async {
            let _permits = self.admit(index)?;
            let mut actor_ended = false;
            for _ in 0..TRIES_MAX {
                let shard = self.shards.get(index).ok_or(AskError::NoAnswer)?;
                let inquiry = Inquiry { question: question.clone(), origin: Origin::current() };
                let reply = shard.send(Ask { id, inquiry, actor_ended }).timeout(self.ask_timeout).await;
                match reply.map_err(Unanswered::from).flatten() {
                    Ok(answer) => return Ok(answer),
                    Err(Unanswered::Full) => return Err(AskError::Overloaded),
                    Err(Unanswered::TimedOut) => return Err(AskError::NoAnswer),
                    Err(Unanswered::Store(error)) => return Err(error.into()),
                    Err(Unanswered::Gone) => actor_ended = true,
                    Err(Unanswered::Started) => actor_ended = false,
                }
            }
            Err(AskError::NoAnswer)
        };
        ask.instrument(span).await
    }
}

impl<A: RecordActor, Q: Question<A>> Message for Ask<A, Q> {
    type Result = Result<Q::Answer, Unanswered>;
}

impl<A, Q> Handler<Ask<A, Q>> for Shard<A>
where
    Q: Question<A>,
    Inquiry<Q>: Message<Result = Result<Q::Answer, StoreError>>,
    A: RecordActor + Handler<Inquiry<Q>>,
{
    type Result = ResponseFuture<Result<Q::Answer, Unanswered>>;

    fn handle(&mut self, Ask { id, inquiry, actor_ended }: Ask<A, Q>, ctx: &mut Self::Context) -> Self::Result {
        if !actor_ended {
            let live = self.get(&id).cloned();
            let temporary = || {
                inquiry
                    .question
                    .temporary_actor(self.shared())
                    .map(|(actor, deadline)| start_until(self, id, deadline, actor))
            };
            if let Some(actor) = live.or_else(temporary) {
                let answer = actor.send(inquiry);
                return Box::pin(async move { answer.await?.map_err(Unanswered::Store) });
            }
        }
        let is_full = self.is_full() && !A::STARTS_WHEN_FULL;
        let (shard, shared) = (ctx.address(), self.shared().clone());
        let load = inquiry.origin.in_scope(|| A::load(&shared, id));
        Box::pin(async move {
            let Some(record) = load.await.map_err(Unanswered::Store)? else {
                return Ok(inquiry.question.answer_without_record());
            };
            match inquiry.question.try_answer(record, &shared) {
                Ok(answer) => Ok(answer),
                Err(_) if is_full => Err(Unanswered::Full),
                Err(record) => {
                    shard.do_send(StartFrom { id, record });
                    Err(Unanswered::Started)
                }
            }
        })
    }
}

impl<A: RecordActor> Handler<StartFrom<A>> for Shard<A> {
    type Result = ();

    fn handle(&mut self, StartFrom { id, record }: StartFrom<A>, _: &mut Self::Context) {
        if self.get(&id).is_none() {
            let deadline = A::deadline(&record);
            let actor = A::from_record(record, self.shared());
            start_until(self, id, deadline, actor);
        }
    }
}
