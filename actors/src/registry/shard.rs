//! One shard of a registry: the supervisor of the actors that are live on one HTTP worker.
//!
//! It knows which of them there are, starts one for an id that is asked about, wakes each at its
//! deadline, and forgets those that have ended. What needs no actor is answered from the record in
//! the store alone.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext as _, Context, Handler, Message, ResponseFuture, Supervised};
use sakshi_domain::clock::Clock;
use sakshi_domain::time::Timestamp;
use sakshi_store::{StoreError, StoreFuture};

use super::children::{Children, Key};
use super::oversight::{ChildEnded, ChildOverseer, RegistryOverseer, Reports, ShardOversight, StartOver};
use super::wheel::{SLICE, TICK, TIDIED_PER_TICK, TIDY_PAUSE, TIMERS_TIDIED, Wheel};
use super::{Bounds, Unanswered};
use crate::node::Node;
use crate::root::Root;
use crate::supervision;

/// An actor that lives on a shard.
pub(crate) trait Live: Actor<Context = Context<Self>> + Supervised + Handler<Deadline> + Unpin {
    /// What it is known by.
    type Id: Key;
    /// What all of them share.
    type Ground: Clone + Send + Unpin + 'static;
    /// Its name in the tree.
    const KIND: &'static str;

    /// Tells when a deadline has come.
    fn clock(ground: &Self::Ground) -> &dyn Clock;
}

/// An actor that is a live, timed copy of one record.
pub(crate) trait Copied: Live {
    /// What it is a copy of.
    type Record: Send + 'static;
    /// Whether one that is asked about gets its actor although the shard is full.
    const ADOPTED_WHEN_FULL: bool;

    /// The record in the store.
    fn load(ground: &Self::Ground, id: Self::Id) -> StoreFuture<Option<Self::Record>>;

    /// The same for one that gets an actor while it needs one.
    fn watch(ground: &Self::Ground, id: Self::Id) -> StoreFuture<Option<Self::Record>> {
        Self::load(ground, id)
    }

    /// The id and the deadline of a record.
    fn terms(record: &Self::Record) -> (Self::Id, Timestamp);

    /// The actor for a record.
    fn adopted(record: Self::Record, ground: &Self::Ground) -> Self;
}

/// A question that can also be answered when no actor lives.
pub(crate) trait Question<A: Copied>: Message<Result = Result<Self::Answer, StoreError>> + Clone + Send + 'static {
    /// What is answered.
    type Answer: Send + 'static;

    /// The answer when there is no such record.
    fn unknown(&self) -> Self::Answer;

    /// The answer from a record that needs no actor for it; one that does is given back.
    fn of_record(&self, record: A::Record, ground: &A::Ground) -> Result<Self::Answer, A::Record>;

    /// An actor that can answer without a look into the store, for a moment, and until when it may live.
    fn visitor(&self, _: &A::Ground) -> Option<(A, Timestamp)> {
        None
    }

    /// Whether no record needs an actor for it.
    fn is_a_look(&self, _: &A::Ground) -> bool {
        false
    }
}

/// The moment for which an actor's timer was set has come.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Deadline;

/// One shard.
#[derive(Debug)]
pub(crate) struct Registry<A: Live> {
    pub(super) ground: A::Ground,
    oversight: Rc<ShardOversight<A::Id>>,
    pub(super) children: Children<A::Id, A>,
    pub(super) wheel: Wheel<A::Id>,
    bounds: Bounds,
}

impl<A: Live> Registry<A> {
    /// Starts a supervised shard on the current arbiter.
    pub(crate) fn start(name: String, node: Arc<Node>, ground: A::Ground, root: Root, bounds: Bounds) -> Addr<Self> {
        let context = Context::new();
        let me: Addr<Self> = context.address();
        let reports = Reports { ended: me.clone().recipient(), start_over: me.recipient() };
        let oversight = Rc::new(ShardOversight::new(name, A::KIND, node, root, reports));
        let registry = Self { ground, oversight: Rc::clone(&oversight), children: Children::default(), wheel: Wheel::default(), bounds };
        supervision::start_in(context, registry, RegistryOverseer(oversight))
    }

    /// Whether no further actor may be started.
    pub(super) fn is_full(&self) -> bool {
        self.children.len() >= self.bounds.live
    }

    /// Starts an actor.
    pub(super) fn start_child(&mut self, id: A::Id, actor: A) -> Addr<A> {
        self.oversight.node.started();
        let child = supervision::start(actor, ChildOverseer { id, shard: Rc::clone(&self.oversight) });
        self.children.insert(id, child.clone());
        child
    }

    /// Starts an actor with a timer.
    pub(super) fn start_timed_child(&mut self, id: A::Id, deadline: Timestamp, actor: A) -> Addr<A> {
        self.wheel.set(id, deadline);
        self.start_child(id, actor)
    }

