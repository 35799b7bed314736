//! The root of the tree: it restarts what lives directly under it, and when that does not help it
//! asks the process to end, so that the init system starts it afresh.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::node::Node;
use crate::supervision::{ExitReason, Overseer, RestartBudget, Verdict};

/// Restarts that one child of the root gets within [`WINDOW`].
pub(crate) const RESTARTS_MAX: usize = 3;
/// The sliding window of all budgets.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// A failure that the tree could not mend; the process should drain and exit non-zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// The name of the actor that kept failing.
    pub actor: String,
}

/// The sending side of escalations.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    sender: mpsc::UnboundedSender<Escalation>,
    registries: Arc<Mutex<RestartBudget>>,
}

impl Root {
    /// A root, and the stream of what it could not mend.
    #[must_use]
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Escalation>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let registries = Arc::new(Mutex::new(RestartBudget::new(RESTARTS_MAX, WINDOW)));
        (Self { sender, registries }, receiver)
    }

    /// Reports that an actor keeps failing.
    pub(crate) fn escalate(&self, actor: &str) {
        tracing::error!(actor.name = actor, "supervision gave up; the process must end");
        // Nobody listens any more only when the process is already ending.
        let _ = self.sender.send(Escalation { actor: actor.to_owned() });
    }

    /// Whether a registry whose children keep failing may start over.
    #[must_use]
    pub(crate) fn may_reset_registry(&self) -> bool {
        self.registries.lock().unwrap_or_else(PoisonError::into_inner).spend() != Verdict::GiveUp
    }

    /// The overseer of a single actor under the root.
    #[must_use]
    pub(crate) fn oversee(&self, name: &'static str, node: Arc<Node>) -> DirectChild {
        node.started();
        DirectChild { name, node, root: self.clone(), budget: RefCell::new(RestartBudget::new(RESTARTS_MAX, WINDOW)) }
    }
}

/// Oversees one actor directly under the root.
#[derive(Debug)]
pub(crate) struct DirectChild {
    name: &'static str,
    node: Arc<Node>,
    root: Root,
    budget: RefCell<RestartBudget>,
}

impl Overseer for DirectChild {
    fn crashed(&self) -> Verdict {
        self.node.restarted();
        metrics::counter!("sakshi_actor_restarts_total", "actor" => self.name).increment(1);
        let verdict = self.budget.borrow_mut().spend();
        tracing::error!(actor.name = self.name, ?verdict, "an actor panicked");
        verdict
    }

    fn ended(&self, reason: ExitReason) {
        self.node.ended(reason.as_str());
        if reason == ExitReason::GivenUp {
            self.root.escalate(self.name);
        }
    }
}
