//! A Redis Cluster of three masters whose busiest one is killed while its replica lags behind, which
//! is then promoted: with and without waiting for replicas.
//!
//! Waiting keeps every promise. Without it, what the old master had answered and not yet passed on is
//! undone; the test that shows it says in numbers what that was.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::ids::ClientId;
use sakshi_judge::journal::{Polled, Reply};
use sakshi_kit::backend::Backend;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;
use sakshi_kit::random::Random;
use sakshi_kit::redis::groups::RedisCluster;
use sakshi_kit::redis::{DURABLE, RedisServer};
use sakshi_kit::storm::{Load, Notes, Witnesses, Worker, assert_held, summary};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use crate::nodes::launched;

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
    notes: Arc<Notes>,
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
        Self { nodes, backend, identity_app, receiver, notes: Notes::begin(true), cluster }
    }

    /// Waits until a count of the notes has grown by so much.
    async fn grown(&self, what: &str, count: impl Fn(&Notes) -> usize, more: usize) {
        let goal = count(&self.notes) + more;
        eventually(what, TIMEOUT, || async { (count(&self.notes) >= goal).then_some(()) }).await;
    }

    async fn completed(&self, more: usize) {
        self.grown("the load goes on", Notes::accepted, more).await;
    }

    /// Load on three nodes; in the middle of it the master goes whose replica has fallen behind.
    async fn run(&self, random: &mut Random) {
        let load = Load::start((0..WORKERS).map(|number| {
            let addresses = &self.nodes[number % self.nodes.len()].addresses;
            Worker {
                backend: self.backend.through(addresses),
                identity_app: Arc::new(self.identity_app.through(addresses)),
                notes: Arc::clone(&self.notes),
                webhook: self.receiver.url("/hook"),
                random: Random::from_seed(random.next()),
            }
        }));
        self.completed(LOAD).await;
        self.fail_over().await;
        self.completed(LOAD).await;
        load.end().await;
    }

    async fn fail_over(&self) {
        let client: ClientId = self.backend.client.parse().expect("a client id");
        let slot = self.cluster.slot_of(&format!("{{p{:02}}}", client.partition().number()));
        let master = self.cluster.master_of(slot);
        let replica = self.replica_of(master);
        replica.pause();
        // What was sent before waits in the replica's socket; from now on nothing is.
        master.answer(&["CLIENT", "KILL", "TYPE", "replica"]);
        self.grown("the master works on without its replica", Notes::sent, LAG).await;
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

    fn witnesses(&self) -> Witnesses<'_> {
        let Self { nodes, backend, identity_app, receiver, notes, .. } = self;
        Witnesses { backend, identity_app, operator: nodes[0].operator(), receiver, notes }
    }
}

/// What a failover took back.
struct Undone {
    /// Transactions that were opened and are unknown.
    transactions: usize,
    /// Answers that were accepted and are forgotten.
    answers: usize,
    /// Webhooks that came more than once.
    webhooks_twice: usize,
}

impl Failover {
    /// What the store has forgotten of what was answered, and what was told twice.
    async fn undone(&self) -> Undone {
        let witnesses = self.witnesses();
        witnesses.poll().await;
        let pages = self.notes.journal.with(Clone::clone);
        let polled = |polled: Polled| pages.entries.values().filter(move |entry| entry.polled.as_ref() == Some(&polled));
        Undone {
            transactions: polled(Polled::Refused(404)).count(),
            answers: polled(Polled::Pending).filter(|entry| entry.answered.is_some_and(|it| it.reply == Reply::Accepted)).count(),
            webhooks_twice: witnesses.arrivals().by_txn.values().filter(|arrival| arrival.count > 1).count(),
        }
    }
}

#[tokio::test]
async fn with_every_replica_waited_for_a_failover_undoes_nothing() {
    let (seed, mut random) = Random::of_this_run();
    let failover = Failover::begin(1).await;
    failover.run(&mut random).await;
    let witnesses = failover.witnesses();
    witnesses.resolve().await;
    // No node was killed, so every attempt was ended by its node.
    let evidence = witnesses.evidence(CREDITS, 0, None).await;
    assert_held(&evidence);
    eprintln!("seed {seed}: waiting for the replica: {}", summary(&evidence));
}

#[tokio::test]
async fn without_waiting_a_failover_undoes_what_the_replica_had_not_got_and_the_service_goes_on() {
    let (_, mut random) = Random::of_this_run();
    let failover = Failover::begin(0).await;
    failover.run(&mut random).await;
    let Undone { transactions, answers, webhooks_twice } = failover.undone().await;
    eprintln!(
        "without waiting: {} completed; undone: {transactions} transactions, {answers} answers; {webhooks_twice} webhooks came twice",
        failover.notes.accepted()
    );
    assert!(transactions + answers > 0, "the replica had fallen behind, so something was undone");
    for node in &failover.nodes {
        let opened = failover.backend.through(&node.addresses).open(&["name"]).await;
        failover.identity_app.through(&node.addresses).approve(&opened, "asha").await;
    }
}
