//! The servers of the shared records and their replicas. A replica lags, then catches up or takes over. On a cluster
//! each shard fails over by itself. For a while after a failover, a node may still reach the former primary.

use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use sakshi_store::engine::memory::MemoryEngine;
use sakshi_store::engine::{Key, Place};
use sakshi_store::redis::NodeId;
use tokio::sync::broadcast;

use crate::shape::Deployment;
use crate::world::lock;

/// Number of shards of a cluster.
const SHARDS: u8 = 3;

/// A set of shards, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shards(u8);

const DIGEST_BYTES: usize = 32;

impl Shards {
    /// Returns the shards of these keys.
    pub(crate) fn of_keys<'a>(deployment: Deployment, keys: impl IntoIterator<Item = &'a Key>) -> Self {
        Self(keys.into_iter().fold(0, |shards, key| shards | Self::of_key(deployment, key.place, &key.id).0))
    }

    /// Returns the shard of a key.
    pub(crate) fn of_key(deployment: Deployment, place: Place, id: &[u8]) -> Self {
        let number = match place {
            _ if deployment != Deployment::Cluster => 0,
            Place::Partition(partition) => partition.number() % SHARDS,
            // A digest. A credential's digest differs between two runs of a seed, as its signature does, and a run must
            // repeat exactly.
            Place::Alone if id.len() == DIGEST_BYTES => 0,
            Place::Alone => id.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)) % SHARDS,
        };
        Self(1 << number)
    }

    /// All shards.
    pub(crate) const ALL: Self = Self(u8::MAX);

    /// Returns the shard with this number, modulo the number of shards; outside a cluster the only one.
    pub(crate) fn with_number(deployment: Deployment, number: u64) -> Self {
        if deployment == Deployment::Cluster { Self(1 << (number % u64::from(SHARDS))) } else { Self(1) }
    }

    pub(crate) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The content of a replica that no longer receives writes.
struct Lag {
    shard: Shards,
    content: MemoryEngine,
    since: Duration,
}

/// A former primary, and a node that still reaches it.
struct FormerPrimary {
    engine: MemoryEngine,
    node: NodeId,
    until: Duration,
}

/// Returns true if one of the periods overlaps the time from `sent_at` to `answered_at`.
fn overlaps_any(periods: &[(Duration, Duration)], sent_at: Duration, answered_at: Duration) -> bool {
    periods.iter().any(|(since, until)| sent_at <= *until && *since <= answered_at)
}

/// The servers with the shared records, and their replicas.
pub(crate) struct Servers {
    deployment: Deployment,
    engine: RwLock<MemoryEngine>,
    lag: Mutex<Option<Lag>>,
    former_primary: Mutex<Option<FormerPrimary>>,
    /// Periods in which a reader may have seen writes that a failover lost, or the former primary's state.
    unconfirmed: Mutex<Vec<(Duration, Duration)>>,
    /// The periods of the former primary alone.
    superseded: Mutex<Vec<(Duration, Duration)>>,
    /// Tells answers that wait for the replica that the lag is over: true if the replica has caught up.
    lag_ends: broadcast::Sender<bool>,
}

impl Servers {
    pub(crate) fn new(deployment: Deployment, engine: MemoryEngine) -> Self {
        Self {
            deployment,
            engine: RwLock::new(engine),
            lag: Mutex::default(),
            former_primary: Mutex::default(),
            unconfirmed: Mutex::default(),
            superseded: Mutex::default(),
            lag_ends: broadcast::channel(1).0,
        }
    }

    /// Returns the current records.
    pub(crate) fn engine(&self) -> MemoryEngine {
        self.engine.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the former primary, if this node still reaches it.
    pub(crate) fn former_primary(&self, node: NodeId, now: Duration) -> Option<MemoryEngine> {
        lock(&self.former_primary)
            .as_ref()
            .filter(|former| former.node == node && now < former.until)
            .map(|former| former.engine.clone())
    }

    /// Stops replication to this shard's replica.
    pub(crate) fn start_lag(&self, shard: Shards, now: Duration) {
        *lock(&self.lag) = Some(Lag { shard, content: self.engine().replica(), since: now });
    }

    /// Returns true if one of these shards has a replica that lags.
    pub(crate) fn are_lagging(&self, shards: Shards) -> bool {
        lock(&self.lag).as_ref().is_some_and(|lag| lag.shard.intersects(shards))
    }

    /// Brings the lagging replica up to date.
    pub(crate) fn catch_up(&self) {
        if lock(&self.lag).take().is_some() {
            let has_caught_up = true;
            self.end_lag(has_caught_up);
        }
    }

    /// Lets the lagging replica take over. `misled_node` still reaches the former primary, until the given time.
    pub(crate) fn fail_over(&self, now: Duration, misled_node: Option<(NodeId, Duration)>) {
        let Some(Lag { shard, content, since }) = lock(&self.lag).take() else { return };
        let until = misled_node.map_or(now, |(_, until)| until);
        lock(&self.unconfirmed).push((since, until));
        lock(&self.superseded).push((now, until));
        if self.deployment == Deployment::Cluster {
            self.engine().copy_from(&content, |place, id| Shards::of_key(self.deployment, place, id).intersects(shard));
        } else {
            let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
            let former = std::mem::replace(&mut *engine, content);
            *lock(&self.former_primary) =
                misled_node.map(|(node, until)| FormerPrimary { engine: former, node, until });
        }
        let has_caught_up = false;
        self.end_lag(has_caught_up);
    }

    fn end_lag(&self, has_caught_up: bool) {
        // Perhaps no answer waits.
        let _ = self.lag_ends.send(has_caught_up);
    }

    /// Waits for the end of the lag. Returns true if the replica has caught up, false if it has taken over.
    pub(crate) async fn wait_for_lag_end(&self) -> bool {
        self.lag_ends.subscribe().recv().await.unwrap_or(false)
    }

    /// Returns true if a reader between these moments may have seen stale or unconfirmed state.
    pub(crate) fn may_be_unconfirmed(&self, sent_at: Duration, answered_at: Duration) -> bool {
        overlaps_any(&lock(&self.unconfirmed), sent_at, answered_at)
    }

    /// Returns true if a reader between these moments may have asked the former primary.
    pub(crate) fn may_be_superseded(&self, sent_at: Duration, answered_at: Duration) -> bool {
        overlaps_any(&lock(&self.superseded), sent_at, answered_at)
    }
}
