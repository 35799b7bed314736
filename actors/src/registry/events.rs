//! The event registry: a shard starts an actor for an event that is created or asked about, and
//! wakes it at its end. One that is asked about after its end gets an actor for a moment only.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext as _, Context, Handler, Message, ResponseFuture, Supervised};
use sakshi_domain::clock::Clock;
use sakshi_domain::event::Event;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{Store, StoreError};

use super::children::Children;
use super::oversight::{ChildEnded, ChildOverseer, RegistryOverseer, Reports, ShardOversight, StartOver};
use super::wheel::{SLICE, TICK, TIMERS_TIDIED, Wheel};
use super::{Bounds, Unanswered};
use crate::event::{EventActor, EventDeadline, EventQuestion, Refresh};
use crate::node::Node;
use crate::root::Root;
use crate::supervision;

/// One shard of the registry.
#[derive(Debug)]
pub(crate) struct EventRegistry {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    oversight: Rc<ShardOversight<EventId>>,
    children: Children<EventId, EventActor>,
    wheel: Wheel<EventId>,
    bounds: Bounds,
}

impl EventRegistry {
    /// Starts a supervised shard on the current arbiter.
    pub(crate) fn start(
        name: String,
        node: Arc<Node>,
        (store, clock): (Arc<dyn Store>, Arc<dyn Clock>),
        root: Root,
        bounds: Bounds,
    ) -> Addr<Self> {
        let context = Context::new();
        let me: Addr<Self> = context.address();
        let reports = Reports { ended: me.clone().recipient(), start_over: me.recipient() };
        let oversight = Rc::new(ShardOversight::new(name, "event", node, root, reports));
        let registry =
            Self { store, clock, oversight: Rc::clone(&oversight), children: Children::default(), wheel: Wheel::default(), bounds };
        supervision::start_in(context, registry, RegistryOverseer(oversight))
    }

    fn child_for(&mut self, event: Event) -> Addr<EventActor> {
        if let Some(child) = self.children.get(&event.id) {
            return child.clone();
        }
        let (id, end) = (event.id, event.terms.expires_at);
        self.oversight.node.started();
        let actor = EventActor::new(Arc::new(event), Arc::clone(&self.store), Arc::clone(&self.clock));
        let child = supervision::start(actor, ChildOverseer { id, shard: Rc::clone(&self.oversight) });
        self.children.insert(id, child.clone());
        self.wheel.set(id, end);
        child
    }

    fn tick(&mut self, ctx: &mut Context<Self>) {
        let due = self.wheel.take_due(self.clock.now(), SLICE);
        for id in &due {
            if let Some(child) = self.children.get(id) {
                child.do_send(EventDeadline);
            }
        }
        if due.len() == SLICE {
            ctx.run_later(Duration::ZERO, Self::tick);
        }
    }
}

impl Actor for EventRegistry {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, |registry, ctx| {
            registry.tick(ctx);
            let children = &registry.children;
            registry.wheel.tidy(TIMERS_TIDIED, |id| children.get(id).is_some());
        });
    }
}

impl Supervised for EventRegistry {
    /// Forgets everybody: without an address they end, and are rebuilt when somebody asks.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.children = Children::default();
        self.wheel = Wheel::default();
    }
}

/// A question for one event.
#[derive(Clone, Debug)]
pub(crate) struct AskEvent<Q> {
    pub(crate) id: EventId,
    pub(crate) question: Q,
}

/// What comes back: the answer, the store's trouble, or the actor's silence.
pub(crate) type Answered<Q> = Result<Result<<Q as EventQuestion>::Answer, StoreError>, Unanswered>;

impl<Q: EventQuestion> Message for AskEvent<Q> {
    type Result = Answered<Q>;
}

impl<Q> Handler<AskEvent<Q>> for EventRegistry
where
    Q: EventQuestion,
    EventActor: Handler<Q>,
{
    type Result = ResponseFuture<Answered<Q>>;

    fn handle(&mut self, AskEvent { id, question }: AskEvent<Q>, ctx: &mut Self::Context) -> Self::Result {
        if let Some(child) = self.children.get(&id) {
            let ask = child.send(question);
            return Box::pin(async move { Ok(ask.await?) });
        }
        let load = self.store.load_event(id);
        let me = ctx.address();
        Box::pin(async move {
            match load.await {
                Err(error) => Ok(Err(error)),
                Ok(None) => Ok(Ok(question.unknown())),
                Ok(Some(event)) => me.send(Adopt { event, question }).await?,
            }
        })
    }
}

/// An event that was read from the store, with the question that made us read it.
struct Adopt<Q> {
    event: Event,
    question: Q,
}

impl<Q: EventQuestion> Message for Adopt<Q> {
    type Result = Answered<Q>;
}

impl<Q> Handler<Adopt<Q>> for EventRegistry
where
    Q: EventQuestion,
    EventActor: Handler<Q>,
{
    type Result = ResponseFuture<Answered<Q>>;

    fn handle(&mut self, Adopt { event, question }: Adopt<Q>, _: &mut Self::Context) -> Self::Result {
        if self.children.len() >= self.bounds.live {
            return Box::pin(async { Err(Unanswered::Full) });
        }
        let ask = self.child_for(event).send(question);
        Box::pin(async move { Ok(ask.await?) })
    }
}

/// Something happened at an event, or its end was moved.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Touched {
    pub(crate) id: EventId,
    /// Its end, when it was moved.
    pub(crate) end: Option<Timestamp>,
}

impl Handler<Touched> for EventRegistry {
    type Result = ();

    fn handle(&mut self, Touched { id, end }: Touched, _: &mut Self::Context) {
        if let Some(child) = self.children.get(&id) {
            child.do_send(Refresh);
            if let Some(end) = end {
                self.wheel.set(id, end);
            }
        }
    }
}

impl Handler<ChildEnded<EventId>> for EventRegistry {
    type Result = ();

    fn handle(&mut self, ChildEnded(id): ChildEnded<EventId>, _: &mut Self::Context) {
        self.children.forget_ended(&id);
    }
}

impl Handler<StartOver> for EventRegistry {
    type Result = ();

    fn handle(&mut self, _: StartOver, ctx: &mut Self::Context) {
        self.oversight.node.restarted();
        self.restarting(ctx);
    }
}
