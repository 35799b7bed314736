//! One shard: the supervisor of the actors that are live on one worker arbiter.
//!
//! It knows its actors, starts one for an id, wakes each at its deadline, and forgets those that have ended.
//! Implementing `Handler` for it adds messages.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext as _, Context, Handler, Message, SpawnHandle, Supervised};

use crate::children::Children;
use crate::node::Node;
use crate::restart;
use crate::root::{Root, RootChild};
use crate::shard_actor::{Deadline, ShardActor};
use crate::shard_failures::{ChildEnded, ShardFailures, StartOver};
use crate::wheel::{SLICE, TICK, TIDIED_PER_TICK, TIDY_PAUSE, TIMERS_TIDIED, Wheel};

/// The wheel has a timer: start to turn it.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
struct Turn;

/// One shard.
#[derive(Debug)]
pub struct Shard<A: ShardActor> {
    shared: A::Shared,
    failures: Rc<ShardFailures<A>>,
    children: Children<A>,
    wheel: Wheel<A::Id>,
    /// True while the wheel turns, which it does while it has timers.
    is_turning: bool,
    /// The scheduled turn of the wheel.
    next_turn: Option<SpawnHandle>,
    address: Addr<Self>,
    /// Live actors at which the shard counts as full.
    live_max: usize,
}

impl<A: ShardActor> Shard<A> {
    /// Starts a supervised shard on the current arbiter.
    pub(crate) fn start(node: Arc<Node>, shared: A::Shared, root: Root, live_max: usize) -> Addr<Self> {
        metrics::counter!("sakshi_actor_restarts_total", "actor" => A::KIND).increment(0);
        let context = Context::new();
        let address: Addr<Self> = context.address();
        let failures = Rc::new(ShardFailures::new(
            Arc::clone(&node),
            root.clone(),
            address.clone().recipient(),
            address.clone().recipient(),
        ));
        node.note_started();
        let shard = Self {
            shared,
            failures,
            children: Children::default(),
            wheel: Wheel::default(),
            is_turning: false,
            next_turn: None,
            address,
            live_max,
        };
        restart::start(context, shard, RootChild::new(root, node, "registry"))
    }

    /// Returns the dependencies of the actors of this shard.
    pub const fn shared(&self) -> &A::Shared {
        &self.shared
    }

    /// Returns the address of a live actor.
    pub fn get(&self, id: &A::Id) -> Option<&Addr<A>> {
        self.children.get(id)
    }

    /// Returns true if the shard has the maximum of live actors. The shard itself starts more if asked to.
    pub fn is_full(&self) -> bool {
        self.children.len() >= self.live_max
    }

    /// Starts an actor.
    pub fn start_child(&mut self, id: A::Id, actor: A) -> Addr<A> {
        self.failures.node.note_actor_started();
        let child = restart::start(Context::new(), actor, self.failures.supervisor_of(id));
        self.children.insert(id, child.clone());
        child
    }

    /// Sends [`Deadline`] to an actor at this time, in milliseconds since the Unix epoch, if it is still live then.
    pub fn wake_at(&mut self, id: A::Id, at_ms: i64) {
        self.wheel.add(id, at_ms);
        self.begin_turning();
    }

    /// As [`Self::wake_at`], for a live actor that has a timer. Does nothing while the wheel has too many timers.
    pub fn wake_also_at(&mut self, id: A::Id, at_ms: i64) {
        self.wheel.add_further(id, at_ms, self.children.len());
        self.begin_turning();
    }

    /// Turns the wheel, unless it turns already.
    fn begin_turning(&mut self) {
        if !std::mem::replace(&mut self.is_turning, true) {
            self.address.do_send(Turn);
        }
    }

    /// Turns the wheel by a step, and on while it has timers.
    fn turn(&mut self, ctx: &mut Context<Self>) {
        self.tick(ctx);
        self.tidy(TIDIED_PER_TICK, ctx);
        self.is_turning = !self.wheel.is_empty();
        self.next_turn = self.is_turning.then(|| ctx.run_later(TICK, Self::turn));
    }

    /// Wakes the actors whose deadline has come, a slice at a time.
    fn tick(&mut self, ctx: &mut Context<Self>) {
        let due = self.wheel.take_due(A::now_millis(&self.shared), SLICE);
        for id in &due {
            if let Some(child) = self.children.get(id) {
                child.do_send(Deadline);
            }
        }
        if due.len() == SLICE {
            ctx.run_later(Duration::ZERO, Self::tick);
        }
    }

    /// Drops timers of actors that have ended, in at most `times` slices.
    fn tidy(&mut self, times: u32, ctx: &mut Context<Self>) {
        if times == 0 || !self.wheel.is_untidy(self.children.len()) {
            return;
        }
        let children = &self.children;
        self.wheel.tidy(TIMERS_TIDIED, |id| children.get(id).is_some());
        ctx.run_later(TIDY_PAUSE, move |shard, ctx| shard.tidy(times - 1, ctx));
    }
}

impl<A: ShardActor> Actor for Shard<A> {
    type Context = Context<Self>;
}

impl<A: ShardActor> Supervised for Shard<A> {
    /// Forgets all actors: they end, and are started again when needed.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.failures.note_all_forgotten();
        self.children = Children::default();
        self.wheel = Wheel::default();
        self.is_turning = false;
        self.next_turn = None;
    }
}

impl<A: ShardActor> Handler<ChildEnded<A::Id>> for Shard<A> {
    type Result = ();

    fn handle(&mut self, ChildEnded(id): ChildEnded<A::Id>, _: &mut Self::Context) {
        self.children.remove_ended(&id);
    }
}

impl<A: ShardActor> Handler<Turn> for Shard<A> {
    type Result = ();

    fn handle(&mut self, _: Turn, ctx: &mut Self::Context) {
        // A message from before a restart may have scheduled a turn already.
        if let Some(next) = self.next_turn.replace(ctx.run_later(TICK, Self::turn)) {
            ctx.cancel_future(next);
        }
    }
}

impl<A: ShardActor> Handler<StartOver> for Shard<A> {
    type Result = ();

    fn handle(&mut self, _: StartOver, ctx: &mut Self::Context) {
        self.failures.node.note_shard_reset();
        // A restart after a panic clears the context; here the turn would run beside that of the next timer.
        if let Some(next) = self.next_turn.take() {
            ctx.cancel_future(next);
        }
        self.restarting(ctx);
    }
}
