//! A Redis Cluster of three masters. The busiest is killed while its replica lags, and the replica is promoted: with
//! and without waiting for replicas.
//!
//! Waiting keeps every promise. Without it, acknowledged but unreplicated writes are lost, and the nodes stop until an
//! operator accepts that; the test prints the losses.

use sakshi_client::judge::journal::{Polled, Reply};
use sakshi_domain::ids::ClientId;
use sakshi_kit::node::TestNode;
use sakshi_kit::random::Random;
use sakshi_kit::redis::groups::RedisCluster;
use sakshi_kit::redis::{DURABLE, RedisServer};
use sakshi_kit::storm::{Load, Notes, StormClient, Worker, summary};
use sakshi_kit::waiting::{TIMEOUT, eventually};

use crate::nodes::launched;

const WORKERS: u64 = 9;
/// Transactions completed before and after.
const LOAD: usize = 60;
/// Writes that the old master acknowledges, or leaves in doubt, while its replica is paused.
const LAG: usize = 40;

struct Failover {
    /// True if writes wait for the replica.
    waits: bool,
    nodes: Vec<TestNode>,
    client: StormClient,
    cluster: RedisCluster,
}

impl Failover {
    async fn begin(wait_replicas: u32) -> Self {
        let cluster = RedisCluster::start(1, DURABLE);
        let (urls, wait) = (cluster.urls().join(","), wait_replicas.to_string());
        let settings = [("STORE__REDIS_TOPOLOGY", "cluster"), ("STORE__REDIS_WAIT_REPLICAS", &wait)];
        let nodes = launched(&urls, &settings).await;
        let client = StormClient::create(&nodes[0], true).await;
        Self { waits: wait_replicas > 0, nodes, client, cluster }
    }

    async fn completed(&self, more: usize) {
        self.client.wait_for_growth("the load goes on", Notes::accepted, more).await;
    }

    /// Puts load on three nodes, and kills the master with the lagging replica in the middle.
    async fn run(&self, random: &mut Random) {
        let mut addresses = self.nodes.iter().map(|node| &node.addresses).cycle();
        let load = Load::start(WORKERS, |over| {
            let (worker, addresses) = (self.client.worker(random), addresses.next().expect("a node"));
            let (backend, identity_app) = (worker.backend.through(addresses), worker.identity_app.through(addresses));
            Worker { backend, identity_app, ..worker }.run(over)
        });
        self.completed(LOAD).await;
        self.fail_over().await;
        if !self.waits {
            self.accept_loss().await;
        }
        self.completed(LOAD).await;
        load.end().await;
    }

    async fn fail_over(&self) {
        let client: ClientId = self.client.backend.client.parse().expect("a client id");
        let slot = self.cluster.slot_of(&format!("{{p{:02}}}", client.partition().number()));
        let master = self.cluster.master_of(slot);
        let replica = self.replica_of(master);
        replica.pause();
        // Earlier writes wait in the replica's socket; nothing is sent from now on.
        master.answer(&["CLIENT", "KILL", "TYPE", "replica"]);
        self.client.wait_for_growth("the master works on without its replica", Notes::sent, LAG).await;
        let old = self.cluster.kill_master_of(slot);
        replica.resume();
        self.cluster.await_failover(slot, old);
        // It returns as the replica of its successor, which had no replica to wait for until now.
        master.restart();
    }

    /// Checks that every node stops until an operator accepts the loss.
    async fn accept_loss(&self) {
        for node in &self.nodes {
            let says = || async {
                node.operator().probe("/readyz").await.text.contains("the store has lost data since").then_some(())
            };
            eventually("the loss is noticed", TIMEOUT, says).await;
        }
        let accepted = self.nodes[2].admin(&["accept-loss"]).await;
        assert!(accepted.status.success(), "{accepted:?}");
    }

    fn replica_of(&self, master: &RedisServer) -> &RedisServer {
        let port = master.port().to_string();
        let mut nodes = self.cluster.nodes().iter();
        nodes.find(|node| node.info("master_port").as_deref() == Some(&port)).expect("every master has a replica")
    }
}

/// The losses of a failover.
struct Undone {
    /// Opened transactions that are unknown.
    transactions: usize,
    /// Accepted answers that are forgotten.
    answers: usize,
    /// Webhooks that arrived more than once.
    webhooks_twice: usize,
}

impl Failover {
    /// Counts the store's lost writes, and duplicate webhooks.
    async fn undone(&self) -> Undone {
        self.client.poll().await;
        let records = self.client.notes.journal.with(Clone::clone);
        let polled =
            |polled: Polled| records.entries.values().filter(move |entry| entry.polled.as_ref() == Some(&polled));
        Undone {
            transactions: polled(Polled::Refused(404)).count(),
            answers: polled(Polled::Pending)
                .filter(|entry| entry.answered.is_some_and(|it| it.reply == Reply::Accepted))
                .count(),
            webhooks_twice: self.client.arrivals().by_txn.values().filter(|arrival| arrival.count > 1).count(),
        }
    }
}

#[tokio::test]
async fn with_every_replica_waited_for_a_failover_undoes_nothing() {
    let (seed, mut random) = Random::of_this_run();
    let failover = Failover::begin(1).await;
    failover.run(&mut random).await;
    // No node was killed, so each attempt was ended by its own node.
    let evidence = failover.client.assert_invariants(&failover.nodes[0], 0, None).await;
    eprintln!("seed {seed}: waiting for the replica: {}", summary(&evidence));
}

#[tokio::test]
async fn without_waiting_a_failover_that_undoes_something_stops_the_nodes_until_accepted() {
    let (_, mut random) = Random::of_this_run();
    let failover = Failover::begin(0).await;
    failover.run(&mut random).await;
    let Undone { transactions, answers, webhooks_twice } = failover.undone().await;
    eprintln!(
        "without waiting: {} completed; undone: {transactions} transactions, {answers} answers; {webhooks_twice} \
            webhooks came twice",
        failover.client.notes.accepted()
    );
    assert!(transactions + answers > 0, "the replica had fallen behind, so something was undone");
    for node in &failover.nodes {
        let opened = failover.client.backend.through(&node.addresses).open(&["name"]).await;
        failover.client.identity_app.through(&node.addresses).approve(&opened, "asha").await;
    }
}
