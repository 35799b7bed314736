//! Owners of the slots, as last reported.
//!
//! One server, the master that the sentinels name, or the masters of a cluster: each is a list of slot ranges with a
//! node; callers of this file see nothing else. A node keeps its connections when the list changes. One caller
//! refreshes the list on behalf of all that failed with the same version, at most once every [`REFRESH_INTERVAL`].

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

/// Maximum age of the sentinels' answer. The limit is short, because a replaced master accepts writes for some more
/// seconds.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Minimum interval between two refreshes of the list.
const REFRESH_INTERVAL: Duration = Duration::from_millis(50);

/// Time limit for one server to answer.
const QUERY_TIMEOUT: Duration = Duration::from_millis(400);

/// The list of slot ranges with their nodes.
#[derive(Debug)]
pub(super) struct Directory {
    connector: Arc<Connector>,
    /// The health of the servers that know the topology.
    pub(super) health: Health,
    list: RwLock<Arc<OwnerList>>,
    refresh: Mutex<RefreshState>,
    epoch: Instant,
    /// Milliseconds from the epoch to the latest query of the sentinels.
    queried_at: AtomicU64,
}

/// One version of the list.
#[derive(Debug)]
struct OwnerList {
    version: u64,
    ranges: Vec<NodeRange>,
}

/// A range of slots, and the node that owns it.
#[derive(Debug)]
struct NodeRange {
    first: u16,
    last: u16,
    node: Arc<Node>,
}

/// The latest refresh of the list.
#[derive(Debug, Default)]
struct RefreshState {
    last: Option<Instant>,
    /// Index of the server asked first. It changes with every refresh, so that a server with wrong answers does not
    /// always win.
    turn: usize,
    /// True if the log states why no server could be asked.
    is_logged: bool,
}

/// The servers that a refresh asks first and last.
#[derive(Clone, Debug, Default)]
pub(super) struct AskingOrder<'a> {
    /// A server that probably knows the new owners.
    pub(super) first: Option<Address>,
    /// A server that may hang.
    pub(super) last: Option<&'a Address>,
}

/// The node that owns a slot, and the version of the list that names it.
#[derive(Clone, Debug)]
pub(super) struct SlotOwner {
    pub(super) node: Arc<Node>,
    pub(super) version: u64,
}

impl Directory {
    pub(super) fn new(connector: Arc<Connector>) -> Self {
        let ranges = match (&connector.servers.topology, connector.servers.seeds.first()) {
            (RedisTopology::Standalone, Some(server)) => {
                vec![NodeRange { first: 0, last: SLOTS - 1, node: Arc::new(Node::new(server.clone())) }]
            }
            _ => Vec::new(),
        };
        let list = RwLock::new(Arc::new(OwnerList { version: 0, ranges }));
        Self {
            connector,
            health: Health::new(),
            list,
            refresh: Mutex::new(RefreshState::default()),
            epoch: Instant::now(),
            queried_at: AtomicU64::new(0),
        }
    }

    /// Returns the node that owns a slot, if it is known.
    pub(super) fn locate(self: &Arc<Self>, slot: u16) -> Option<SlotOwner> {
        self.refresh_if_stale();
        let list = self.current();
        let after = list.ranges.partition_point(|range| range.first <= slot);
        let range = list.ranges.get(after.checked_sub(1)?).filter(|range| slot <= range.last)?;
        Some(SlotOwner { node: Arc::clone(&range.node), version: list.version })
    }

    /// Returns the node at an address, with its connections if it owns slots.
    pub(super) fn node_at(&self, address: &Address) -> Arc<Node> {
        self.current().node_at(address)
    }

    /// Returns the addresses of all nodes that own slots.
    pub(super) fn owners(&self) -> Vec<Address> {
        let mut owners: Vec<Address> = Vec::new();
        for range in &self.current().ranges {
            if !owners.contains(&range.node.address) {
                owners.push(range.node.address.clone());
            }
        }
        owners
    }

    /// Returns a slot of each node that owns any, in the order of the slots.
    pub(super) fn slots_of_owners(&self) -> Vec<u16> {
        let list = self.current();
        let is_first = |index: usize| {
            list.ranges[..index].iter().all(|before| before.node.address != list.ranges[index].node.address)
        };
        (0..list.ranges.len()).filter(|&index| is_first(index)).map(|index| list.ranges[index].first).collect()
    }

    /// Returns the servers that may know the topology: the owners of slots, then the servers from the settings.
    fn known_servers(&self) -> Vec<Address> {
        let mut known = self.owners();
        for address in &self.connector.servers.seeds {
            if !known.contains(address) {
                known.push(address.clone());
            }
        }
        known
    }

    /// Returns the version of the current list.
    pub(super) fn version(&self) -> u64 {
        self.current().version
    }

