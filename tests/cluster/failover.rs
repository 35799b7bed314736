//! A Redis Cluster of three masters whose busiest one is killed while its replica lags behind, which
//! is then promoted: with and without waiting for replicas.
//!
//! Waiting keeps every promise. Without it, what the old master had answered and not yet passed on is
//! undone; the test that shows it says in numbers what that was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::ids::ClientId;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use crate::journal::{Entries, Journal};
use crate::judgement::Judge;
use crate::load::Worker;
use crate::nodes::launched;
use crate::random::Random;
use sakshi_kit::backend::Backend;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;
use sakshi_kit::redis::groups::RedisCluster;
use sakshi_kit::redis::{DURABLE, RedisServer};
use sakshi_kit::waiting::{TIMEOUT, eventually};

const WORKERS: usize = 9;
const CREDITS: u64 = 1_000_000;
/// Transactions completed before and after.
const LOAD: usize = 60;
/// What the old master answers, or leaves in doubt, while its replica stands still.
const LAG: usize = 40;

struct Failover {
    nodes: Vec<TestNode>,
    backend: Backend,
    identity_app: Arc<IdentityApp>,
    receiver: WebhookReceiver,
    journal: Arc<Journal>,
    cluster: RedisCluster,
}

impl Failover {
    async fn begin(wait_replicas: u32) -> Self {
        let cluster = RedisCluster::start(1, DURABLE);
        let (urls, wait) = (cluster.urls().join(","), wait_replicas.to_string());
        let settings = [("STORE__REDIS_TOPOLOGY", "cluster"), ("STORE__REDIS_WAIT_REPLICAS", &wait)];
        let nodes = launched(&urls, &settings).await;
        let backend = nodes[0].backend(CREDITS).await;
        let identity_app = Arc::new(nodes[0].identity_app());
        let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(Duration::from_millis(10))).await.expect("a port");
        Self { nodes, backend, identity_app, receiver, journal: Arc::default(), cluster }
    }

    async fn happened(&self, what: &str, enough: impl Fn(&Entries) -> bool) {
        eventually(what, TIMEOUT, || async { self.journal.note(|entries| enough(entries)).then_some(()) }).await;
    }

    async fn completed(&self, more: usize) {
        let goal = self.journal.note(|entries| entries.accepted.len()) + more;
        self.happened("the load goes on", |entries| entries.accepted.len() >= goal).await;
    }

    /// Load on three nodes; in the middle of it the master goes whose replica has fallen behind.
    async fn run(&self, random: &mut Random) -> Entries {
        let over = Arc::new(AtomicBool::new(false));
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let addresses = &self.nodes[number % self.nodes.len()].addresses;
                let worker = Worker {
                    backend: self.backend.through(addresses),
                    identity_app: Arc::new(self.identity_app.through(addresses)),
                    journal: Arc::clone(&self.journal),
                    webhook: self.receiver.url("/hook"),
                    over: Arc::clone(&over),
                    random: Random::from_seed(random.next()),
                    goes_on: true,
                };
                tokio::spawn(worker.run())
            })
            .collect();
        self.completed(LOAD).await;
        self.fail_over().await;
        self.completed(LOAD).await;
        over.store(true, Ordering::Relaxed);
        for ended in join_all(workers).await {
            ended.expect("a worker ends");
        }
        self.journal.note(std::mem::take)
    }

    async fn fail_over(&self) {
        let client: ClientId = self.backend.client.parse().expect("a client id");
        let slot = self.cluster.slot_of(&format!("{{p{:02}}}", client.partition().number()));
        let master = self.cluster.master_of(slot);
        let replica = self.replica_of(master);
        replica.pause();
        // What was sent before waits in the replica's socket; from now on nothing is.
        master.answer(&["CLIENT", "KILL", "TYPE", "replica"]);
        let dealt_with = |entries: &Entries| entries.accepted.len() + entries.in_doubt.len() + entries.keys_in_doubt.len();
        let goal = self.journal.note(|entries| dealt_with(entries)) + LAG;
        self.happened("the master works on without its replica", |entries| dealt_with(entries) >= goal).await;
        let old = self.cluster.kill_master_of(slot);
        replica.resume();
        self.cluster.await_failover(slot, old);
        // It comes back as the replica of its successor, which could wait for nobody before.
        master.restart();
    }

    fn replica_of(&self, master: &RedisServer) -> &RedisServer {
        let port = master.port().to_string();
        let mut nodes = self.cluster.nodes().iter();
        nodes.find(|node| node.info("master_port").as_deref() == Some(&port)).expect("every master has a replica")
    }

    fn judge(&self) -> Judge<'_> {
        Judge { backend: &self.backend, identity_app: &self.identity_app, operator: self.nodes[0].operator(), receiver: &self.receiver }
    }
}

/// What a failover took back.
#[derive(Clone, Copy, Debug, Default)]
struct Undone {
    /// Transactions that were opened and are unknown.
    transactions: usize,
    /// Answers that were accepted and are forgotten.
    answers: usize,
    /// Webhooks that came more than once.
    webhooks_twice: usize,
}

impl Judge<'_> {
    /// What the store has forgotten of what was answered, and what was told twice.
    async fn undone(&self, entries: &Entries) -> Undone {
        let mut undone = Undone::default();
        for txn in entries.opened.keys() {
            let result = self.backend.result(txn).await;
            match result.status {
                404 => undone.transactions += 1,
                _ => undone.answers += usize::from(entries.accepted.contains_key(txn) && result.json()["pending"] == true),
            }
        }
        undone.webhooks_twice = self.arrived().values().filter(|times| **times > 1).count();
        undone
    }
}

#[tokio::test]
async fn with_every_replica_waited_for_a_failover_undoes_nothing() {
    let (seed, mut random) = Random::of_this_run();
    let failover = Failover::begin(1).await;
    let entries = failover.run(&mut random).await;
    assert!(entries.strange.is_empty(), "seed {seed}: {:#?}", entries.strange);
    let judge = failover.judge();
    failover.journal.note(|noted| *noted = entries);
    judge.resolve(&failover.journal).await;
    let entries = failover.journal.note(std::mem::take);
    judge.check_transactions(&entries).await;
    judge.check_credits(&entries, CREDITS).await;
    let (unknown, lost) = judge.check_webhooks(&entries).await;
    assert_eq!((unknown, lost), (0, 0), "seed {seed}: no node went, so every attempt was ended by its node");
    eprintln!("waiting for the replica: {} opened, {} completed, nothing lost or doubled", entries.opened.len(), entries.accepted.len());
}

#[tokio::test]
async fn without_waiting_a_failover_undoes_what_the_replica_had_not_got_and_the_service_goes_on() {
    let (_, mut random) = Random::of_this_run();
    let failover = Failover::begin(0).await;
    let entries = failover.run(&mut random).await;
    let undone = failover.judge().undone(&entries).await;
    eprintln!("without waiting: {} opened, {} completed; undone by the failover: {undone:?}", entries.opened.len(), entries.accepted.len());
    assert!(undone.transactions + undone.answers > 0, "the replica had fallen behind, so something was undone");
    for node in &failover.nodes {
        let opened = failover.backend.through(&node.addresses).open(&["name"]).await;
        failover.identity_app.through(&node.addresses).approve(&opened, "asha").await;
    }
}
