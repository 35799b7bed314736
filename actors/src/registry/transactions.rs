//! The transaction registry: one shard per HTTP worker, each the supervisor of its transactions.
//!
//! It knows which transactions are live here, starts an actor for one that is opened or asked
//! about, wakes each at its deadline, and forgets those that have ended. A question about a
//! transaction that has already ended is answered from the store without an actor.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext as _, Context, Handler, Message, ResponseFuture, Supervised};
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::Pending;
use sakshi_store::{OpenOutcome, OpenTransaction, StoreError, TransactionRecord};

use super::children::Children;
use super::oversight::{ChildEnded, ChildOverseer, RegistryOverseer, Reports, ShardOversight, StartOver};
use super::wheel::{SLICE, TICK, TIMERS_TIDIED, Wheel};
use super::{Bounds, Unanswered};
use crate::node::Node;
use crate::root::Root;
use crate::supervision;
use crate::transaction::{DeadlineReached, Open, Surroundings, TransactionActor, TransactionQuestion};

/// One shard of the registry.
#[derive(Debug)]
pub(crate) struct TransactionRegistry {
    around: Arc<Surroundings>,
    oversight: Rc<ShardOversight<TxnId>>,
    children: Children<TxnId, TransactionActor>,
    wheel: Wheel<TxnId>,
    bounds: Bounds,
}

impl TransactionRegistry {
    /// Starts a supervised shard on the current arbiter.
    pub(crate) fn start(name: String, node: Arc<Node>, around: Arc<Surroundings>, root: Root, bounds: Bounds) -> Addr<Self> {
        let context = Context::new();
        let me = context.address();
        let reports = Reports { ended: me.clone().recipient(), start_over: me.recipient() };
        let oversight = Rc::new(ShardOversight::new(name, "transaction", node, root, reports));
        let registry = Self { around, oversight: Rc::clone(&oversight), children: Children::default(), wheel: Wheel::default(), bounds };
        supervision::start_in(context, registry, RegistryOverseer(oversight))
    }

    /// Starts an actor, with a timer for the end of its window.
    fn start_child(&mut self, actor: TransactionActor, pending: &Pending) -> Addr<TransactionActor> {
        self.oversight.node.started();
        let child = supervision::start(actor, ChildOverseer { id: pending.id, shard: Rc::clone(&self.oversight) });
        self.children.insert(pending.id, child.clone());
        self.wheel.set(pending.id, pending.expires_at);
        child
    }

    /// Wakes those whose deadline has come, a slice at a time.
    fn tick(&mut self, ctx: &mut Context<Self>) {
        let due = self.wheel.take_due(self.around.clock.now(), SLICE);
        for id in &due {
            if let Some(child) = self.children.get(id) {
                child.do_send(DeadlineReached);
            }
        }
        if due.len() == SLICE {
            ctx.run_later(Duration::ZERO, Self::tick);
        }
    }
}

impl Actor for TransactionRegistry {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, |registry, ctx| {
            registry.tick(ctx);
            let children = &registry.children;
            registry.wheel.tidy(TIMERS_TIDIED, |id| children.get(id).is_some());
        });
    }
}

impl Supervised for TransactionRegistry {
    /// Forgets everybody: without an address they end, and are rebuilt when somebody asks.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.children = Children::default();
        self.wheel = Wheel::default();
    }
}

/// Opens a transaction on this shard.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<Result<OpenOutcome, StoreError>, Unanswered>")]
pub(crate) struct OpenHere(pub(crate) Arc<OpenTransaction>);

impl Handler<OpenHere> for TransactionRegistry {
    type Result = ResponseFuture<Result<Result<OpenOutcome, StoreError>, Unanswered>>;