    /// Asks the servers for the owners, one after the other until one answers. Does nothing if the list has changed
    /// since `known_version`, or was refreshed within [`REFRESH_INTERVAL`].
    pub(super) async fn refresh(&self, known_version: u64, order: AskingOrder<'_>) {
        if self.connector.servers.topology == RedisTopology::Standalone {
            return;
        }
        let mut refresh = self.refresh.lock().await;
        let is_recent = refresh.last.is_some_and(|last| last.elapsed() < REFRESH_INTERVAL);
        if self.version() != known_version || is_recent {
            return;
        }
        refresh.last = Some(Instant::now());
        refresh.turn = refresh.turn.wrapping_add(1);
        let mut candidates = match self.connector.servers.topology {
            RedisTopology::Sentinel { .. } => self.connector.servers.seeds.clone(),
            _ => self.known_servers(),
        };
        let turn = refresh.turn % candidates.len().max(1);
        candidates.rotate_left(turn);
        candidates.sort_by_key(|candidate| Some(candidate) == order.last);
        let mut failures = Vec::new();
        for candidate in order.first.into_iter().chain(candidates) {
            match timeout(QUERY_TIMEOUT, self.query_owners(&candidate)).await {
                Ok(Ok(ranges)) => {
                    refresh.is_logged = false;
                    self.health.record_answer();
                    return self.adopt(&ranges);
                }
                Ok(Err(failure)) => failures.push((candidate, failure.reason())),
                Err(_) => failures.push((candidate, "it did not answer in time")),
            }
        }
        self.health.record_failure();
        if !std::mem::replace(&mut refresh.is_logged, true) {
            for (server, reason) in failures {
                tracing::warn!(redis.server = %server, reason, "this server could not be asked for the owners of the \
                    slots");
            }
        }
    }

    /// Returns the failure of a call whose slot has no known owner.
    pub(super) fn unknown_owner_failure(&self) -> Failure {
        Failure::Unreachable(match self.connector.servers.topology {
            RedisTopology::Sentinel { .. } => "no sentinel can be asked for the master, or none knows it",
            _ => "no server can be asked for the owner of the slot, or none knows it",
        })
    }

    /// Starts a refresh in the background when the answer of the sentinels is too old.
    fn refresh_if_stale(self: &Arc<Self>) {
        if !matches!(self.connector.servers.topology, RedisTopology::Sentinel { .. }) {
            return;
        }
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        let queried_at = self.queried_at.load(Ordering::Relaxed);
        let is_stale = Duration::from_millis(now.saturating_sub(queried_at)) >= MAX_AGE;
        // Only the caller that sets the new time starts the refresh.
        if is_stale && self.queried_at.compare_exchange(queried_at, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let directory = Arc::clone(self);
            tokio::spawn(async move { directory.refresh(directory.version(), AskingOrder::default()).await });
        }
    }

    /// Asks a server for the owners of the slots.
    async fn query_owners(&self, candidate: &Address) -> Result<Vec<SlotRange>, Failure> {
        let topology = &self.connector.servers.topology;
        let connection = self.connector.open_for_topology(candidate).await?;
        let answer = self.connector.ask(&connection, &slot_ranges::owners_query(topology)).await?;
        slot_ranges::parse_owners(topology, &answer, candidate)
            .ok_or(Failure::TryLater("it does not know the topology"))
    }

    /// Replaces the list, if the owners have changed. Known nodes keep their connections.
    fn adopt(&self, ranges: &[SlotRange]) {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let old = list.ranges.iter().map(|range| (range.first, range.last, &range.node.address));
        if old.eq(ranges.iter().map(|range| (range.first, range.last, &range.address))) {
            return;
        }
        let mut next = OwnerList { version: list.version + 1, ranges: Vec::new() };
        for SlotRange { first, last, address } in ranges {
            let known = next.ranges.iter().chain(&list.ranges).find(|range| range.node.address == *address);
            let node = known.map_or_else(|| Arc::new(Node::new(address.clone())), |range| Arc::clone(&range.node));
            next.ranges.push(NodeRange { first: *first, last: *last, node });
        }
        tracing::info!(redis.nodes = ranges.len(), redis.version = next.version, "other Redis servers own the slots");
        *list = Arc::new(next);
    }

