//! The storm: several rounds of load, each ended by SIGKILL at a moment of chance.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::Value;

use crate::harness::backend::{Backend, Opened};
use crate::harness::phone::Phone;
use crate::harness::universe::Universe;
use crate::journal::{Answered, Entries, Journal};
use crate::load::{Worker, init, send};
use crate::random::Random;

const ROUNDS: u64 = 14;
const WORKERS: u64 = 12;
const IN_FLIGHT: u64 = 8;
const CREDITS: u64 = 100_000;

struct Storm {
    universe: Universe,
    backend: Backend,
    phone: Arc<Phone>,
    journal: Arc<Journal>,
    receiver: WebhookReceiver,
    random: Random,
    kills: u64,
}

impl Storm {
    async fn begin(random: Random) -> Self {
        let in_flight = IN_FLIGHT.to_string();
        let settings = [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)];
        let universe = Universe::with(&settings).await;
        let backend = universe.backend(CREDITS).await;
        let phone = Arc::new(universe.phone());
        let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(Duration::from_millis(10))).await.expect("a port");
        Self { universe, backend, phone, journal: Arc::default(), receiver, random, kills: 0 }
    }

    /// Load until the kill; every worker has ended when this returns.
    async fn round(&mut self) {
        let over = Arc::new(AtomicBool::new(false));
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let worker = Worker {
                    backend: self.backend.clone(),
                    phone: Arc::clone(&self.phone),
                    journal: Arc::clone(&self.journal),
                    webhook: self.receiver.url("/hook"),
                    over: Arc::clone(&over),
                    random: Random::from_seed(self.random.next()),
                };
                tokio::spawn(worker.run())
            })
            .collect();
        // The moment of the kill is the one thing that is left to chance.
        let moment = Duration::from_millis(self.random.below(900));
        tokio::time::sleep(moment).await;
        self.universe.kill().await;
        self.kills += 1;
        over.store(true, Ordering::Relaxed);
        for ended in join_all(workers).await {
            ended.expect("a worker ends");
        }
        // Recovery may be cut short as well as anything else.
        if self.random.below(3) == 0 {
            self.universe.launch_and_kill(Duration::from_millis(self.random.below(120))).await;
            self.kills += 1;
        }
        self.universe.launch().await;
    }

    /// Repeats what was never answered, as any client would, until all is known.
    async fn resolve(&self) {
        let (answers, keys) = self.journal.note(|entries| (entries.in_doubt.clone(), std::mem::take(&mut entries.keys_in_doubt)));
        for key in keys {
            let answer = init(&self.backend, Some(&key), &self.receiver.url("/hook")).await.expect("an answer");
            self.journal.opened(Opened::read(&answer.ok()));
        }
        for (txn, answer) in answers {
            let opened = self.journal.note(|entries| entries.opened[&txn].clone());
            let reply = send(&self.phone, &opened, &answer).await.expect("a reply");
            assert_eq!(reply.status, 200, "{txn}: the same answer again is accepted: {}", reply.text);
            self.journal.accepted(&txn, answer);
        }
    }

    async fn check_transactions(&self, entries: &Entries) {
        for txn in entries.opened.keys() {
            let result = self.backend.result(txn).await;
            assert_eq!(result.status, 200, "{txn} was answered and is lost: {}", result.text);
            let body = result.json();
            let passed = match entries.accepted.get(txn) {
                None => {
                    assert_eq!(body["pending"], true, "{txn} was completed by nobody: {body}");
                    continue;
                }
                Some(answer) => matches!(answer, Answered::Credential(_)),
            };
            assert_eq!(body["data"]["verification_passed"], passed, "{txn} was accepted: {body}");
        }
    }

    async fn check_credits(&self, entries: &Entries) {
        let operator = self.universe.operator();
        let statement = operator.statement(&self.backend.client).await;
        let debits: Vec<&Value> = statement.iter().filter(|entry| entry["kind"] == "debit").collect();
        let mut charged: BTreeMap<&str, u64> = BTreeMap::new();
        for debit in &debits {
            *charged.entry(debit["reference"].as_str().expect("a reference")).or_default() += 1;
        }
        assert!(charged.values().all(|times| *times == 1), "a transaction was charged twice");
        for txn in entries.opened.keys() {
            assert!(charged.keys().any(|reference| reference.contains(txn.as_str())), "{txn} was opened without a debit");
        }
        let (debits, opened) = (debits.len() as u64, entries.opened.len() as u64);
        let most = opened + entries.inits_in_doubt;
        assert!(debits >= opened && debits <= most, "{debits} debits for {opened} to {most} transactions");
        assert_eq!(operator.balance(&self.backend.client).await, CREDITS - debits);
    }

    /// Returns how many deliveries ended as `unknown`.
    async fn check_webhooks(&self, entries: &Entries) -> u64 {
        let operator = self.universe.operator();
        let mut outcomes = BTreeMap::new();
        for txn in entries.accepted.keys() {
            let record = operator.delivery(txn).await;
            outcomes.insert(txn.clone(), record["attempt"]["outcome"].as_str().expect("an outcome").to_owned());
        }
        let mut arrived: BTreeMap<String, u64> = BTreeMap::new();
        for request in self.receiver.received() {
            let body: Value = serde_json::from_slice(&request.body).expect("JSON");
            *arrived.entry(body["data"]["txn_id"].as_str().expect("a txn_id").to_owned()).or_default() += 1;
        }
        for (txn, times) in &arrived {
            assert_eq!(*times, 1, "{txn}: its webhook came more than once");
            assert!(entries.accepted.contains_key(txn), "{txn}: a webhook of something that never happened");
        }
        for (txn, outcome) in &outcomes {
            match outcome.as_str() {
                "delivered" => assert_eq!(arrived.get(txn), Some(&1), "{txn} is recorded as delivered"),
                "unknown" => {}
                other => panic!("{txn} ended as {other} at a receiver that was always there"),
            }
        }
        outcomes.values().filter(|outcome| *outcome == "unknown").count() as u64
    }
}

#[tokio::test]
async fn no_kill_loses_an_answer_charges_twice_or_sends_a_webhook_twice() {
    let (seed, random) = Random::of_this_run();
    let mut storm = Storm::begin(random).await;
    for _ in 0..ROUNDS {
        storm.round().await;
    }
    storm.resolve().await;
    let entries = storm.journal.note(std::mem::take);
    assert!(entries.strange.is_empty(), "{:#?}", entries.strange);
    assert!(entries.accepted.len() as u64 > ROUNDS, "seed {seed}: there was no load to speak of");
    storm.check_transactions(&entries).await;
    storm.check_credits(&entries).await;
    let unknown = storm.check_webhooks(&entries).await;
    let kills = storm.kills;
    assert!(unknown <= kills * IN_FLIGHT, "{unknown} deliveries of unknown end are more than were under way at {kills} kills");
    eprintln!(
        "{kills} kills: {} opened, {} completed, {} inits in doubt, {unknown} deliveries unknown",
        entries.opened.len(),
        entries.accepted.len(),
        entries.inits_in_doubt
    );
}
