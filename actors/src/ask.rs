//! Questions about one record of the store, of which an actor may hold a live copy.
//!
//! A live actor answers. Without one the shard reads the record, and starts an actor only when the
//! answer needs one. It also reads the record when an actor ended while the question waited: others
//! may come and go, and what has ended is told by its record.

use actix::{Addr, AsyncContext as _, Handler, Message, ResponseFuture};
use sakshi_domain::time::Timestamp;
use sakshi_store::{StoreError, StoreFuture};
use sakshi_supervision::{Shard, ShardActor};

use crate::router::{Answered, AskError, ShardRouter, Unanswered};
use crate::traced::{Traced, handle_traced};

/// An actor that is a live, timed copy of one record.
pub(crate) trait RecordActor: ShardActor {
    /// What it is a copy of.
    type Record: Send + 'static;
    /// Whether a question starts an actor although the shard is full.
    const STARTS_WHEN_FULL: bool;

    /// Reads the record, for an actor that may be started with it.
    fn load(shared: &Self::Shared, id: Self::Id) -> StoreFuture<Option<Self::Record>>;

    /// Until when its actor may live.
    fn deadline(record: &Self::Record) -> Timestamp;

    /// The actor for a record.
    fn from_record(record: Self::Record, shared: &Self::Shared) -> Self;
}

/// A question that has an answer without an actor, too.
pub(crate) trait Question<A: RecordActor>: Message<Result = Result<Self::Answer, StoreError>> + Clone + Send + 'static {
    /// What is answered.
    type Answer: Send + 'static;

    /// The answer when there is no such record.
    fn unknown(&self) -> Self::Answer;

    /// Reads the record from which it is answered.
    fn load(&self, shared: &A::Shared, id: A::Id) -> StoreFuture<Option<A::Record>> {
        A::load(shared, id)
    }

    /// Answers from the record, unless that needs an actor: then the record is given back.
    fn try_answer(&self, record: A::Record, _: &A::Shared) -> Result<Self::Answer, A::Record> {
        Err(record)
    }

    /// An actor that can answer this question without reading the store, and until when it may live.
    fn temporary_actor(&self, _: &A::Shared) -> Option<(A, Timestamp)> {
        None
    }
}

/// Starts an actor with a timer for its deadline.
pub(crate) fn start_until<A: ShardActor>(shard: &mut Shard<A>, id: A::Id, deadline: Timestamp, actor: A) -> Addr<A> {
    shard.wake_at(id, deadline.millis());
    shard.start_child(id, actor)
}

/// A question for one actor.
#[derive(Debug)]
pub(crate) struct Ask<A: ShardActor, Q> {
    pub(crate) id: A::Id,
    pub(crate) question: Q,
    /// An actor has ended without an answer to it.
    pub(crate) again: bool,
}

impl<A: RecordActor> ShardRouter<A> {
    /// Asks the actor of a record, or the record.
    pub(crate) async fn ask_about<Q>(&self, id: A::Id, question: Q) -> Result<Q::Answer, AskError>
    where
        Q: Question<A>,
        A: Handler<Traced<Q>>,
    {
        self.ask_with(id, |attempt| Ask { id, question: question.clone(), again: attempt > 0 }).await
    }
}

impl<A: RecordActor, Q: Question<A>> Message for Ask<A, Q> {
    type Result = Answered<Q::Answer>;
}

impl<A, Q> Handler<Ask<A, Q>> for Shard<A>
where
    Q: Question<A>,
    A: RecordActor + Handler<Traced<Q>>,
{
    type Result = ResponseFuture<Answered<Q::Answer>>;

    fn handle(&mut self, Ask { id, question, again }: Ask<A, Q>, ctx: &mut Self::Context) -> Self::Result {
        if !again {
            let live = self.get(&id).cloned();
            let temporary = || question.temporary_actor(self.shared()).map(|(actor, until)| start_until(self, id, until, actor));
            if let Some(actor) = live.or_else(temporary) {
                return forward(&actor, question);
            }
        }
        let shared = self.shared().clone();
        let shard = ctx.address();
        let load = question.load(&shared, id);
        let span = sakshi_trace::current();
        Box::pin(async move {
            let record = match load.await {
                Err(error) => return Ok(Err(error)),
                Ok(None) => return Ok(Ok(question.unknown())),
                Ok(Some(record)) => record,
            };
            match question.try_answer(record, &shared) {
                Ok(answer) => Ok(Ok(answer)),
                Err(record) => shard.send(span.in_scope(|| Traced::new(StartWith { id, record, question }))).await?,
            }
        })
    }
}

/// A record that needs an actor, with the question for which it was read.
pub(crate) struct StartWith<A: RecordActor, Q> {
    pub(crate) id: A::Id,
    pub(crate) record: A::Record,
    pub(crate) question: Q,
}

impl<A: RecordActor, Q: Question<A>> Message for StartWith<A, Q> {
    type Result = Answered<Q::Answer>;
}

impl<A, Q> Handler<StartWith<A, Q>> for Shard<A>
where
    Q: Question<A>,
    A: RecordActor + Handler<Traced<Q>>,
{
    type Result = ResponseFuture<Answered<Q::Answer>>;

    fn handle(&mut self, StartWith { id, record, question }: StartWith<A, Q>, _: &mut Self::Context) -> Self::Result {
        let deadline = A::deadline(&record);
        let actor = match self.get(&id) {
            Some(actor) => actor.clone(),
            None if self.is_full() && !A::STARTS_WHEN_FULL => return Box::pin(async { Err(Unanswered::Full) }),
            None => {
                let actor = A::from_record(record, self.shared());
                start_until(self, id, deadline, actor)
            }
        };
        forward(&actor, question)
    }
}

handle_traced! {
    [A, Q] [Q: Question<A>, A: RecordActor + Handler<Traced<Q>>] Ask<A, Q> => Shard<A>;
    [A, Q] [Q: Question<A>, A: RecordActor + Handler<Traced<Q>>] StartWith<A, Q> => Shard<A>;
}

/// Asks the actor.
fn forward<A: RecordActor + Handler<Traced<Q>>, Q: Question<A>>(actor: &Addr<A>, question: Q) -> ResponseFuture<Answered<Q::Answer>> {
    let ask = actor.send(Traced::new(question));
    Box::pin(async move { Ok(ask.await?) })
}
