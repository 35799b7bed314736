//! The visible state of the supervision tree: one node for each supervised actor and each group of actors. The nodes
//! are outside the actors, so they can be read while an arbiter (a thread that runs actors) is blocked.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::gate::Gate;
use crate::restart::ExitReason;

/// An actor, or a group of actors, in the tree.
#[derive(Debug)]
pub(crate) struct Node {
    name: String,
    kind: &'static str,
    /// It stands for any number of actors; having none is no failure.
    group: bool,
    live: AtomicI64,
    restarts: AtomicU64,
    /// Counts and bounds the requests to its actors.
    requests: Arc<Gate>,
    last_exit: Mutex<Option<&'static str>>,
    children: Mutex<Vec<Arc<Node>>>,
}

/// A node as the operator sees it.
#[derive(Clone, Debug)]
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
    pub mailbox: usize,
    /// The nodes below it.
    pub children: Vec<NodeView>,
}

impl Node {
    /// A node for one actor.
    pub(crate) fn new(name: impl Into<String>, kind: &'static str) -> Arc<Self> {
        Self::create(name.into(), kind, false, 0)
    }

    /// A node for any number of actors, to which at most `requests_max` requests may be under way.
    pub(crate) fn group(name: impl Into<String>, kind: &'static str, requests_max: usize) -> Arc<Self> {
        Self::create(name.into(), kind, true, requests_max)
    }

    fn create(name: String, kind: &'static str, group: bool, requests_max: usize) -> Arc<Self> {
        Arc::new(Self {
            name,
            kind,
            group,
            live: AtomicI64::new(0),
            restarts: AtomicU64::new(0),
            requests: Gate::new(requests_max),
            last_exit: Mutex::new(None),
            children: Mutex::new(Vec::new()),
        })
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
    pub(crate) fn live(&self) -> i64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Counts and bounds the requests to its actors.
    pub(crate) const fn requests(&self) -> &Arc<Gate> {
        &self.requests
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
            mailbox: self.requests.inside(),
            children,
        }
    }
}