    fn current(&self) -> Arc<OwnerList> {
        Arc::clone(&self.list.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OwnerList {
    /// Returns the node at an address, with its connections if the list has it.
    fn node_at(&self, address: &Address) -> Arc<Node> {
        let known = self.ranges.iter().find(|range| range.node.address == *address);
        known.map_or_else(|| Arc::new(Node::new(address.clone())), |range| Arc::clone(&range.node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::link::{Link, LinkOptions, RedisServers};
    use crate::redis::tests::server::RedisServer;
    use crate::redis::tests::server::groups::RedisCluster;

    /// Returns a local address with this port.
    fn at(port: u16) -> Address {
        Address { host: "127.0.0.1".to_owned(), port }
    }

    /// Returns the directory of a cluster with this server in its settings.
    fn directory(url: &str) -> Arc<Directory> {
        Arc::clone(
            &Link::new(LinkOptions::new(RedisServers::new(&[url], RedisTopology::Cluster).unwrap())).calls.directory,
        )
    }

    /// Returns the number of CLUSTER SLOTS commands that a server has received.
    fn slots_queries(server: &RedisServer) -> u64 {
        let info = server.answer(&["INFO", "commandstats"]).text().unwrap();
        let calls = |line: &str| line.strip_prefix("cmdstat_cluster|slots:calls=")?.split(',').next()?.parse().ok();
        info.lines().find_map(calls).unwrap_or(0)
    }

    #[test]
    fn a_slot_is_located_at_its_owner_and_each_owner_is_listed_once() {
        let directory = directory("redis://127.0.0.1:1");
        assert!(
            directory.locate(0).is_none() && directory.owners().is_empty() && directory.slots_of_owners().is_empty()
        );
        // First slot, last slot, port of the owner.
        let ranges = [(0, 9, 7), (10, 19, 8), (20, 29, 7), (40, 49, 9)];
        let ranges = ranges.map(|(first, last, port)| SlotRange { first, last, address: at(port) });
        directory.adopt(&ranges);
        let port_and_version = |slot| directory.locate(slot).map(|owner| (owner.node.address.port, owner.version));
        assert_eq!(
            [0, 9, 10, 19, 20, 29, 40, 49].map(|slot| port_and_version(slot).unwrap()),
            [7, 7, 8, 8, 7, 7, 9, 9].map(|port| (port, 1))
        );
        assert_eq!([30, 39, 50, SLOTS - 1].map(port_and_version), [None; 4]);
        assert_eq!(directory.owners(), [7, 8, 9].map(at));
        assert_eq!(directory.slots_of_owners(), [0, 10, 40]);
        assert_eq!(directory.known_servers(), [7, 8, 9, 1].map(at));

        let node = directory.node_at(&at(8));
        assert!(Arc::ptr_eq(&node, &directory.locate(10).unwrap().node));
        directory.adopt(&ranges);
        assert_eq!(directory.version(), 1, "nothing has changed");
        directory.adopt(&ranges[1..2]);
        assert_eq!(directory.version(), 2);
        assert!(Arc::ptr_eq(&node, &directory.locate(10).unwrap().node), "it keeps its connections");
        assert_eq!(directory.owners(), [at(8)]);
    }

    #[tokio::test]
    async fn a_suspect_server_is_not_asked_while_another_one_answers() {
        let cluster = RedisCluster::start(0, &[]);
        let link = Link::new(LinkOptions::new(RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap()));
        let directory = &link.calls.directory;
        let [suspect, hint, _] = cluster.nodes() else { panic!("three masters") };
        let (suspect_queries, address) = (slots_queries(suspect), at(suspect.port()));
        for _ in 0..6 {
            tokio::time::sleep(REFRESH_INTERVAL).await;
            let order = AskingOrder { last: Some(&address), ..AskingOrder::default() };
            directory.refresh(directory.version(), order).await;
        }
        assert_eq!((slots_queries(suspect), directory.owners().len()), (suspect_queries, 3));
        let hint_queries = slots_queries(hint);
        tokio::time::sleep(REFRESH_INTERVAL).await;
        let order = AskingOrder { first: Some(at(hint.port())), ..AskingOrder::default() };
        directory.refresh(directory.version(), order).await;
        assert_eq!((slots_queries(suspect), slots_queries(hint)), (suspect_queries, hint_queries + 1));
    }

    #[tokio::test]
    async fn subscriptions_use_the_owners_in_turn() {
        let link =
            Link::new(LinkOptions::new(RedisServers::new(&["redis://127.0.0.1:1"], RedisTopology::Cluster).unwrap()));
        let range = |first, port| SlotRange { first, last: first + 9, address: at(port) };
        link.calls.directory.adopt(&[range(0, 7), range(10, 8), range(20, 9)]);
        for (turn, port) in [7, 8, 9, 7, 8, 9].into_iter().enumerate() {
            assert_eq!(link.subscription_address(turn).await, Some(at(port)));
        }
    }

    #[tokio::test]
    async fn callers_with_the_same_list_share_one_refresh_per_interval() {
        let server = RedisServer::start(&[]);
        let directory = directory(&server.url());
        let queries = || slots_queries(&server);
        directory.refresh(1, AskingOrder::default()).await;
        assert_eq!(queries(), 0, "the list has changed since");
        // A busy machine may take longer than the interval.
        for _ in 0..100 {
            tokio::time::sleep(REFRESH_INTERVAL).await;
            let (before, started) = (queries(), Instant::now());
            for _ in 0..3 {
                directory.refresh(0, AskingOrder::default()).await;
            }
            if started.elapsed() < REFRESH_INTERVAL {
                return assert_eq!(queries(), before + 1);
            }
        }
        panic!("three refreshes never took less than the interval");
    }
}