    fn handle(&mut self, OpenHere(open): OpenHere, _: &mut Self::Context) -> Self::Result {
        let known = self.children.get(&open.pending.id).cloned();
        if known.is_none() && self.children.len() >= self.bounds.live {
            return Box::pin(async { Err(Unanswered::Full) });
        }
        let child = known.unwrap_or_else(|| {
            let actor = TransactionActor::unopened(open.pending.id, Arc::clone(&self.around));
            self.start_child(actor, &open.pending)
        });
        let ask = child.send(Open(open));
        Box::pin(async move { Ok(ask.await?) })
    }
}

/// A question for one transaction.
#[derive(Clone, Debug)]
pub(crate) struct Ask<Q> {
    pub(crate) id: TxnId,
    pub(crate) question: Q,
}

/// What comes back: the answer, the store's trouble, or the actor's silence.
pub(crate) type Answered<Q> = Result<Result<<Q as TransactionQuestion>::Answer, StoreError>, Unanswered>;

impl<Q: TransactionQuestion> Message for Ask<Q> {
    type Result = Answered<Q>;
}

impl<Q> Handler<Ask<Q>> for TransactionRegistry
where
    Q: TransactionQuestion,
    TransactionActor: Handler<Q>,
{
    type Result = ResponseFuture<Answered<Q>>;

    fn handle(&mut self, Ask { id, question }: Ask<Q>, ctx: &mut Self::Context) -> Self::Result {
        if let Some(child) = self.children.get(&id) {
            let ask = child.send(question);
            return Box::pin(async move { Ok(ask.await?) });
        }
        let around = Arc::clone(&self.around);
        let me = ctx.address();
        Box::pin(async move {
            let record = match around.store.load_transaction(id).await {
                Ok(record) => record,
                Err(error) => return Ok(Err(error)),
            };
            match record {
                None => Ok(Ok(question.unknown())),
                Some(TransactionRecord::Completed(record)) => Ok(Ok(question.completed(record))),
                Some(TransactionRecord::Pending(pending)) if pending.is_expired(around.clock.now()) => {
                    Ok(Ok(question.expired(Arc::new(pending))))
                }
                Some(TransactionRecord::Pending(pending)) => me.send(Adopt { pending, question }).await?,
            }
        })
    }
}

/// A pending transaction that was read from the store, with the question that made us read it.
struct Adopt<Q> {
    pending: Pending,
    question: Q,
}

impl<Q: TransactionQuestion> Message for Adopt<Q> {
    type Result = Answered<Q>;
}

impl<Q> Handler<Adopt<Q>> for TransactionRegistry
where
    Q: TransactionQuestion,
    TransactionActor: Handler<Q>,
{
    type Result = ResponseFuture<Answered<Q>>;

    fn handle(&mut self, Adopt { pending, question }: Adopt<Q>, _: &mut Self::Context) -> Self::Result {
        let child = self.children.get(&pending.id).cloned().unwrap_or_else(|| {
            let pending = Arc::new(pending);
            let actor = TransactionActor::adopted(Arc::clone(&pending), Arc::clone(&self.around));
            self.start_child(actor, &pending)
        });
        let ask = child.send(question);
        Box::pin(async move { Ok(ask.await?) })
    }
}

impl Handler<ChildEnded<TxnId>> for TransactionRegistry {
    type Result = ();

    fn handle(&mut self, ChildEnded(id): ChildEnded<TxnId>, _: &mut Self::Context) {
        self.children.forget_ended(&id);
    }
}

impl Handler<StartOver> for TransactionRegistry {
    type Result = ();

    fn handle(&mut self, _: StartOver, ctx: &mut Self::Context) {
        self.oversight.node.restarted();
        self.restarting(ctx);
    }
}

/// Makes one transaction's actor, or the registry itself, panic.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Detonate(pub(crate) Option<TxnId>);

#[cfg(test)]
impl Handler<Detonate> for TransactionRegistry {
    type Result = ();
    fn handle(&mut self, Detonate(id): Detonate, _: &mut Self::Context) {
        match id {
            Some(id) => self.children.get(&id).unwrap().do_send(crate::transaction::Detonate),
            None => panic!("as the test asked"),
        }
    }
}
