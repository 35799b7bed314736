//! The storm at one event: guests scan, decline, consent and leave while the process is killed. The organiser adds
//! places whenever the event is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sakshi_client::public;
use sakshi_kit::answer::Answer;
use sakshi_kit::event::{BROWSER, TestEvent, redirect_txn};
use sakshi_kit::node::TestNode;
use sakshi_kit::random::Random;
use sakshi_kit::storm::{Callback, Load, Notes, StormClient, rounds, summary};
use serde_json::json;

const ROUNDS: u64 = 8;
/// Concurrent guests.
const GUESTS: u64 = 10;
/// Webhook attempts that may be in flight at a kill.
const IN_FLIGHT: u64 = 8;
/// Places at the start, and in each increase.
const PLACES: u64 = 10;
/// Maximum number of scans in a round before its kill.
const SCANS_MAX: u64 = 250;

/// A task that acts as one guest after another.
struct Guest {
    event: TestEvent,
    client: Arc<StormClient>,
    places: Arc<Places>,
    is_over: Arc<AtomicBool>,
    random: Random,
}

/// The event's places, as changed by the organiser.
#[derive(Debug, Default)]
struct Places {
    /// Highest number requested.
    requested: AtomicU64,
    /// Number of confirmed changes.
    confirmed: AtomicU64,
}

impl Guest {
    /// Runs guests, one after another, until a request is not answered.
    async fn run(mut self) {
        while !self.is_over.load(Ordering::Relaxed) && self.attend().await.is_ok() {}
    }

    /// Records an answer that must not occur.
    fn add_problem(&self, operation: &str, answer: &Answer) {
        self.client.notes.journal.problem(format!("{operation}: {} {}", answer.status, answer.text));
    }

    /// Runs one guest: a scan, and usually an answer.
    async fn attend(&mut self) -> Result<(), reqwest::Error> {
        let notes = &self.client.notes;
        let requested_at = notes.now();
        let pressed = Answer::attempt(self.event.button(BROWSER)).await;
        let pressed = pressed.inspect_err(|_| notes.journal.opening_unknown())?;
        match pressed.status {
            303 => {}
            409 => return self.add_places().await,
            _ => {
                self.add_problem("start", &pressed);
                return Ok(());
            }
        }
        let txn = redirect_txn(&pressed).to_owned();
        notes.record_opened(&txn, requested_at);
        let opened = self.event.fetch(&txn).await?;
        let callback = match self.random.below(8) {
            0 => return Ok(()),
            1 => Callback::Rejection,
            _ => Callback::Credential(self.client.identity_app.credential(&opened, "asha")),
        };
        let is_consent = matches!(callback, Callback::Credential(_));
        let reply = notes.post(&self.client.identity_app, &opened, &callback).await?;
        // Only a consent needs a place.
        if reply.status != 200 && !(reply.status == 409 && is_consent) {
            self.add_problem("callback", &reply);
        }
        Ok(())
    }

    /// Raises the limit of guests, as an organiser does when the event is full.
    async fn add_places(&self) -> Result<(), reqwest::Error> {
        let places = self.places.requested.fetch_add(PLACES, Ordering::SeqCst) + PLACES;
        let change = public::change_event(&self.event.id, &json!({"max_guests": places}));
        let answer = Answer::attempt(self.event.organiser.api().request(change).expect("a body")).await?;
        match answer.status {
            200 => drop(self.places.confirmed.fetch_add(1, Ordering::SeqCst)),
            // A higher number was set before, and its places are already filled.
            400 => {}
            _ => self.add_problem("patch", &answer),
        }
        Ok(())
    }
}

#[tokio::test]
async fn kills_during_an_event_neither_lose_guests_nor_overfill_it_nor_charge_twice() {
    let (seed, mut random) = Random::of_this_run();
    let in_flight = IN_FLIGHT.to_string();
    let settings =
        [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)];
    let mut node = TestNode::start_with(&settings).await;
    let has_other_nodes = false;
    let client = Arc::new(StormClient::create(&node, has_other_nodes).await);
    let event = TestEvent::open_reported(&node, &client.backend, PLACES, &client.receiver.url("/hook")).await;
    let places = Arc::new(Places { requested: PLACES.into(), ..Places::default() });
    let mut kills = 0;
    let rounds = rounds(ROUNDS);
    for _ in 0..rounds {
        let load = Load::start(GUESTS, |is_over| {
            let random = Random::from_seed(random.next());
            Guest { event: event.clone(), client: Arc::clone(&client), places: Arc::clone(&places), is_over, random }
                .run()
        });
        // The number of scans before the kill is random, and so is the progress of the other guests.
        let scans = usize::try_from(random.below(SCANS_MAX)).expect("a small number");
        client.wait_for_growth("the load of a round", Notes::opened_so_far, scans).await;
        kills += load.kill(&mut node, &mut random).await;
    }
    let unknown_deliveries_max = kills * IN_FLIGHT;
    let evidence = client.assert_invariants(&node, unknown_deliveries_max, Some(&event)).await;
    let (view, guests) = evidence.event.as_ref().expect("an event");
    assert_eq!(view.abandoned_count, 0, "no window has passed");
    let had_load = guests.len() as u64 > rounds && places.confirmed.load(Ordering::SeqCst) > 0;
    assert!(had_load, "seed {seed}: there was hardly any load");
    eprintln!("{kills} kills: {} registered, {}", guests.len(), summary(&evidence));
}
