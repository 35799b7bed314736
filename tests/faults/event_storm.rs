//! The storm at one event: guests scan, decline, consent and leave while the process is killed, and the organiser adds
//! places whenever it is full.

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
const GUESTS: u64 = 10;
const IN_FLIGHT: u64 = 8;
const PLACES: u64 = 10;
/// Maximum scans of a round before its kill.
const SCANS_MAX: u64 = 250;

struct Guest {
    event: TestEvent,
    client: Arc<StormClient>,
    places: Arc<Places>,
    over: Arc<AtomicBool>,
    random: Random,
}

/// The event's places, as changed by the organiser.
#[derive(Debug, Default)]
struct Places {
    /// Highest number requested.
    asked: AtomicU64,
    /// Number of confirmed changes.
    confirmed: AtomicU64,
}

impl Guest {
    /// Plays one guest after another, until a request is not answered.
    async fn come_and_go(mut self) {
        while !self.over.load(Ordering::Relaxed) && self.visit().await.is_ok() {}
    }

    fn problem(&self, what: &str, answer: &Answer) {
        self.client.notes.journal.problem(format!("{what}: {} {}", answer.status, answer.text));
    }

    async fn visit(&mut self) -> Result<(), reqwest::Error> {
        let notes = &self.client.notes;
        let asked = notes.now();
        let pressed = Answer::attempt(self.event.button(BROWSER)).await;
        let pressed = pressed.inspect_err(|_| notes.journal.opening_unknown())?;
        match pressed.status {
            303 => {}
            409 => return self.make_room().await,
            _ => {
                self.problem("start", &pressed);
                return Ok(());
            }
        }
        let txn = redirect_txn(&pressed).to_owned();
        notes.record_opened(&txn, asked);
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
            self.problem("callback", &reply);
        }
        Ok(())
    }

    async fn make_room(&self) -> Result<(), reqwest::Error> {
        let places = self.places.asked.fetch_add(PLACES, Ordering::SeqCst) + PLACES;
        let change = public::change_event(&self.event.id, &json!({"max_guests": places}));
        let answer = Answer::attempt(self.event.organiser.api().request(change).expect("a body")).await?;
        match answer.status {
            200 => drop(self.places.confirmed.fetch_add(1, Ordering::SeqCst)),
            // A higher number came first and its places have been filled meanwhile.
            400 => {}
            _ => self.problem("patch", &answer),
        }
        Ok(())
    }
}

#[tokio::test]
async fn no_kill_in_the_middle_of_an_event_loses_a_guest_overfills_it_or_charges_a_scan_twice() {
    let (seed, mut random) = Random::of_this_run();
    let in_flight = IN_FLIGHT.to_string();
    let settings =
        [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)];
    let mut node = TestNode::start_with(&settings).await;
    let client = Arc::new(StormClient::create(&node, false).await);
    let event = TestEvent::open_reported(&node, &client.backend, PLACES, &client.receiver.url("/hook")).await;
    let places = Arc::new(Places { asked: PLACES.into(), ..Places::default() });
    let mut kills = 0;
    let rounds = rounds(ROUNDS);
    for _ in 0..rounds {
        let load = Load::start(GUESTS, |over| {
            let random = Random::from_seed(random.next());
            Guest { event: event.clone(), client: Arc::clone(&client), places: Arc::clone(&places), over, random }
                .come_and_go()
        });
        // The number of scans before the kill is random; so is the progress of the other guests.
        let more = usize::try_from(random.below(SCANS_MAX)).expect("a small number");
        client.wait_for_growth("the load of a round", Notes::opened_so_far, more).await;
        kills += load.kill(&mut node, &mut random).await;
    }
    let evidence = client.assert_invariants(&node, kills * IN_FLIGHT, Some(&event)).await;
    let (view, guests) = evidence.event.as_ref().expect("an event");
    assert_eq!(view.abandoned_count, 0, "no window has passed");
    let had_load = guests.len() as u64 > rounds && places.confirmed.load(Ordering::SeqCst) > 0;
    assert!(had_load, "seed {seed}: there was hardly any load");
    eprintln!("{kills} kills: {} registered, {}", guests.len(), summary(&evidence));
}