    /// Wakes those whose deadline has come, a slice at a time.
    fn tick(&mut self, ctx: &mut Context<Self>) {
        let due = self.wheel.take_due(A::clock(&self.ground).now(), SLICE);
        for id in &due {
            if let Some(child) = self.children.get(id) {
                child.do_send(Deadline);
            }
        }
        if due.len() == SLICE {
            ctx.run_later(Duration::ZERO, Self::tick);
        }
    }

    /// Drops timers of actors that have ended, so many times a slice of them.
    fn tidy(&mut self, times: u32, ctx: &mut Context<Self>) {
        if times == 0 || !self.wheel.is_untidy(self.children.len()) {
            return;
        }
        let children = &self.children;
        self.wheel.tidy(TIMERS_TIDIED, |id| children.get(id).is_some());
        ctx.run_later(TIDY_PAUSE, move |registry, ctx| registry.tidy(times - 1, ctx));
    }
}

impl<A: Live> Actor for Registry<A> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, |registry, ctx| {
            registry.tick(ctx);
            registry.tidy(TIDIED_PER_TICK, ctx);
        });
    }
}

impl<A: Live> Supervised for Registry<A> {
    /// Forgets everybody: without an address they end, and are rebuilt when somebody asks.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.children = Children::default();
        self.wheel = Wheel::default();
    }
}

/// A question for one actor.
#[derive(Debug)]
pub(crate) struct Ask<A: Live, Q> {
    pub(crate) id: A::Id,
    pub(crate) question: Q,
}

impl<A: Live, Q: Clone> Clone for Ask<A, Q> {
    fn clone(&self) -> Self {
        Self { id: self.id, question: self.question.clone() }
    }
}

/// What comes back: the answer, the store's trouble, or the actor's silence.
pub(crate) type Answered<A, Q> = Result<Result<<Q as Question<A>>::Answer, StoreError>, Unanswered>;

impl<A: Copied, Q: Question<A>> Message for Ask<A, Q> {
    type Result = Answered<A, Q>;
}

impl<A, Q> Handler<Ask<A, Q>> for Registry<A>
where
    Q: Question<A>,
    A: Copied + Handler<Q>,
{
    type Result = ResponseFuture<Answered<A, Q>>;

    fn handle(&mut self, Ask { id, question }: Ask<A, Q>, ctx: &mut Self::Context) -> Self::Result {
        let child = self.children.get(&id).cloned();
        let visitor = || question.visitor(&self.ground).map(|(actor, until)| self.start_timed_child(id, until, actor));
        if let Some(child) = child.or_else(visitor) {
            let ask = child.send(question);
            return Box::pin(async move { Ok(ask.await?) });
        }
        let ground = self.ground.clone();
        let me = ctx.address();
        Box::pin(async move {
            let load = if question.is_a_look(&ground) { A::load(&ground, id) } else { A::watch(&ground, id) };
            let record = match load.await {
                Err(error) => return Ok(Err(error)),
                Ok(None) => return Ok(Ok(question.unknown())),
                Ok(Some(record)) => record,
            };
            match question.of_record(record, &ground) {
                Ok(answer) => Ok(Ok(answer)),
                Err(record) => me.send(Adopt { record, question }).await?,
            }
        })
    }
}

/// A record that needs an actor, with the question that made us read it.
struct Adopt<A: Copied, Q> {
    record: A::Record,
    question: Q,
}

impl<A: Copied, Q: Question<A>> Message for Adopt<A, Q> {
    type Result = Answered<A, Q>;
}

impl<A, Q> Handler<Adopt<A, Q>> for Registry<A>
where
    Q: Question<A>,
    A: Copied + Handler<Q>,
{
    type Result = ResponseFuture<Answered<A, Q>>;

    fn handle(&mut self, Adopt { record, question }: Adopt<A, Q>, _: &mut Self::Context) -> Self::Result {
        let (id, deadline) = A::terms(&record);
        let child = match self.children.get(&id) {
            Some(child) => child.clone(),
            None if self.is_full() && !A::ADOPTED_WHEN_FULL => return Box::pin(async { Err(Unanswered::Full) }),
            None => {
                let actor = A::adopted(record, &self.ground);
                self.start_timed_child(id, deadline, actor)
            }
        };
        let ask = child.send(question);
        Box::pin(async move { Ok(ask.await?) })
    }
}

impl<A: Live> Handler<ChildEnded<A::Id>> for Registry<A> {
    type Result = ();

    fn handle(&mut self, ChildEnded(id): ChildEnded<A::Id>, _: &mut Self::Context) {
        self.children.forget_ended(&id);
    }
}

impl<A: Live> Handler<StartOver> for Registry<A> {
    type Result = ();

    fn handle(&mut self, _: StartOver, ctx: &mut Self::Context) {
        self.oversight.node.restarted();
        self.restarting(ctx);
    }
}
