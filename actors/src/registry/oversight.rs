//! How a shard judges the failures of its actors, and the root those of the shard.
//!
//! An actor that panics is restarted, three times a minute at most; then it is let go, and
//! whoever asks for it next gets a fresh actor. When more than five are let go within a minute
//! something more is wrong: the shard starts over. When that does not help either, the root ends the process.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Message, Recipient};

use super::children::Key;
use crate::node::Node;
use crate::root::{RESTARTS_MAX, Root, WINDOW};
use crate::supervision::{ExitReason, Overseer, RestartBudget, Verdict};

/// Actors that a shard lets go within a window before it starts over.
const GIVEN_UP_MAX: usize = 5;
/// Budgets kept before those at rest are dropped.
const BUDGETS_KEPT: usize = 1_024;

/// An actor of the shard is gone.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ChildEnded<K>(pub(crate) K);

/// Too many actors kept failing: let go of all of them.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct StartOver;

/// Where a shard is told of its actors' ends.
pub(super) struct Reports<K: Key> {
    pub(super) ended: Recipient<ChildEnded<K>>,
    pub(super) start_over: Recipient<StartOver>,
}

/// The memory of one shard's failures.
pub(super) struct ShardOversight<K: Key> {
    pub(super) node: Arc<Node>,
    name: String,
    kind: &'static str,
    root: Root,
    registry: Reports<K>,
    crashes: RefCell<HashMap<K, RestartBudget>>,
    given_up: RefCell<RestartBudget>,
    own: RefCell<RestartBudget>,
}

impl<K: Key> std::fmt::Debug for ShardOversight<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShardOversight({})", self.name)
    }
}

impl<K: Key> ShardOversight<K> {
    pub(super) fn new(name: String, kind: &'static str, node: Arc<Node>, root: Root, registry: Reports<K>) -> Self {
        Self {
            node,
            name,
            kind,
            root,
            registry,
            crashes: RefCell::default(),
            given_up: RefCell::new(RestartBudget::new(GIVEN_UP_MAX, WINDOW)),
            own: RefCell::new(RestartBudget::new(RESTARTS_MAX, WINDOW)),
        }
    }

    fn child_given_up(&self, id: K) {
        tracing::error!(actor.kind = self.kind, actor.id = %id, "an actor keeps failing and was let go");
        if self.given_up.borrow_mut().spend() != Verdict::GiveUp {
            return;
        }
        if self.root.may_reset_registry() {
            *self.given_up.borrow_mut() = RestartBudget::new(GIVEN_UP_MAX, WINDOW);
            self.registry.start_over.do_send(StartOver);
        } else {
            self.root.escalate(&self.name);
        }
    }
}

/// Oversees one actor of a shard.
#[derive(Debug)]
pub(super) struct ChildOverseer<K: Key> {
    pub(super) id: K,
    pub(super) shard: Rc<ShardOversight<K>>,
}

impl<K: Key> Overseer for ChildOverseer<K> {
    fn crashed(&self) -> Verdict {
        self.shard.node.restarted();
        metrics::counter!("sakshi_actor_restarts_total", "actor" => self.shard.kind).increment(1);
        let mut crashes = self.shard.crashes.borrow_mut();
        if crashes.len() >= BUDGETS_KEPT {
            crashes.retain(|_, budget| !budget.is_at_rest());
        }
        let verdict = crashes.entry(self.id).or_insert_with(|| RestartBudget::new(RESTARTS_MAX, WINDOW)).spend();
        tracing::error!(actor.kind = self.shard.kind, actor.id = %self.id, ?verdict, "an actor panicked");
        verdict
    }

    fn ended(&self, reason: ExitReason) {
        self.shard.node.ended(reason.as_str());
        self.shard.registry.ended.do_send(ChildEnded(self.id));
        if reason == ExitReason::GivenUp {
            self.shard.child_given_up(self.id);
        }
    }
}

/// Oversees the shard itself.
#[derive(Debug)]
pub(super) struct RegistryOverseer<K: Key>(pub(super) Rc<ShardOversight<K>>);

impl<K: Key> Overseer for RegistryOverseer<K> {
    fn crashed(&self) -> Verdict {
        self.0.node.restarted();
        metrics::counter!("sakshi_actor_restarts_total", "actor" => "registry").increment(1);
        let verdict = self.0.own.borrow_mut().spend();
        tracing::error!(actor.name = %self.0.name, ?verdict, "a registry panicked");
        verdict
    }

    fn ended(&self, reason: ExitReason) {
        if reason == ExitReason::GivenUp {
            self.0.root.escalate(&self.0.name);
        }
    }
}
