//! The visible state of the supervision tree: one node for each supervised actor and each group of actors. The nodes
//! are outside the actors, so they can be read while an arbiter (a thread that runs actors) is blocked.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::time::Instant;

use crate::gate::Gate;
use crate::panics::Panic;
use crate::restart::ExitReason;

/// An actor, or a group of actors, in the tree.
#[derive(Debug)]
pub(crate) struct Node {
    name: String,
    kind: &'static str,
    /// True for a group, which may have any number of actors; an empty group is not down.
    is_group: bool,
    live: AtomicI64,
    /// See [`NodeView::restarts`].
    restarts: AtomicU64,
    /// Counts and bounds the requests to its actors.
    requests: Arc<Gate>,
    history: Mutex<History>,
    children: Mutex<Vec<Arc<Node>>>,
}

/// The events of a node's actors.
#[derive(Debug, Default)]
struct History {
    /// Time of the start or the last restart.
    started_at: Option<Instant>,
    /// See [`NodeView::last_exit`].
    last_exit: Option<&'static str>,
    last_panic: Option<LastPanic>,
}

/// The last panic of a node's actors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastPanic {
    /// Time by the clock of the machine.
    pub at: SystemTime,
    /// File and line in the source.
    pub place: String,
    /// Id of the request that was being handled.
    pub request_id: Option<String>,
    /// Panics in a row at this place.
    pub count: u64,
}

/// A snapshot of a node, for the operator.
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
    /// Panics of its actors since the process began, including given-up actors, plus the number of shard resets.
    pub restarts: u64,
    /// The last failure, if there was one: `panicked`, or `given_up` when the actor was not restarted.
    pub last_exit: Option<&'static str>,
    /// The last panic, if there was one.
    pub last_panic: Option<LastPanic>,
    /// Seconds since the last start or restart of the node itself; `None` when it is down.
    pub age_s: Option<u64>,
    /// Requests sent and not answered yet.
    pub mailbox: usize,
    /// The nodes below it.
    pub children: Vec<NodeView>,
}

impl Node {
    /// Builds a node for one actor.
    pub(crate) fn new(name: impl Into<String>, kind: &'static str) -> Arc<Self> {
        Self::create(name.into(), kind, None)
    }

    /// Builds a node for any number of actors, with at most `requests_max` requests in flight.
    pub(crate) fn group(name: impl Into<String>, kind: &'static str, requests_max: usize) -> Arc<Self> {
        Self::create(name.into(), kind, Some(requests_max))
    }

    /// Builds the node of a group with this limit on requests, or of a single actor.
    fn create(name: String, kind: &'static str, group_requests_max: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            name,
            kind,
            is_group: group_requests_max.is_some(),
            live: AtomicI64::new(0),
            restarts: AtomicU64::new(0),
            requests: Gate::new(group_requests_max.unwrap_or(0)),
            history: Mutex::default(),
            children: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn is_group(&self) -> bool {
        self.is_group
    }

    /// Adds a node below this one.
    pub(crate) fn add_child(&self, child: Arc<Self>) {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).push(child);
    }

    /// Notes that an actor of this node has started.
    pub(crate) fn note_actor_started(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a start or restart of the node itself: of its single actor, or of its shard.
    pub(crate) fn note_started(&self) {
        self.history().started_at = Some(Instant::now());
    }

    /// Notes that this shard starts over because its actors keep failing.
    pub(crate) fn note_shard_reset(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.history().last_exit = Some("panicked");
        self.note_started();
    }

    /// Notes that an actor of this node has panicked.
    pub(crate) fn note_panic(&self, panic: Panic) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        let Panic { place, request_id } = panic;
        let mut history = self.history();
        let count = history.last_panic.as_ref().filter(|last| last.place == place).map_or(1, |last| last.count + 1);
        history.last_exit = Some("panicked");
        history.last_panic = Some(LastPanic { at: SystemTime::now(), place, request_id, count });
    }

    /// Notes that an actor of this node has ended.
    pub(crate) fn note_actor_ended(&self, reason: ExitReason) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        if reason == ExitReason::GivenUp {
            self.history().last_exit = Some("given_up");
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of live actors.
    pub(crate) fn live(&self) -> i64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Returns the gate that counts and bounds the requests to its actors.
    pub(crate) const fn requests(&self) -> &Arc<Gate> {
        &self.requests
    }

    /// Returns the view of the node and of all below it.
    pub(crate) fn view(&self) -> NodeView {
        let children =
            self.children.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|child| child.view()).collect();
        let is_up = self.live() > 0 || self.is_group;
        let history = self.history();
        NodeView {
            name: self.name.clone(),
            kind: self.kind,
            state: if is_up { "running" } else { "down" },
            live: self.live(),
            restarts: self.restarts.load(Ordering::Relaxed),
            last_exit: history.last_exit,
            last_panic: history.last_panic.clone(),
            age_s: history.started_at.filter(|_| is_up).map(|started_at| started_at.elapsed().as_secs()),
            mailbox: self.requests.inside(),
            children,
        }
    }
}
