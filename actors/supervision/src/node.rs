//! The visible state of the supervision tree: one node for each supervised actor and each group of actors. The nodes
//! are outside the actors, so they can be read while an arbiter (a thread that runs actors) is blocked.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::restart::ExitReason;

/// An actor, or a group of actors, in the tree.
#[derive(Debug)]
pub struct Node {
    name: String,
    kind: &'static str,
    /// It stands for any number of actors; having none is no failure.
    group: bool,
    live: AtomicI64,
    restarts: AtomicU64,
    unanswered: AtomicI64,
    last_exit: Mutex<Option<&'static str>>,
    children: Mutex<Vec<Arc<Node>>>,
}

/// A node as the operator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct NodeView {
    /// Unique among its siblings.
    pub name: String,
    /// The kind of its actors.
    pub kind: &'static str,
    /// `running` or `down`.
    pub state: &'static str,
    /// Live actors: 1 or 0 for a single actor, any number for a group.
    pub live: i64,
    /// Since the process began, the panics of its actors, also of those that were then given up, and how often the shard started
    /// over.
    pub restarts: u64,
    /// The last failure, if there was one: `panicked`, or `given_up` when the actor was not restarted.
    pub last_exit: Option<&'static str>,
    /// Requests that were sent and not answered yet.
    pub mailbox: i64,
    /// The nodes below it.
    pub children: Vec<NodeView>,
}

impl Node {
    /// A node for one actor.
    pub(crate) fn new(name: impl Into<String>, kind: &'static str) -> Arc<Self> {
        Arc::new(Self::empty(name.into(), kind, false))
    }

    /// A node for any number of actors.
    pub(crate) fn group(name: impl Into<String>, kind: &'static str) -> Arc<Self> {
        Arc::new(Self::empty(name.into(), kind, true))
    }

    fn empty(name: String, kind: &'static str, group: bool) -> Self {
        Self {
            name,
            kind,
            group,
            live: AtomicI64::new(0),
            restarts: AtomicU64::new(0),
            unanswered: AtomicI64::new(0),
            last_exit: Mutex::new(None),
            children: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn is_group(&self) -> bool {
        self.group
    }

    /// Adds a node below this one.
    pub(crate) fn add_child(&self, child: Arc<Self>) {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).push(child);
    }

    /// Notes that an actor of this node has started.
    pub(crate) fn started(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that an actor of this node has panicked, or that this shard starts over because its actors keep failing.
    pub(crate) fn failed(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        *self.last_exit.lock().unwrap_or_else(PoisonError::into_inner) = Some("panicked");
    }

    /// Notes that an actor of this node has ended.
    pub(crate) fn ended(&self, reason: ExitReason) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        if reason == ExitReason::GivenUp {
            *self.last_exit.lock().unwrap_or_else(PoisonError::into_inner) = Some("given_up");
        }
    }

    /// Live actors.
    #[must_use]
    pub fn live(&self) -> i64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Counts a request until the guard is dropped.
    #[must_use]
    pub fn asked(self: &Arc<Self>) -> Asked {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        Asked(Arc::clone(self))
    }

    /// Requests that were sent and not answered yet.
    #[must_use]
    pub fn waiting(&self) -> i64 {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// The node and all below it.
    pub(crate) fn view(&self) -> NodeView {
        let children = self.children.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|child| child.view()).collect();
        NodeView {
            name: self.name.clone(),
            kind: self.kind,
            state: if self.live() > 0 || self.group { "running" } else { "down" },
            live: self.live(),
            restarts: self.restarts.load(Ordering::Relaxed),
            last_exit: *self.last_exit.lock().unwrap_or_else(PoisonError::into_inner),
            mailbox: self.waiting(),
            children,
        }
    }
}

/// One request that waits for its answer.
#[derive(Debug)]
pub struct Asked(Arc<Node>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.unanswered.fetch_sub(1, Ordering::Relaxed);
    }
}
