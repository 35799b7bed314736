//! The storm: several rounds of load, each ended by SIGKILL at a moment of chance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use crate::journal::Journal;
use crate::judgement::Judge;
use crate::load::Worker;
use crate::random::Random;
use sakshi_kit::backend::Backend;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;

const ROUNDS: u64 = 14;
const WORKERS: u64 = 12;
const IN_FLIGHT: u64 = 8;
const CREDITS: u64 = 100_000;

struct Storm {
    node: TestNode,
    backend: Backend,
    identity_app: Arc<IdentityApp>,
    journal: Arc<Journal>,
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
        Self { node, backend, identity_app, journal: Arc::default(), receiver, random, kills: 0 }
    }

    /// Load until the kill; every worker has ended when this returns.
    async fn round(&mut self) {
        let over = Arc::new(AtomicBool::new(false));
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let worker = Worker {
                    backend: self.backend.clone(),
                    identity_app: Arc::clone(&self.identity_app),
                    journal: Arc::clone(&self.journal),
                    webhook: self.receiver.url("/hook"),
                    over: Arc::clone(&over),
                    random: Random::from_seed(self.random.next()),
                    goes_on: false,
                };
                tokio::spawn(worker.run())
            })
            .collect();
        // The moment of the kill is the one thing that is left to chance.
        let moment = Duration::from_millis(self.random.below(900));
        tokio::time::sleep(moment).await;
        self.node.kill().await;
        self.kills += 1;
        over.store(true, Ordering::Relaxed);
        for ended in join_all(workers).await {
            ended.expect("a worker ends");
        }
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
    let judge =
        Judge { backend: &storm.backend, identity_app: &storm.identity_app, operator: storm.node.operator(), receiver: &storm.receiver };
    judge.resolve(&storm.journal).await;
    let entries = storm.journal.note(std::mem::take);
    assert!(entries.strange.is_empty(), "{:#?}", entries.strange);
    assert!(entries.accepted.len() as u64 > ROUNDS, "seed {seed}: there was no load to speak of");
    judge.check_transactions(&entries).await;
    judge.check_credits(&entries, CREDITS).await;
    let (unknown, lost) = judge.check_webhooks(&entries).await;
    let kills = storm.kills;
    assert!(unknown <= kills * IN_FLIGHT, "{unknown} deliveries of unknown end are more than were under way at {kills} kills");
    eprintln!(
        "{kills} kills: {} opened, {} completed, {} inits in doubt, {unknown} deliveries unknown, {lost} of them never came",
        entries.opened.len(),
        entries.accepted.len(),
        entries.inits_in_doubt
    );
}
