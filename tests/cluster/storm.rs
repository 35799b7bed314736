//! The storm behind a balancer: load on three nodes while nodes and Redis are killed, round after
//! round. Which of them goes is chosen by the seed; when, by the load that went before.

use std::sync::Arc;
use std::time::Duration;

use sakshi_kit::backend::Backend;
use sakshi_kit::balancer::Balancer;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::random::Random;
use sakshi_kit::storm::{Load, Notes, Witnesses, Worker, assert_held, summary};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use crate::nodes::Nodes;

const ROUNDS: u64 = 10;
const WORKERS: u64 = 16;
/// Webhook attempts that one node may have under way.
const IN_FLIGHT: u64 = 8;
const CREDITS: u64 = 1_000_000;
/// Transactions completed between two kills.
const LOAD: usize = 60;

struct Storm {
    nodes: Nodes,
    balancer: Balancer,
    backend: Backend,
    identity_app: Arc<IdentityApp>,
    notes: Arc<Notes>,
    receiver: WebhookReceiver,
    random: Random,
    /// Kills of nodes; a kill of Redis leaves every attempt to its node.
    kills: u64,
}

impl Storm {
    async fn begin(random: Random) -> Self {
        let in_flight = IN_FLIGHT.to_string();
        let (nodes, balancer) = Nodes::balanced(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)]).await;
        let backend = nodes.backend(CREDITS).await.through(&balancer.addresses);
        let identity_app = Arc::new(nodes.all[0].identity_app().through(&balancer.addresses));
        let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(Duration::from_millis(10))).await.expect("a port");
        Self { nodes, balancer, backend, identity_app, notes: Notes::begin(true), receiver, random, kills: 0 }
    }

    fn load(&mut self) -> Load {
        Load::start((0..WORKERS).map(|_| Worker {
            backend: self.backend.clone(),
            identity_app: Arc::clone(&self.identity_app),
            notes: Arc::clone(&self.notes),
            webhook: self.receiver.url("/hook"),
            random: Random::from_seed(self.random.next()),
        }))
    }

    async fn completed(&self, more: usize) {
        let goal = self.notes.accepted() + more;
        eventually("the load goes on", TIMEOUT, || async { (self.notes.accepted() >= goal).then_some(()) }).await;
    }

    /// Kills a node, or Redis, or both, and brings them back under load.
    async fn round(&mut self) {
        self.completed(LOAD).await;
        let victim = usize::try_from(self.random.below(3)).expect("a small number");
        let (node, redis) = match self.random.below(3) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        if node {
            self.nodes.all[victim].kill().await;
            self.kills += 1;
        }
        if redis {
            self.nodes.redis.kill9();
            self.nodes.redis.restart();
        }
        // The others carry on before the node is back.
        self.completed(LOAD / 4).await;
        if node {
            self.nodes.all[victim].launch().await;
        }
        self.balancer.in_service(3).await;
    }
}

#[tokio::test]
async fn no_kill_of_a_node_or_of_redis_loses_an_answer_charges_twice_or_sends_a_webhook_twice() {
    let (seed, random) = Random::of_this_run();
    let mut storm = Storm::begin(random).await;
    let load = storm.load();
    for _ in 0..ROUNDS {
        storm.round().await;
    }
    load.end().await;
    let Storm { nodes, backend, identity_app, notes, receiver, kills, .. } = &storm;
    let witnesses = Witnesses { backend, identity_app, operator: nodes.all[0].operator(), receiver, notes };
    witnesses.resolve().await;
    let evidence = witnesses.evidence(CREDITS, kills * IN_FLIGHT, None).await;
    assert_held(&evidence);
    eprintln!("seed {seed}: {ROUNDS} rounds, {kills} nodes killed: {}", summary(&evidence));
}
