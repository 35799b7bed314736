//! The root of the tree. It restarts the actors directly under it. When that does not help, it asks the process to end,
//! so that the init system starts a new process.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::dev::channel::channel;
use actix::{Actor, Addr, Context, Supervised};
use actix_rt::ArbiterHandle;
use tokio::sync::mpsc;

use crate::node::{Node, NodeView};
use crate::panics::Panic;
use crate::restart::{self, ExitReason, RESTARTS_MAX, RestartBudget, Supervisor};

/// Capacity of an actor's mailbox, the default of actix. Messages beyond it are accepted, too.
const MAILBOX_CAPACITY: usize = 16;

/// A failure that restarts did not end; the process should drain and exit non-zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// Name of the actor that kept failing.
    pub actor: String,
}

/// The root of a supervision tree.
#[derive(Clone, Debug)]
pub struct Root {
    node: Arc<Node>,
    escalations: mpsc::UnboundedSender<Escalation>,
    /// Budget for shards to start over, all shards together.
    shard_resets: Arc<Mutex<RestartBudget>>,
}

impl Root {
    /// Creates a root, and the channel of the failures that it escalates.
    #[must_use]
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Escalation>) {
        let (escalations, receiver) = mpsc::unbounded_channel();
        let shard_resets = Arc::new(Mutex::new(RestartBudget::new(RESTARTS_MAX)));
        let node = Node::group("root", "root", 0);
        node.note_started();
        (Self { node, escalations, shard_resets }, receiver)
    }

    /// Starts a single actor directly under the root, on the given arbiter.
    pub fn start<A, F>(&self, arbiter: &ArbiterHandle, name: &'static str, kind: &'static str, make: F) -> Addr<A>
    where
        A: Actor<Context = Context<A>> + Supervised,
        F: FnOnce() -> A + Send + 'static,
    {
        let node = Node::new(name, kind);
        self.add_child(Arc::clone(&node));
        let root = self.clone();
        let (sender, receiver) = channel(MAILBOX_CAPACITY);
        let begin = move || {
            node.note_actor_started();
            node.note_started();
            restart::start(Context::with_receiver(receiver), make(), RootChild::new(root, node, name));
        };
        #[cfg(feature = "simulation")]
        let begin = crate::interference::keep_arbiter(begin);
        arbiter.spawn_fn(begin);
        Addr::new(sender)
    }

    /// Returns the current tree; readable while an arbiter is blocked.
    #[must_use]
    pub fn view(&self) -> NodeView {
        self.node.view()
    }

    pub(crate) fn add_child(&self, node: Arc<Node>) {
        self.node.add_child(node);
    }

    /// Reports that an actor keeps failing.
    pub(crate) fn escalate(&self, actor: &str) {
        tracing::error!(actor.name = actor, "supervision gave up; the process must end");
        // Sending fails only when the receiver is gone: the process is already ending.
        let _ = self.escalations.send(Escalation { actor: actor.to_owned() });
    }

    /// Returns true if a shard whose actors keep failing may start over.
    pub(crate) fn may_reset_shard(&self) -> bool {
        self.shard_resets.lock().unwrap_or_else(PoisonError::into_inner).spend().is_some()
    }
}

/// Supervises one actor directly under the root; a shard is such an actor, too.
#[derive(Debug)]
pub(crate) struct RootChild {
    root: Root,
    node: Arc<Node>,
    /// The `actor` label of the metric that counts restarts.
    label: &'static str,
    budget: RefCell<RestartBudget>,
}

impl RootChild {
    pub(crate) fn new(root: Root, node: Arc<Node>, label: &'static str) -> Self {
        // The counter starts at 0, so that a first restart is an increase.
        metrics::counter!("sakshi_actor_restarts_total", "actor" => label).increment(0);
        Self { root, node, label, budget: RefCell::new(RestartBudget::new(RESTARTS_MAX)) }
    }
}

impl Supervisor for RootChild {
    fn handle_panic(&self, panic: Panic) -> Option<Duration> {
        self.node.note_panic(panic);
        metrics::counter!("sakshi_actor_restarts_total", "actor" => self.label).increment(1);
        let pause = self.budget.borrow_mut().spend();
        tracing::error!(actor.name = self.node.name(), restart.pause = ?pause, "an actor panicked");
        if pause.is_some() {
            self.node.note_started();
        }
        pause
    }

    fn handle_end(&self, reason: ExitReason) {
        // The node of a shard counts the shard's actors, not the shard.
        if !self.node.is_group() {
            self.node.note_actor_ended(reason);
        }
        if reason == ExitReason::GivenUp {
            self.root.escalate(self.node.name());
        }
    }
}
