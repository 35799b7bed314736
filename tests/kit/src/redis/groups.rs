//! Groups of servers: a master with replicas and three sentinels, and a cluster of three masters. Both notice a dead
//! master within a second or two.

use std::process::Command;

use super::resp::Reply;
use super::{RedisServer, TIMEOUT, eventually};

/// Settings that make replicas ready at once.
const REPLICATION: &[&str] = &["repl-diskless-sync-delay 0", "repl-diskless-sync yes"];

/// A master, its replicas, and three sentinels that agree on the master.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

impl Sentinels {
    /// The sentinels' name for the master.
    pub const SERVICE: &'static str = "sakshi";

    /// Starts a master and replicas with lines of `redis.conf`. Returns once all are in sync and the sentinels agree.
    pub fn start(replicas: usize, lines: &[&str]) -> Self {
        let lines = [lines, REPLICATION].concat();
        let master = RedisServer::start(&lines);
        let replica_of = format!("replicaof 127.0.0.1 {}", master.port());
        let mut servers = vec![master];
        servers.extend((0..replicas).map(|_| RedisServer::start(&[lines.as_slice(), &[&replica_of]].concat())));
        eventually("replication", TIMEOUT, || servers[1..].iter().all(is_in_sync).then_some(()));

        let name = Self::SERVICE;
        let sentinel_lines = [
            format!("sentinel monitor {name} 127.0.0.1 {} 2", servers[0].port()),
            format!("sentinel down-after-milliseconds {name} 500"),
            format!("sentinel failover-timeout {name} 3000"),
            format!("sentinel parallel-syncs {name} 5"),
        ];
        let sentinel_lines: Vec<&str> = sentinel_lines.iter().map(String::as_str).collect();
        let sentinels: Vec<_> = (0..3).map(|_| RedisServer::start_as(&["--sentinel"], &sentinel_lines)).collect();
        eventually("sentinels that know everyone", TIMEOUT, || {
            let knows_everyone = |sentinel: &RedisServer| {
                let master = sentinel.ask(&["SENTINEL", "MASTER", name]).ok()?;
                let count = |field: &str| master.field(field)?.parse::<usize>().ok();
                (count("num-other-sentinels")? == 2 && count("num-slaves")? == replicas).then_some(())
            };
            sentinels.iter().all(|sentinel| knows_everyone(sentinel).is_some()).then_some(())
        });
        Self { servers, sentinels }
    }

    /// Returns the URLs for a client: the sentinels.
    pub fn urls(&self) -> Vec<String> {
        self.sentinels.iter().map(RedisServer::url).collect()
    }

    /// Returns the master and its replicas.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// Returns the master according to the sentinels.
    pub fn master(&self) -> &RedisServer {
        let port = eventually("a sentinel that answers", TIMEOUT, || self.sentinels.iter().find_map(master_port));
        self.server(port)
    }

    pub fn replicas(&self) -> impl Iterator<Item = &RedisServer> {
        let master = self.master().port();
        self.servers.iter().filter(move |server| server.port() != master)
    }

    /// Waits until all sentinels name another master than the one at this port, and it acts as one.
    pub fn await_failover(&self, old_port: u16) -> &RedisServer {
        eventually("a failover", TIMEOUT, || {
            let named: Vec<u16> = self.sentinels.iter().filter_map(master_port).collect();
            let new_port = *named.first()?;
            let all_agree = named.len() == self.sentinels.len() && named.iter().all(|&port| port == new_port);
            let server = (all_agree && new_port != old_port).then(|| self.server(new_port))?;
            (server.info("role")? == "master").then_some(server)
        })
    }

    /// Makes another server master while all stay alive.
    pub fn demote_master(&self) -> &RedisServer {
        let old_port = self.master().port();
        self.sentinels[0].answer(&["SENTINEL", "FAILOVER", Self::SERVICE]);
        self.await_failover(old_port)
    }

    fn server(&self, port: u16) -> &RedisServer {
        self.servers.iter().find(|server| server.port() == port).expect("one of ours")
    }
}

