//! The storm: several rounds of load, each ended by SIGKILL at a moment of chance.

use std::sync::Arc;
use std::time::Duration;

use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use sakshi_kit::backend::Backend;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;
use sakshi_kit::random::Random;
use sakshi_kit::storm::{Load, Notes, Witnesses, Worker, assert_held, summary};

const ROUNDS: u64 = 14;
const WORKERS: u64 = 12;
const IN_FLIGHT: u64 = 8;
const CREDITS: u64 = 100_000;

struct Storm {
    node: TestNode,
    backend: Backend,
    identity_app: Arc<IdentityApp>,
    notes: Arc<Notes>,
    receiver: WebhookReceiver,
    random: Random,
    kills: u64,
}

impl Storm {
    async fn begin(random: Random) -> Self {
        let in_flight = IN_FLIGHT.to_string();
        let settings = [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)];
        let node = TestNode::with(&settings).await;
        let backend = node.backend(CREDITS).await;
        let identity_app = Arc::new(node.identity_app());
        let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(Duration::from_millis(10))).await.expect("a port");
        Self { node, backend, identity_app, notes: Notes::begin(false), receiver, random, kills: 0 }
    }

    /// Load until the kill; every worker has ended when this returns.
    async fn round(&mut self) {
        let load = Load::start((0..WORKERS).map(|_| Worker {
            backend: self.backend.clone(),
            identity_app: Arc::clone(&self.identity_app),
            notes: Arc::clone(&self.notes),
            webhook: self.receiver.url("/hook"),
            random: Random::from_seed(self.random.next()),
        }));
        // The moment of the kill is the one thing that is left to chance.
        let moment = Duration::from_millis(self.random.below(900));
        tokio::time::sleep(moment).await;
        self.node.kill().await;
        self.kills += 1;
        load.end().await;
        // Recovery may be cut short as well as anything else.
        if self.random.below(3) == 0 {
            self.node.launch_and_kill(Duration::from_millis(self.random.below(120))).await;
            self.kills += 1;
        }
        self.node.launch().await;
    }
}

#[tokio::test]
async fn no_kill_loses_an_answer_charges_twice_or_sends_a_webhook_twice() {
    let (seed, random) = Random::of_this_run();
    let mut storm = Storm::begin(random).await;
    for _ in 0..ROUNDS {
        storm.round().await;
    }
    let Storm { node, backend, identity_app, notes, receiver, kills, .. } = &storm;
    let witnesses = Witnesses { backend, identity_app, operator: node.operator(), receiver, notes };
    witnesses.resolve().await;
    let evidence = witnesses.evidence(CREDITS, kills * IN_FLIGHT, None).await;
    assert_held(&evidence);
    assert!(notes.accepted() as u64 > ROUNDS, "seed {seed}: there was no load to speak of");
    eprintln!("{kills} kills: {}", summary(&evidence));
}
