//! How a shard judges the failures of its actors.
//!
//! An actor that panics is restarted, three times a minute at most; then it is let go, and
//! whoever asks for it next gets a fresh actor. When more than five are let go within a minute
//! something more is wrong: the shard starts over. When that does not help either, the root ends the process.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Message, Recipient};

use crate::node::Node;
use crate::restart::{ExitReason, Overseer, RestartBudget, Verdict};
use crate::root::{RESTARTS_MAX, Root, WINDOW};
use crate::shard_actor::ShardActor;

/// Actors that a shard lets go within a window before it starts over.
const GIVEN_UP_MAX: usize = 5;
/// Budgets kept before those without a recent crash are dropped.
const BUDGETS_KEPT: usize = 1_024;

/// An actor of the shard is gone.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ChildEnded<K>(pub(crate) K);

/// Too many actors kept failing: let go of all of them.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct StartOver;

/// The memory of one shard's failures. It survives a restart of the shard.
pub(crate) struct Oversight<A: ShardActor> {
    pub(crate) node: Arc<Node>,
    root: Root,
    ended: Recipient<ChildEnded<A::Id>>,
    start_over: Recipient<StartOver>,
    crashes: RefCell<HashMap<A::Id, RestartBudget>>,
    given_up: RefCell<RestartBudget>,
}

impl<A: ShardActor> fmt::Debug for Oversight<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oversight({})", self.node.name())
    }
}

impl<A: ShardActor> Oversight<A> {
    pub(crate) fn new(node: Arc<Node>, root: Root, ended: Recipient<ChildEnded<A::Id>>, start_over: Recipient<StartOver>) -> Self {
        let given_up = RefCell::new(RestartBudget::new(GIVEN_UP_MAX, WINDOW));
        Self { node, root, ended, start_over, crashes: RefCell::default(), given_up }
    }

    fn child_given_up(&self, id: A::Id) {
        tracing::error!(actor.kind = A::KIND, actor.id = %id, "an actor keeps failing and was let go");
        if self.given_up.borrow_mut().spend() != Verdict::GiveUp {
            return;
        }
        if self.root.may_reset_shard() {
            *self.given_up.borrow_mut() = RestartBudget::new(GIVEN_UP_MAX, WINDOW);
            self.start_over.do_send(StartOver);
        } else {
            self.root.escalate(self.node.name());
        }
    }
}

/// Oversees one actor of a shard.
#[derive(Debug)]
pub(crate) struct ShardChild<A: ShardActor> {
    pub(crate) id: A::Id,
    pub(crate) oversight: Rc<Oversight<A>>,
}

impl<A: ShardActor> Overseer for ShardChild<A> {
    fn crashed(&self) -> Verdict {
        self.oversight.node.failed();
        metrics::counter!("sakshi_actor_restarts_total", "actor" => A::KIND).increment(1);
        let mut crashes = self.oversight.crashes.borrow_mut();
        if crashes.len() >= BUDGETS_KEPT {
            crashes.retain(|_, budget| !budget.is_at_rest());
        }
        let verdict = crashes.entry(self.id).or_insert_with(|| RestartBudget::new(RESTARTS_MAX, WINDOW)).spend();
        tracing::error!(actor.kind = A::KIND, actor.id = %self.id, ?verdict, "an actor panicked");
        verdict
    }

    fn ended(&self, reason: ExitReason) {
        self.oversight.node.ended(reason);
        self.oversight.ended.do_send(ChildEnded(self.id));
        if reason == ExitReason::GivenUp {
            self.oversight.child_given_up(self.id);
        }
    }
}