/// A cluster of masters, each with the same number of replicas.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts three masters with lines of `redis.conf`; every slot is served on return.
    pub fn start(replicas: usize, lines: &[&str]) -> Self {
        Self::with_masters(3, replicas, lines)
    }

    /// As [`RedisCluster::start`], with at least three masters.
    pub fn with_masters(masters: usize, replicas: usize, lines: &[&str]) -> Self {
        let cluster_lines = ["cluster-enabled yes", "cluster-node-timeout 1000", "cluster-config-file nodes.conf"];
        let lines = [lines, REPLICATION, &cluster_lines].concat();
        let nodes: Vec<_> = (0..masters * (1 + replicas)).map(|_| RedisServer::start(&lines)).collect();
        let mut command = Command::new("redis-cli");
        command.args(["--cluster", "create"]).args(nodes.iter().map(RedisServer::address));
        let output = command
            .args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"])
            .output()
            .expect("redis-cli is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let cluster = Self { nodes };
        eventually("a complete cluster", TIMEOUT, || cluster.is_complete(replicas).then_some(()));
        cluster
    }

    /// Returns the URLs of all nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Returns the slot of a key, as the cluster computes it.
    pub fn slot_of(&self, key: &str) -> u16 {
        let slot = self.running().next().expect("one is running").answer(&["CLUSTER", "KEYSLOT", key]);
        slot.integer().and_then(|slot| u16::try_from(slot).ok()).expect("a slot")
    }

    /// Returns the node that serves a slot, according to the running nodes.
    pub fn master_of(&self, slot: u16) -> &RedisServer {
        let port =
            eventually("a node that answers", TIMEOUT, || self.running().find_map(|node| master_port_of(node, slot)));
        self.nodes.iter().find(|node| node.port() == port).expect("one of ours")
    }

    /// Moves a slot with its keys to another master. At `midway` the keys have moved, and the old master still has the
    /// slot.
    pub async fn move_slot(&self, slot: u16, midway: impl Future<Output = ()>) {
        let from = self.master_of(slot);
        let to = self.running().find(|node| is_master(node) && node.port() != from.port()).expect("another master");
        let id = |node: &RedisServer| node.answer(&["CLUSTER", "MYID"]).text().expect("an id");
        let (slot, port) = (slot.to_string(), to.port().to_string());
        to.answer(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
        from.answer(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
        let keys = from.answer(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"]);
        let mut migrate = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"].map(str::as_bytes).to_vec();
        migrate.extend(keys.members().iter().filter_map(Reply::bytes));
        let expected = if keys.members().is_empty() { "NOKEY" } else { "OK" };
        assert_eq!(from.answer(&migrate).text().as_deref(), Some(expected), "the keys have moved");
        midway.await;
        for node in [to, from].into_iter().chain(self.running().filter(|node| is_master(node))) {
            node.answer(&["CLUSTER", "SETSLOT", &slot, "NODE", &id(to)]);
        }
    }

    /// Kills the master of a slot and returns its port.
    pub fn kill_master_of(&self, slot: u16) -> u16 {
        let master = self.master_of(slot);
        master.kill9();
        master.port()
    }

    /// Waits until another node than the one at this port serves the slot, and all nodes agree.
    pub fn await_failover(&self, slot: u16, old_port: u16) -> &RedisServer {
        eventually("a promotion", TIMEOUT, || {
            let masters: Vec<_> = self.running().map(|node| master_port_of(node, slot)).collect();
            let new_port = masters.first().copied().flatten().filter(|&port| port != old_port)?;
            let all_agree = masters.iter().all(|&port| port == Some(new_port)) && self.running().all(is_ok);
            all_agree.then(|| self.nodes.iter().find(|node| node.port() == new_port)).flatten()
        })
    }

    fn running(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().filter(|node| node.is_running())
    }

    /// Returns true if every node knows the whole cluster and is in sync.
    fn is_complete(&self, replicas: usize) -> bool {
        let knows_all_members = |node: &RedisServer| {
            let slots = node.ask(&["CLUSTER", "SLOTS"]).ok()?;
            let ranges = slots.members();
            (!ranges.is_empty() && ranges.iter().all(|range| range.members().len() == 3 + replicas)).then_some(())
        };
        let is_synced = |node: &RedisServer| is_master(node) || is_in_sync(node);
        self.nodes.iter().all(|node| is_ok(node) && knows_all_members(node).is_some() && is_synced(node))
    }
}

fn is_master(node: &RedisServer) -> bool {
    node.info("role").is_some_and(|role| role == "master")
}

/// Returns true if a replica's link to its master is up.
fn is_in_sync(replica: &RedisServer) -> bool {
    replica.info("master_link_status").is_some_and(|status| status == "up")
}

/// Returns true if a node reports that the cluster works.
fn is_ok(node: &RedisServer) -> bool {
    let state = node.ask(&["CLUSTER", "INFO"]).ok().and_then(|info| info.text());
    state.is_some_and(|text| text.contains("cluster_state:ok"))
}

/// Returns the master's port according to a sentinel.
fn master_port(sentinel: &RedisServer) -> Option<u16> {
    let address = sentinel.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Sentinels::SERVICE]).ok()?;
    address.members().get(1)?.text()?.parse().ok()
}

/// Returns the port of a slot's master according to a node.
fn master_port_of(node: &RedisServer, slot: u16) -> Option<u16> {
    let slots = node.ask(&["CLUSTER", "SLOTS"]).ok()?;
    let within = |range: &&Reply| match range.members() {
        [Reply::Integer(first), Reply::Integer(last), ..] => (*first..=*last).contains(&i64::from(slot)),
        _ => false,
    };
    let port = slots.members().iter().find(within)?.members().get(2)?.members().get(1)?.integer()?;
    u16::try_from(port).ok()
}
