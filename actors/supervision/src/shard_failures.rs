//! Handling of the failures of a shard's actors.
//!
//! An actor that panics is restarted, three times a minute at most. Then it is given up, and the next caller gets a
//! fresh actor. When a shard gives up more than five actors within a minute, it starts over. If that does not help
//! either, the root ends the process.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Message, Recipient};

use crate::node::Node;
use crate::panics::Panic;
use crate::restart::{ExitReason, RESTARTS_MAX, RestartBudget, Supervisor};
use crate::root::Root;
use crate::shard_actor::ShardActor;

/// Maximum actors that a shard gives up within a window before it starts over.
const GIVEN_UP_MAX: usize = 5;
/// Number of budgets at which those without a recent crash are dropped.
const BUDGETS_MAX: usize = 1_024;

/// An actor of the shard has ended.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ChildEnded<K>(pub(crate) K);

/// Too many actors kept failing: the shard forgets all of them.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct StartOver;

/// The failures of one shard's actors. They survive a restart of the shard.
#[derive(Debug)]
pub(crate) struct ShardFailures<A: ShardActor> {
    pub(crate) node: Arc<Node>,
    root: Root,
    /// The shard, which is notified when an actor ends.
    ended: Recipient<ChildEnded<A::Id>>,
    /// The shard, which is told to forget all its actors.
    start_over: Recipient<StartOver>,
    /// Budgets of the actors that have crashed.
    restart_budgets: RefCell<HashMap<A::Id, RestartBudget>>,
    /// Budget of actors that the shard may give up before it starts over.
    give_up_budget: RefCell<RestartBudget>,
    /// Number of times that the shard has forgotten all its actors.
    resets: Cell<u64>,
}

impl<A: ShardActor> ShardFailures<A> {
    pub(crate) fn new(
        node: Arc<Node>,
        root: Root,
        ended: Recipient<ChildEnded<A::Id>>,
        start_over: Recipient<StartOver>,
    ) -> Self {
        let give_up_budget = RefCell::new(RestartBudget::new(GIVEN_UP_MAX));
        Self {
            node,
            root,
            ended,
            start_over,
            restart_budgets: RefCell::default(),
            give_up_budget,
            resets: Cell::new(0),
        }
    }

    /// Builds the supervisor of an actor that starts now.
    pub(crate) fn supervisor_of(self: &Rc<Self>, id: A::Id) -> ShardChild<A> {
        ShardChild { id, failures: Rc::clone(self), resets_at_start: self.resets.get() }
    }

    /// Notes that the shard has forgotten all actors.
    pub(crate) fn note_all_forgotten(&self) {
        self.resets.update(|resets| resets + 1);
    }

    /// Starts the shard over, or escalates, if too many actors have been given up.
    fn handle_given_up(&self, id: A::Id) {
        tracing::error!(actor.kind = A::KIND, actor.id = %id, "an actor keeps failing and was given up");
        if self.give_up_budget.borrow_mut().spend().is_some() {
            return;
        }
        if self.root.may_reset_shard() {
            *self.give_up_budget.borrow_mut() = RestartBudget::new(GIVEN_UP_MAX);
            self.start_over.do_send(StartOver);
        } else {
            self.root.escalate(self.node.name());
        }
    }
}

/// Supervises one actor of a shard.
#[derive(Debug)]
pub(crate) struct ShardChild<A: ShardActor> {
    id: A::Id,
    failures: Rc<ShardFailures<A>>,
    /// Value of `resets` when the actor was started.
    resets_at_start: u64,
}

impl<A: ShardActor> Supervisor for ShardChild<A> {
    fn has_forgotten_actor(&self) -> bool {
        self.failures.resets.get() != self.resets_at_start
    }

    fn handle_panic(&self, panic: Panic) -> Option<Duration> {
        self.failures.node.note_panic(panic);
        metrics::counter!("sakshi_actor_restarts_total", "actor" => A::KIND).increment(1);
        let mut budgets = self.failures.restart_budgets.borrow_mut();
        if budgets.len() >= BUDGETS_MAX {
            budgets.retain(|_, budget| budget.has_recent_crash());
        }
        let pause = budgets.entry(self.id).or_insert_with(|| RestartBudget::new(RESTARTS_MAX)).spend();
        tracing::error!(actor.kind = A::KIND, actor.id = %self.id, restart.pause = ?pause, "an actor panicked");
        pause
    }

    fn handle_end(&self, reason: ExitReason) {
        self.failures.node.note_actor_ended(reason);
        self.failures.ended.do_send(ChildEnded(self.id));
        if reason == ExitReason::GivenUp {
            self.failures.handle_given_up(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::panics::take_panic;
    use crate::tests::{Obedient, in_a_system};
    use crate::{Shard, ShardBounds, Shards};

    #[test]
    fn the_budget_of_an_actor_without_a_recent_crash_is_dropped() {
        in_a_system(async {
            let (root, _escalations) = Root::new();
            let shards = Shards::<Obedient>::new(
                &root,
                "shard",
                "registry",
                (),
                ShardBounds { shards: 1, live: 10, requests: 10 },
            );
            shards.start_here();
            let shard: actix::Addr<Shard<Obedient>> = shards.get(0).unwrap();
            let node = Node::group("shard", "registry", 10);
            let failures =
                Rc::new(ShardFailures::<Obedient>::new(node, root, shard.clone().recipient(), shard.recipient()));
            let crash = |id| failures.supervisor_of(id).handle_panic(take_panic());
            let budgets = || failures.restart_budgets.borrow().len();
            // A thousand crashes that become old, then as many as reach BUDGETS_MAX.
            (0..1_000).for_each(|id| assert_eq!(crash(id), Some(Duration::ZERO)));
            advance(Duration::from_secs(61)).await;
            (1_000..1_024).for_each(|id| assert_eq!(crash(id), Some(Duration::ZERO)));
            assert_eq!(budgets(), 1_024);
            assert!(crash(1_000).is_some_and(|pause| !pause.is_zero()), "a recent crash counts");
            assert_eq!(budgets(), 24);
        });
    }
}
