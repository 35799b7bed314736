//! Heartbeats of this node, and taking over from dead nodes.
//!
//! Every node writes its heartbeats into one sorted set, by the server's clock, and reads those of all
//! nodes in the same step. This guarantees:
//!
//! - A node is dead when its heartbeat has not changed while ours changed five times, or at once when it has left.
//!   During an outage of Redis no heartbeat changes, and during a pause of this node ours does not, so neither makes a
//!   node look dead.
//! - A survivor takes over the waiting deliveries of a dead node, and records its unfinished attempts
//!   as `unknown`. Several survivors may do this at the same time: every entry has one holder, and a
//!   repetition finds nothing left.
//! - A dead node is forgotten only after all of that is done, and not if it has sent a heartbeat
//!   meanwhile. A node that has deliveries but no heartbeat (it died before its first, was forgotten
//!   too early, or Redis lost its heartbeats) is found in the partitions themselves within some
//!   heartbeats and treated the same.
//! - A node that was declared dead by mistake, because it was paused for a minute, sends heartbeats
//!   again under the same id. It makes no attempt that another node has begun, because a delivery is
//!   claimed once; and it still settles the attempts that it had begun, which replaces their `unknown`.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::time::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::heartbeats::{DeadNode, Heartbeats, LAST_HEARTBEAT};
use crate::error::StoreError;
use crate::operations::Store;
use crate::outbox::count_unknown;
use crate::redis::arguments::arguments;
use crate::redis::keys;
use crate::redis::options::NodeId;
use crate::redis::script::NODE_STEP;
use crate::redis::shared::Shared;
use crate::redis::step::Step;

/// Interval between two heartbeats of a node.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Number of heartbeats between two searches for nodes that have deliveries and no heartbeat.
const HEARTBEATS_PER_CHECK: u32 = 5;

/// Lifetime of the set of heartbeats after the last heartbeat of any node.
const HEARTBEATS_TTL: Duration = Duration::from_secs(24 * 3600);

/// A request that this node announces its end: the channel for the outcome.
pub(crate) type Leave = oneshot::Sender<Result<(), StoreError>>;

/// The message of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The node is alive.
    Alive,
    /// The node ends; this is its last heartbeat.
    Leaving,
}

impl Shared {
    /// Sends a heartbeat, and returns the heartbeats of all nodes: the server's time at each, or [`LAST_HEARTBEAT`].
    /// The server's time in this node's heartbeat corrects this node's clock.
    pub(crate) async fn heartbeat(&self, presence: Presence) -> Result<Vec<(NodeId, String)>, StoreError> {
        let is_leaving = presence == Presence::Leaving;
        let node = || self.node.to_string();
        let step = match presence {
            Presence::Alive => Step::default().then_with_time("ZADD", keys::heartbeats(), arguments![node()]),
            Presence::Leaving => Step::default().then("ZADD", keys::heartbeats(), arguments![LAST_HEARTBEAT, node()]),
        };
        let step = step
            .then("PEXPIRE", keys::heartbeats(), arguments![HEARTBEATS_TTL])
            .then("HSET", keys::node_schemas(), arguments![node(), self.level().known_and_current()])
            .then("PEXPIRE", keys::node_schemas(), arguments![HEARTBEATS_TTL])
            .then("ZRANGE", keys::heartbeats(), arguments!["0", "-1", "WITHSCORES"]);
        let (sent_at, started) = (SystemClock.now(), Instant::now());
        let heartbeats = self.run_step(&NODE_STEP, step).await?.ok_or_else(|| StoreError::unreadable("heartbeats"))?;
        let heartbeats = heartbeats.fields()?.pairs()?;
        let parse = |(node, at): (Vec<u8>, Vec<u8>)| Some((NodeId::from_bytes(&node)?, String::from_utf8(at).ok()?));
        let heartbeats: Vec<_> = heartbeats.into_iter().filter_map(parse).collect();
        let own = heartbeats.iter().find(|(node, _)| *node == self.node && !is_leaving);
        if let Some(server_ms) = own.and_then(|(_, at)| at.parse().ok()) {
            self.server_clock.correct(sent_at, server_ms, started.elapsed());
        }
        let with_time = |(node, at): &(NodeId, String)| Some((*node, Timestamp::from_millis(at.parse().ok()?)));
        let members = heartbeats.iter().filter(|(_, at)| at != LAST_HEARTBEAT).filter_map(with_time).collect();
        *self.members.lock().unwrap_or_else(PoisonError::into_inner) = members;
        Ok(heartbeats)
    }

