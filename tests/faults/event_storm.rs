//! The same storm at one event: guests scan, decline, consent and leave while the process is killed,
//! and the organiser makes room whenever it is full.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use crate::journal::Answered;
use crate::load::send;
use crate::random::Random;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Opened;
use sakshi_kit::event::{BROWSER, TestEvent, led_to};
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

const ROUNDS: u64 = 8;
const GUESTS: u64 = 10;
const IN_FLIGHT: u64 = 8;
const CREDITS: u64 = 100_000;
const PLACES: u64 = 10;
/// Scans of a round before it is ended.
const SCANS_MAX: u64 = 250;

/// What guests and organiser were told.
#[derive(Debug, Default)]
struct Told {
    /// Scans that were answered with a redirect.
    scanned: BTreeSet<String>,
    /// Buttons that were pressed and never answered: each may have cost a credit, and no more.
    presses_in_doubt: u64,
    registered: BTreeSet<String>,
    declined: BTreeSet<String>,
    full: BTreeSet<String>,
    /// Answers that were sent and never replied to.
    in_doubt: BTreeMap<String, (Opened, Answered)>,
    /// How often the organiser was told of a new cap, and the highest asked for.
    caps_told: u64,
    cap_asked: u64,
    strange: Vec<String>,
}

#[derive(Clone)]
struct Guest {
    event: TestEvent,
    identity_app: Arc<IdentityApp>,
    told: Arc<Mutex<Told>>,
    over: Arc<AtomicBool>,
    random: Random,
}

impl Guest {
    fn note<T>(&self, write: impl FnOnce(&mut Told) -> T) -> T {
        write(&mut self.told.lock().unwrap())
    }

    /// One guest after the other, until a request is not answered.
    async fn come_and_go(mut self) {
        while !self.over.load(Ordering::Relaxed) && self.visit().await.is_ok() {}
    }

    async fn visit(&mut self) -> Result<(), reqwest::Error> {
        let pressed = match Answer::attempt(self.event.button(BROWSER)).await {
            Ok(pressed) => pressed,
            Err(error) => {
                self.note(|told| told.presses_in_doubt += 1);
                return Err(error);
            }
        };
        match pressed.status {
            303 => {}
            409 => return self.make_room().await,
            status => {
                self.note(|told| told.strange.push(format!("start: {status} {}", pressed.text)));
                return Ok(());
            }
        }
        let txn = led_to(&pressed).to_owned();
        self.note(|told| told.scanned.insert(txn.clone()));
        let opened = self.event.fetch(&txn).await?;
        let answer = match self.random.below(8) {
            0 => return Ok(()),
            1 => Answered::Failure,
            _ => Answered::Credential(self.identity_app.credential(&opened, "asha")),
        };
        self.note(|told| told.in_doubt.insert(txn, (opened.clone(), answer.clone())));
        self.hand_in(&opened, &answer).await
    }

    async fn hand_in(&self, opened: &Opened, answer: &Answered) -> Result<(), reqwest::Error> {
        let reply = send(&self.identity_app, opened, answer).await?;
        let txn = opened.txn.clone();
        self.note(|told| {
            told.in_doubt.remove(&txn);
            match (reply.status, answer) {
                (200, Answered::Credential(_)) => told.registered.insert(txn),
                (200, Answered::Failure) => told.declined.insert(txn),
                (409, Answered::Credential(_)) => told.full.insert(txn),
                (status, _) => {
                    told.strange.push(format!("callback: {status} {}", reply.text));
                    false
                }
            };
        });
        Ok(())
    }

    async fn make_room(&self) -> Result<(), reqwest::Error> {
        let cap = self.note(|told| {
            told.cap_asked += PLACES;
            told.cap_asked
        });
        let request = self.event.organiser.request(reqwest::Method::PATCH, &self.event.path());
        let answer = Answer::attempt(request.json(&json!({"max_guests": cap}))).await?;
        self.note(|told| match answer.status {
            200 => told.caps_told += 1,
            // A higher cap came first and has been filled meanwhile.
            400 => {}
            status => told.strange.push(format!("patch: {status} {}", answer.text)),
        });
        Ok(())
    }
}

struct Storm {
    node: TestNode,
    guest: Guest,
    receiver: WebhookReceiver,
    random: Random,
    kills: u64,
}

