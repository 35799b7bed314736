//! Guests who race for the places of an event that has one place per person, and the organiser of the event.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use sakshi_client::{Call, public};
use sakshi_kit::backend::Opened;
use sakshi_kit::event::{BROWSER, IDENTITY_APP};
use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::node::Addresses;
use sakshi_kit::random::Random;
use serde_json::{Value, json};

use super::models::{PlacesOp, PlacesResponse};
use super::round::{FactLog, Round, pause};
use super::verifications::PEOPLE;

/// Guests of one process in a round.
const GUESTS: u64 = 8;
/// Requests of the organiser in a round.
const ORGANISER_REQUESTS: u64 = 16;

/// An event, and the numbers of its guests.
pub(crate) struct Event {
    pub(crate) id: String,
    /// Numbers of the guests by transaction.
    pub(crate) guests: Mutex<BTreeMap<String, u32>>,
    /// Number of guests so far.
    pub(crate) count: AtomicU32,
}

/// The log of the events' histories, and the id of an event in it.
type EventHistory<'a> = (&'a FactLog<PlacesOp, PlacesResponse>, &'a str);

fn event_history<'a>(round: &'a Round, event: &'a Event) -> EventHistory<'a> {
    (&round.histories.events, &event.id)
}

/// Runs one process: guests who scan and register, one after another.
pub(crate) async fn run_guests(round: Arc<Round>, event: Arc<Event>, mut random: Random) {
    let process = round.next_process();
    for _ in 0..GUESTS {
        if !round.is_running() {
            return;
        }
        pause(&mut random, 150).await;
        let Some(opened) = scan(&round, &event, process, &mut random).await else { continue };
        let guest = event.count.fetch_add(1, Ordering::SeqCst);
        event.guests.lock().unwrap().insert(opened.txn.clone(), guest);
        let person = random.below(PEOPLE.len() as u64) as u8;
        let credential = round.identity_app.credential(&opened, PEOPLE[usize::from(person)]);
        let body = CallbackFormat::Json.success(&opened.txn, &credential);
        let answer = round
            .retry(&mut random, |address| {
                let request = round.http.post(address.public(&opened.callback_path()));
                request.header(CONTENT_TYPE, CallbackFormat::Json.content_type()).body(body.clone())
            })
            .await;
        round.record(event_history(&round, &event), (process, PlacesOp::Register(guest, person)), answer, |reply| {
            match reply.status {
                200 => Some(PlacesResponse::Registered),
                409 if reply.text.contains("already registered") => Some(PlacesResponse::Duplicate),
                409 if reply.text.contains("full") => Some(PlacesResponse::Full),
                _ => None,
            }
        });
    }
}

/// Starts a guest's verification in a browser, and fetches its intent; `None` if the guest is refused.
async fn scan(round: &Round, event: &Event, process: u32, random: &mut Random) -> Option<Opened> {
    let was_current = round.are_readings_current();
    let start = format!("/e/{}/start", event.id);
    let press = |address: &Addresses| {
        round.http.post(address.public(&start)).header(ACCEPT, BROWSER).header("sec-fetch-site", "same-origin")
    };
    let started = round.send_once(random, press).await;
    let (_, reply) = started.reply.clone()?;
    let is_full = reply.status == 409;
    if !is_full || (was_current && round.are_readings_current()) {
        round.record_reading(event_history(round, event), (process, PlacesOp::Scan), started, |reply| {
            match reply.status {
                303 => Some(PlacesResponse::Scanned),
                409 => Some(PlacesResponse::Full),
                _ => None,
            }
        });
    }
    let txn = reply.location?.strip_prefix("/v/")?.to_owned();
    let intent = round
        .retry(random, |address| round.http.get(address.public(&format!("/v/{txn}"))).header(ACCEPT, IDENTITY_APP))
        .await;
    let (_, intent) = intent.reply?;
    if intent.status != 200 {
        round.record_unexpected("intent", &intent);
        return None;
    }
    Some(Opened::read(&json!({"txnId": txn, "intentJwt": intent.text})))
}

/// Runs the organiser's process, which reads the event and sometimes changes its number of places.
pub(crate) async fn run_organiser(round: Arc<Round>, event: Arc<Event>, mut random: Random) {
    let process = round.next_process();
    for _ in 0..ORGANISER_REQUESTS {
        if !round.is_running() {
            return;
        }
        pause(&mut random, 150).await;
        match random.below(6) {
            0 => {
                let max = 1 + random.below(PEOPLE.len() as u64);
                let api = |address: &Addresses| round.api(&round.rich_client, address);
                let change = json!({"max_guests": max});
                let answer = round
                    .send_once(&mut random, |address| {
                        api(address).request(public::change_event(&event.id, &change)).expect("a body")
                    })
                    .await;
                round.record(
                    event_history(&round, &event),
                    (process, PlacesOp::SetMax(round.next_process(), max)),
                    answer,
                    |reply| match reply.status {
                        200 => Some(PlacesResponse::Changed),
                        400 => Some(PlacesResponse::TooSmall),
                        _ => None,
                    },
                );
            }
            1 | 2 => read_guests(&round, &event, process, &mut random).await,
            _ => read_event(&round, &event, process, &mut random).await,
        }
    }
}

/// Reads the event as the organiser, and records its counts if the service promises that they are current.
pub(crate) async fn read_event(round: &Round, event: &Event, process: u32, random: &mut Random) {
    let was_current = round.are_readings_current();
    let answer = round.call(&round.rich_client, random, || public::event(&event.id)).await;
    if was_current && round.are_readings_current() {
        round.record_reading(event_history(round, event), (process, PlacesOp::ReadEvent), answer, |reply| {
            let count = |member: &str| reply.body[member].as_u64();
            Some(PlacesResponse::Counts(count("registration_count")?, count("max_guests")?))
        });
    }
}

/// Reads the list of guests as the organiser, and records it if the service promises that it is current.
pub(crate) async fn read_guests(round: &Round, event: &Event, process: u32, random: &mut Random) {
    let was_current = round.are_readings_current();
    let path = format!("{}/registrations?page=1&page_size=100", public::event_path(&event.id));
    let answer = round.call(&round.rich_client, random, || Call::<Value>::new(Method::GET, &*path)).await;
    if was_current && round.are_readings_current() {
        round.record_reading(event_history(round, event), (process, PlacesOp::ReadGuests), answer, |reply| {
            let guests = event.guests.lock().unwrap();
            let number = |row: &Value| guests.get(row["txn_id"].as_str()?).copied();
            reply.body["registrations"]
                .as_array()?
                .iter()
                .map(number)
                .collect::<Option<_>>()
                .map(PlacesResponse::Guests)
        });
    }
}
