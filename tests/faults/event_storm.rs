//! The same storm at one event: guests scan, decline, consent and leave while the process is killed,
//! and the organiser makes room whenever it is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_client::public;
use sakshi_kit::answer::Answer;
use sakshi_kit::event::{BROWSER, TestEvent, led_to};
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;
use sakshi_kit::random::Random;
use sakshi_kit::storm::{Callback, Notes, Witnesses, assert_held, summary};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;

const ROUNDS: u64 = 8;
const GUESTS: u64 = 10;
const IN_FLIGHT: u64 = 8;
const CREDITS: u64 = 100_000;
const PLACES: u64 = 10;
/// Scans of a round before it is ended.
const SCANS_MAX: u64 = 250;

#[derive(Clone)]
struct Guest {
    event: TestEvent,
    identity_app: Arc<IdentityApp>,
    notes: Arc<Notes>,
    places: Arc<Places>,
    over: Arc<AtomicBool>,
    random: Random,
}

/// The places of the event as the organiser changes them.
#[derive(Debug, Default)]
struct Places {
    /// The highest number asked for.
    asked: AtomicU64,
    /// How often a new number was confirmed.
    confirmed: AtomicU64,
}

impl Guest {
    /// One guest after the other, until a request is not answered.
    async fn come_and_go(mut self) {
        while !self.over.load(Ordering::Relaxed) && self.visit().await.is_ok() {}
    }

    fn trouble(&self, what: &str, answer: &Answer) {
        self.notes.journal.trouble(format!("{what}: {} {}", answer.status, answer.text));
    }

    fn scans(&self) -> u64 {
        self.notes.journal.with(|pages| pages.entries.len() as u64)
    }

    async fn visit(&mut self) -> Result<(), reqwest::Error> {
        let asked = self.notes.now();
        let pressed = Answer::attempt(self.event.button(BROWSER)).await;
        let pressed = pressed.inspect_err(|_| self.notes.journal.opening_unknown())?;
        match pressed.status {
            303 => {}
            409 => return self.make_room().await,
            _ => {
                self.trouble("start", &pressed);
                return Ok(());
            }
        }
        let txn = led_to(&pressed).to_owned();
        self.notes.opened(&txn, asked);
        let opened = self.event.fetch(&txn).await?;
        let callback = match self.random.below(8) {
            0 => return Ok(()),
            1 => Callback::Rejection,
            _ => Callback::Credential(self.identity_app.credential(&opened, "asha")),
        };
        let is_consent = matches!(callback, Callback::Credential(_));
        let reply = self.notes.post(&self.identity_app, &opened, &callback).await?;
        // Only a consent needs a place.
        if reply.status != 200 && !(reply.status == 409 && is_consent) {
            self.trouble("callback", &reply);
        }
        Ok(())
    }

    async fn make_room(&self) -> Result<(), reqwest::Error> {
        let places = self.places.asked.fetch_add(PLACES, Ordering::SeqCst) + PLACES;
        let change = public::change_event(&self.event.id, &json!({"max_guests": places}));
        let answer = Answer::attempt(self.event.organiser.api().request(change).expect("a body")).await?;
        match answer.status {
            200 => drop(self.places.confirmed.fetch_add(1, Ordering::SeqCst)),
            // A higher number came first and has been filled meanwhile.
            400 => {}
            _ => self.trouble("patch", &answer),
        }
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
        let places = Arc::new(Places { asked: PLACES.into(), ..Places::default() });
        let guest = Guest {
            event,
            identity_app: Arc::new(node.identity_app()),
            notes: Notes::begin(false),
            places,
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
        let enough = self.guest.scans() + self.random.below(SCANS_MAX);
        let scanned = || async { (self.guest.scans() >= enough).then_some(()) };
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
}

#[tokio::test]
async fn no_kill_in_the_middle_of_an_event_loses_a_guest_overfills_it_or_charges_a_scan_twice() {
    let (seed, random) = Random::of_this_run();
    let mut storm = Storm::begin(random).await;
    for _ in 0..ROUNDS {
        storm.round().await;
    }
    let Storm { node, guest: Guest { event, identity_app, notes, places, .. }, receiver, kills, .. } = &storm;
    notes.repeat_callbacks(identity_app).await;
    let witnesses = Witnesses { backend: &event.organiser, identity_app, operator: node.operator(), receiver, notes };
    let evidence = witnesses.evidence(CREDITS, kills * IN_FLIGHT, Some(event)).await;
    assert_held(&evidence);
    let (view, guests) = evidence.event.as_ref().expect("an event");
    assert_eq!(view.abandoned_count, 0, "no window has passed");
    let had_load = guests.len() as u64 > ROUNDS && places.confirmed.load(Ordering::SeqCst) > 0;
    assert!(had_load, "seed {seed}: there was no load to speak of");
    eprintln!("{kills} kills: {} registered, {}", guests.len(), summary(&evidence));
}
