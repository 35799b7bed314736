//! What can be seen of the supervision tree: one node per supervised place, kept in atomics so
//! that it can be read while its arbiter is stuck.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::restart::ExitReason;

/// A place in the tree.
#[derive(Debug)]
pub struct Node {
    name: String,
    kind: &'static str,
    /// Any number of actors live here; none is no failure.
    group: bool,
    live: AtomicI64,
    restarts: AtomicU64,
    mailbox: AtomicI64,
    last_exit: Mutex<Option<&'static str>>,
    children: Mutex<Vec<Arc<Node>>>,
}

/// A node as it is shown.
#[derive(Clone, Debug, Serialize)]
pub struct NodeView {
    /// Unique among its siblings.
    pub name: String,
    /// What sort of actor lives there.
    pub kind: &'static str,
    /// `running` or `down`.
    pub state: &'static str,
    /// Live actors: 1 or 0 for a single one, the number of children for a shard.
    pub live: i64,
    /// Restarts after a panic since the process began.
    pub restarts: u64,
    /// How the last one ended, if any has.
    pub last_exit: Option<&'static str>,
    /// Requests that were handed in and not answered yet.
    pub mailbox: i64,
    /// The places below it.
    pub children: Vec<NodeView>,
}

impl Node {
    /// A place for one actor.
    pub(crate) fn new(name: impl Into<String>, kind: &'static str) -> Arc<Self> {
        Arc::new(Self::empty(name.into(), kind, false))
    }

    /// A place for any number of actors.
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
            mailbox: AtomicI64::new(0),
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

    /// Adds a place below this one.
    pub(crate) fn adopt(&self, child: Arc<Self>) {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).push(child);
    }

    /// An actor began to live here.
    pub(crate) fn started(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    /// An actor here was restarted after a panic.
    pub(crate) fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        *self.last_exit.lock().unwrap_or_else(PoisonError::into_inner) = Some("panicked");
    }

    /// An actor here ended.
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
        self.mailbox.fetch_add(1, Ordering::Relaxed);
        Asked(Arc::clone(self))
    }

    /// Requests without an answer so far.
    #[must_use]
    pub fn waiting(&self) -> i64 {
        self.mailbox.load(Ordering::Relaxed)
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
        self.0.mailbox.fetch_sub(1, Ordering::Relaxed);
    }
}
