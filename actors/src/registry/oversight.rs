//! How a shard judges the failures of its transactions, and the root those of the shard.
//!
//! A transaction that panics is restarted, three times a minute at most; then it is let go, and
//! whoever asks for it next gets a fresh actor. When more than five are let go within a minute
//! something more is wrong: the shard starts over. When that does not help either, the root ends the process.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use actix::Addr;
use sakshi_domain::ids::TxnId;

use super::{ChildEnded, StartOver, TransactionRegistry};
use crate::node::Node;
use crate::root::{RESTARTS_MAX, Root, WINDOW};
use crate::supervision::{ExitReason, Overseer, RestartBudget, Verdict};

/// Transactions that a shard lets go within a window before it starts over.
const GIVEN_UP_MAX: usize = 5;
/// Budgets kept before those at rest are dropped.
const BUDGETS_KEPT: usize = 1_024;

/// The memory of one shard's failures.
#[derive(Debug)]
pub(super) struct ShardOversight {
    pub(super) node: Arc<Node>,
    name: String,
    root: Root,
    registry: Addr<TransactionRegistry>,
    crashes: RefCell<HashMap<TxnId, RestartBudget>>,
    given_up: RefCell<RestartBudget>,
    own: RefCell<RestartBudget>,
}

impl ShardOversight {
    pub(super) fn new(name: String, node: Arc<Node>, root: Root, registry: Addr<TransactionRegistry>) -> Self {
        Self {
            node,
            name,
            root,
            registry,
            crashes: RefCell::default(),
            given_up: RefCell::new(RestartBudget::new(GIVEN_UP_MAX, WINDOW)),
            own: RefCell::new(RestartBudget::new(RESTARTS_MAX, WINDOW)),
        }
    }

    fn child_given_up(&self, id: TxnId) {
        tracing::error!(txn.id = %id, "a transaction's actor keeps failing and was let go");
        if self.given_up.borrow_mut().spend() != Verdict::GiveUp {
            return;
        }
        if self.root.may_reset_registry() {
            *self.given_up.borrow_mut() = RestartBudget::new(GIVEN_UP_MAX, WINDOW);
            self.registry.do_send(StartOver);
        } else {
            self.root.escalate(&self.name);
        }
    }
}

/// Oversees one transaction's actor.
#[derive(Debug)]
pub(super) struct ChildOverseer {
    pub(super) id: TxnId,
    pub(super) shard: Rc<ShardOversight>,
}

impl Overseer for ChildOverseer {
    fn crashed(&self) -> Verdict {
        self.shard.node.restarted();
        metrics::counter!("sakshi_actor_restarts_total", "actor" => "transaction").increment(1);
        let mut crashes = self.shard.crashes.borrow_mut();
        if crashes.len() >= BUDGETS_KEPT {
            crashes.retain(|_, budget| !budget.is_at_rest());
        }
        let verdict = crashes.entry(self.id).or_insert_with(|| RestartBudget::new(RESTARTS_MAX, WINDOW)).spend();
        tracing::error!(txn.id = %self.id, ?verdict, "a transaction's actor panicked");
        verdict
    }

    fn ended(&self, reason: ExitReason) {
        self.shard.node.ended(reason.as_str());
        self.shard.registry.do_send(ChildEnded(self.id));
        if reason == ExitReason::GivenUp {
            self.shard.child_given_up(self.id);
        }
    }
}

/// Oversees the shard itself.
#[derive(Debug)]
pub(super) struct RegistryOverseer(pub(super) Rc<ShardOversight>);

impl Overseer for RegistryOverseer {
    fn crashed(&self) -> Verdict {
        self.0.node.restarted();
        metrics::counter!("sakshi_actor_restarts_total", "actor" => "transaction_registry").increment(1);
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