impl Storm {
    async fn begin(mut random: Random) -> Self {
        let in_flight = IN_FLIGHT.to_string();
        let settings = [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)];
        let node = TestNode::with(&settings).await;
        let organiser = node.backend(CREDITS).await;
        let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(Duration::from_millis(10))).await.expect("a port");
        let event = TestEvent::reported(&node, &organiser, PLACES, &receiver.url("/hook")).await;
        let told = Told { cap_asked: PLACES, ..Told::default() };
        let guest = Guest {
            event,
            identity_app: Arc::new(node.identity_app()),
            told: Arc::new(Mutex::new(told)),
            over: Arc::default(),
            random: Random::from_seed(random.next()),
        };
        Self { node, guest, receiver, random, kills: 0 }
    }

    /// Load until the kill; every guest has left when this returns.
    async fn round(&mut self) {
        let over = Arc::new(AtomicBool::new(false));
        let guests: Vec<_> = (0..GUESTS)
            .map(|_| {
                let random = Random::from_seed(self.random.next());
                tokio::spawn(Guest { over: Arc::clone(&over), random, ..self.guest.clone() }.come_and_go())
            })
            .collect();
        // How many scans are answered before the kill is chance; so is where the other guests are by then.
        let enough = self.guest.note(|told| told.scanned.len() as u64) + self.random.below(SCANS_MAX);
        let scanned = || async { (self.guest.note(|told| told.scanned.len() as u64) >= enough).then_some(()) };
        eventually("the load of a round", TIMEOUT, scanned).await;
        self.node.kill().await;
        self.kills += 1;
        over.store(true, Ordering::Relaxed);
        for left in join_all(guests).await {
            left.expect("a guest leaves");
        }
        if self.random.below(3) == 0 {
            self.node.launch_and_kill(Duration::from_millis(self.random.below(120))).await;
            self.kills += 1;
        }
        self.node.launch().await;
    }

    /// Repeats what was never answered, as any identity app would, until all is known.
    async fn resolve(&self) {
        let in_doubt = self.guest.note(|told| told.in_doubt.clone());
        for (opened, answer) in in_doubt.values() {
            self.guest.hand_in(opened, answer).await.expect("a reply");
        }
    }

    async fn check_counts(&self, told: &Told) {
        let state = self.guest.event.state().await;
        let count = |name: &str| state[name].as_u64().expect("a count");
        let listed = self.guest.event.registered().await;
        let registered: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(listed.len(), registered.len(), "a guest is registered twice");
        assert_eq!(registered, told.registered, "who was told so is registered, and nobody else");
        assert_eq!(count("registration_count"), listed.len() as u64);
        assert!(count("registration_count") <= count("max_guests"), "{state}");
        assert_eq!(count("abandoned_count"), 0, "no window has passed");

        let statement = self.node.operator().statement(&self.guest.event.organiser.client).await;
        let debits: Vec<&str> = statement
            .iter()
            .filter(|entry| entry["kind"] == "debit")
            .map(|entry| entry["reference"].as_str().expect("a reference"))
            .collect();
        assert_eq!(debits.iter().collect::<BTreeSet<_>>().len(), debits.len(), "a scan was charged twice");
        for txn in &told.scanned {
            assert!(debits.iter().any(|reference| reference.contains(txn.as_str())), "{txn} was scanned without a debit");
        }
        assert_eq!(count("scan_count"), debits.len() as u64, "one credit for each scan");
        let (least, most) = (told.scanned.len() as u64, told.scanned.len() as u64 + told.presses_in_doubt);
        assert!((least..=most).contains(&count("scan_count")), "{least} to {most} scans were made: {state}");
        assert_eq!(self.node.operator().balance(&self.guest.event.organiser.client).await, CREDITS - count("scan_count"));
    }

    async fn check_results(&self, told: &Told) {
        for (txns, passed, code) in
            [(&told.registered, true, Value::Null), (&told.declined, false, json!("301")), (&told.full, false, json!("event_full"))]
        {
            for txn in txns {
                let result = self.guest.event.organiser.result(txn).await.ok();
                assert_eq!((&result["data"]["verification_passed"], &result["data"]["error_code"]), (&json!(passed), &code), "{result}");
            }
        }
    }

    /// Returns how many deliveries ended as `unknown`.
    async fn check_webhooks(&self, told: &Told) -> u64 {
        let (operator, mut outcomes) = (self.node.operator(), BTreeMap::new());
        for txn in &told.registered {
            let record = operator.delivery(txn).await;
            outcomes.insert(txn, record["attempt"]["outcome"].as_str().expect("an outcome").to_owned());
        }
        let mut arrived: BTreeMap<String, u64> = BTreeMap::new();
        for request in self.receiver.received() {
            let body: Value = serde_json::from_slice(&request.body).expect("JSON");
            *arrived.entry(body["data"]["txn_id"].as_str().expect("a txn_id").to_owned()).or_default() += 1;
        }
        for (txn, times) in &arrived {
            assert_eq!(*times, 1, "{txn}: its webhook came more than once");
            assert!(told.registered.contains(txn), "{txn}: a webhook of a guest who is not registered");
        }
        for (txn, outcome) in &outcomes {
            match outcome.as_str() {
                "delivered" => assert_eq!(arrived.get(*txn), Some(&1), "{txn} is recorded as delivered"),
                "unknown" => {}
                other => panic!("{txn} ended as {other} at a receiver that was always there"),
            }
        }
        for txn in told.declined.union(&told.full) {
            assert_eq!(operator.get(&format!("/admin/v1/transactions/{txn}/delivery")).await.status, 404, "{txn} has no registration");
        }
        outcomes.values().filter(|outcome| *outcome == "unknown").count() as u64
    }
}

#[tokio::test]
async fn no_kill_in_the_middle_of_an_event_loses_a_guest_overfills_it_or_charges_a_scan_twice() {
    let (seed, random) = Random::of_this_run();
    let mut storm = Storm::begin(random).await;
    for _ in 0..ROUNDS {
        storm.round().await;
    }
    storm.resolve().await;
    let told = storm.guest.note(std::mem::take);
    assert!(told.strange.is_empty() && told.in_doubt.is_empty(), "{:#?}", told.strange);
    assert!(told.registered.len() as u64 > ROUNDS && told.caps_told > 0, "seed {seed}: there was no load to speak of");
    storm.check_counts(&told).await;
    storm.check_results(&told).await;
    let unknown = storm.check_webhooks(&told).await;
    let kills = storm.kills;
    assert!(unknown <= kills * IN_FLIGHT, "{unknown} deliveries of unknown end are more than were under way at {kills} kills");
    eprintln!(
        "{kills} kills: {} scans and {} in doubt, {} registered, {} declined, {} too late, {unknown} deliveries unknown",
        told.scanned.len(),
        told.presses_in_doubt,
        told.registered.len(),
        told.declined.len(),
        told.full.len(),
    );
}
