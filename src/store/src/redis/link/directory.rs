//! Who is in charge of which slot, as last heard.
//!
//! One server, the master that the sentinels name, or the masters of a cluster: each is a list of
//! slot ranges with a node, and everything above this file sees nothing else. A node keeps its
//! connections when the list changes. Asking again is done by one caller for all who failed with
//! the same list, and not more often than every [`PACE`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::timeout;

use super::connect::Connector;
use super::failure::Failure;
use super::health::Health;
use super::node::Node;
use super::slot_ranges::{self, SLOTS, SlotRange};
use super::topology::{Address, RedisTopology};

/// How old an answer of the sentinels may be: a master that they have replaced goes on as one for
/// seconds, and does not say so.
const FRESH: Duration = Duration::from_secs(1);

/// Between two questions who is in charge.
const PACE: Duration = Duration::from_millis(50);

/// What one of them may take to answer it.
const QUESTION: Duration = Duration::from_millis(400);

/// The nodes in charge.
#[derive(Debug)]
pub(super) struct Directory {
    connector: Arc<Connector>,
    /// Of those who know the topology.
    pub(super) health: Health,
    map: RwLock<Arc<Map>>,
    asking: Mutex<Asking>,
    epoch: Instant,
    /// Milliseconds after the epoch of the latest look at who the sentinels say is master.
    looked: AtomicU64,
}

/// One version of the truth.
#[derive(Debug)]
struct Map {
    version: u64,
    ranges: Vec<Range>,
}

#[derive(Debug)]
struct Range {
    first: u16,
    last: u16,
    node: Arc<Node>,
}

#[derive(Debug, Default)]
struct Asking {
    last: Option<Instant>,
    /// With whom to begin: never for long with one that answers wrongly.
    turn: usize,
}

/// The node in charge, and by which version.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) node: Arc<Node>,
    pub(super) version: u64,
}

impl Directory {
    pub(super) fn new(connector: Arc<Connector>) -> Self {
        let ranges = match (&connector.servers.topology, connector.servers.seeds.first()) {
            (RedisTopology::Standalone, Some(server)) => {
                vec![Range { first: 0, last: SLOTS - 1, node: Arc::new(Node::new(server.clone())) }]
            }
            _ => Vec::new(),
        };
        let map = RwLock::new(Arc::new(Map { version: 0, ranges }));
        Self {
            connector,
            health: Health::new(),
            map,
            asking: Mutex::new(Asking::default()),
            epoch: Instant::now(),
            looked: AtomicU64::new(0),
        }
    }

    /// The node in charge of a slot, if one is known.
    pub(super) fn locate(self: &Arc<Self>, slot: u16) -> Option<Located> {
        self.look_now_and_then();
        let map = self.current();
        let after = map.ranges.partition_point(|range| range.first <= slot);
        let range = map.ranges.get(after.checked_sub(1)?).filter(|range| slot <= range.last)?;
        Some(Located { node: Arc::clone(&range.node), version: map.version })
    }

    /// The node at an address, with its connections if it is in charge of anything.
    pub(super) fn node_at(&self, address: &Address) -> Arc<Node> {
        self.current().node_at(address)
    }

    /// Everyone who is in charge of anything.
    pub(super) fn in_charge(&self) -> Vec<Address> {
        let mut charged: Vec<Address> = Vec::new();
        for range in &self.current().ranges {
            if !charged.contains(&range.node.address) {
                charged.push(range.node.address.clone());
            }
        }
        charged
    }

    /// Everyone who might know something: those in charge, then those from the settings.
    fn known(&self) -> Vec<Address> {
        let mut known = self.in_charge();
        for address in &self.connector.servers.seeds {
            if !known.contains(address) {
                known.push(address.clone());
            }
        }
        known
    }

    /// Whether this is still the version that counts.
    pub(super) fn version(&self) -> u64 {
        self.current().version
    }

    /// Asks who is in charge, unless someone has since `seen`. `hint` is asked first, `suspect`,
    /// which may hang, last.
    pub(super) async fn ask_again(&self, seen: u64, hint: Option<Address>, suspect: Option<&Address>) {
        if self.connector.servers.topology == RedisTopology::Standalone {
            return;
        }
        let mut asking = self.asking.lock().await;
        let recently = asking.last.is_some_and(|last| last.elapsed() < PACE);
        if self.version() != seen || recently {
            return;
        }
        asking.last = Some(Instant::now());
        asking.turn = asking.turn.wrapping_add(1);
        let mut candidates = match self.connector.servers.topology {
            RedisTopology::Sentinel { .. } => self.connector.servers.seeds.clone(),
            _ => self.known(),
        };
        let turn = asking.turn % candidates.len().max(1);
        candidates.rotate_left(turn);
        candidates.sort_by_key(|candidate| Some(candidate) == suspect);
        for candidate in hint.into_iter().chain(candidates) {
            let Ok(Ok(ranges)) = timeout(QUESTION, self.ask(&candidate)).await else { continue };
            self.health.answered();
            self.adopt(&ranges);
            return;
        }
        self.health.failed();
    }

    /// Asks the sentinels again when it is time, beside the calls that go on meanwhile.
    fn look_now_and_then(self: &Arc<Self>) {
        if !matches!(self.connector.servers.topology, RedisTopology::Sentinel { .. }) {
            return;
        }
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        let looked = self.looked.load(Ordering::Relaxed);
        let due = Duration::from_millis(now.saturating_sub(looked)) >= FRESH;
        if due && self.looked.compare_exchange(looked, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let directory = Arc::clone(self);
            tokio::spawn(async move { directory.ask_again(directory.version(), None, None).await });
        }
    }

    async fn ask(&self, candidate: &Address) -> Result<Vec<SlotRange>, Failure> {
        let topology = &self.connector.servers.topology;
        let connection = self.connector.open_seed(candidate).await?;
        let answer = self.connector.ask(&connection, &slot_ranges::question(topology)).await?;
        slot_ranges::read(topology, &answer, candidate).ok_or(Failure::NotNow("it does not know who is in charge"))
    }

    fn adopt(&self, ranges: &[SlotRange]) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let old = map.ranges.iter().map(|range| (range.first, range.last, &range.node.address));
        if old.eq(ranges.iter().map(|charge| (charge.first, charge.last, &charge.address))) {
            return;
        }
        let mut next = Map { version: map.version + 1, ranges: Vec::new() };
        for SlotRange { first, last, address } in ranges {
            let known = next.ranges.iter().chain(&map.ranges).find(|range| range.node.address == *address);
            let node = known.map_or_else(|| Arc::new(Node::new(address.clone())), |range| Arc::clone(&range.node));
            next.ranges.push(Range { first: *first, last: *last, node });
        }
        tracing::info!(redis.nodes = ranges.len(), redis.version = next.version, "other Redis servers are in charge");
        *map = Arc::new(next);
    }

    fn current(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Map {
    fn node_at(&self, address: &Address) -> Arc<Node> {
        let known = self.ranges.iter().find(|range| range.node.address == *address);
        known.map_or_else(|| Arc::new(Node::new(address.clone())), |range| Arc::clone(&range.node))
    }
}