    /// Removes a dead node's heartbeat, unless the node has sent another one meanwhile.
    async fn forget(&self, dead: &DeadNode) -> Result<(), StoreError> {
        let Some(heartbeat) = &dead.heartbeat else { return Ok(()) };
        let node = || arguments![dead.node.to_string()];
        let step = Step::default()
            .only_if(heartbeat.as_str(), "ZSCORE", keys::heartbeats(), node())
            .then("HDEL", keys::node_schemas(), node())
            .then("ZREM", keys::heartbeats(), node());
        self.run_step(&NODE_STEP, step).await.map(drop)
    }

    /// Takes over from a dead node, then forgets it.
    pub(crate) async fn take_over_from(&self, store: &Store, dead: &DeadNode) -> Result<(), StoreError> {
        let (waiting, unknown) = store.take_over(dead.node).await?;
        self.forget(dead).await?;
        count_unknown(unknown);
        metrics::counter!("sakshi_deliveries_taken_over_total").increment(waiting);
        tracing::warn!(store.node = %dead.node, waiting, unknown, "a node is dead; this one has taken over its \
            deliveries");
        Ok(())
    }
}

/// Sends heartbeats, and takes over from dead nodes, until this node leaves or its store is dropped.
pub(crate) async fn send_heartbeats(
    shared: Arc<Shared>,
    store: Store,
    interval: Duration,
    mut leave_requests: mpsc::Receiver<Leave>,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut monitor = Monitor {
        shared: Arc::clone(&shared),
        store,
        heartbeats: Heartbeats::default(),
        heartbeats_until_check: HEARTBEATS_PER_CHECK,
        takeovers: JoinSet::new(),
        taking_over: HashSet::new(),
    };
    let mut leave_request = loop {
        tokio::select! {
            _ = ticks.tick() => {}
            request = leave_requests.recv() => break request,
        }
        let mut tick = pin!(monitor.tick());
        tokio::select! {
            () = &mut tick => {}
            request = leave_requests.recv() => {
                // A heartbeat in flight must not arrive after the last one.
                if request.is_some() {
                    tick.await;
                }
                break request;
            }
        }
    };
    while let Some(reply) = leave_request {
        let outcome = shared.heartbeat(Presence::Leaving).await.map(drop);
        // The caller may have stopped waiting; leaving again changes nothing.
        let _ = reply.send(outcome);
        leave_request = leave_requests.recv().await;
    }
}

/// This node's view of the other nodes, and its take-overs from dead ones.
struct Monitor {
    shared: Arc<Shared>,
    store: Store,
    heartbeats: Heartbeats,
    heartbeats_until_check: u32,
    /// Tasks that take over; each returns its dead node.
    takeovers: JoinSet<NodeId>,
    /// Dead nodes whose take-over is running.
    taking_over: HashSet<NodeId>,
}

impl Monitor {
    /// Sends a heartbeat and takes over from the nodes that have died. A failed heartbeat proves no death.
    async fn tick(&mut self) {
        while let Some(ended) = self.takeovers.try_join_next() {
            match ended {
                Ok(node) => {
                    self.taking_over.remove(&node);
                }
                // A task that panicked does not name its node, so all are tried again.
                Err(_) => self.taking_over.clear(),
            }
        }
        let us = self.shared.node;
        if !self.shared.link.loss_guard().has_opened_store() {
            return;
        }
        // The heartbeat reports the schema number at which this node works.
        let Ok(_) = self.shared.read_schema().await else { return };
        let Ok(round) = self.shared.heartbeat(Presence::Alive).await else { return };
        let mut dead = self.heartbeats.record(us, round);
        self.heartbeats_until_check -= 1;
        if self.heartbeats_until_check == 0 {
            self.heartbeats_until_check = HEARTBEATS_PER_CHECK;
            if let Ok(holders) = self.store.holders().await {
                dead.extend(self.heartbeats.record_holders(us, holders.into_iter().map(|(_, node)| node)));
            }
        }
        for dead in dead {
            // A task of its own takes over, because this node must go on sending heartbeats.
            if self.taking_over.insert(dead.node) {
                let (shared, store) = (Arc::clone(&self.shared), self.store.clone());
                self.takeovers.spawn(async move {
                    if let Err(error) = shared.take_over_from(&store, &dead).await {
                        tracing::warn!(store.node = %dead.node, %error, "the deliveries of a dead node are not taken \
                            over yet");
                    }
                    dead.node
                });
            }
        }
    }
}
