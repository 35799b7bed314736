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

use super::models::{PlacesOp, PlacesRet};
use super::scene::{Book, Scene, pause};
use super::verifications::PEOPLE;

/// Guests of one process.
const GUESTS: u64 = 8;
/// Requests of the organiser.
const READINGS: u64 = 16;

/// An event and its guests by number.
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) guests: Mutex<BTreeMap<String, u32>>,
    pub(crate) count: AtomicU32,
}

/// The history of an event.
type History<'a> = (&'a Book<PlacesOp, PlacesRet>, &'a str);

fn history<'a>(scene: &'a Scene, event: &'a Event) -> History<'a> {
    (&scene.histories.events, &event.id)
}

/// Runs one process: guests who scan and register, one after another.
pub(crate) async fn run_guests(scene: Arc<Scene>, event: Arc<Event>, mut random: Random) {
    let process = scene.next_process();
    for _ in 0..GUESTS {
        if !scene.is_running() {
            return;
        }
        pause(&mut random, 150).await;
        let Some(opened) = scan(&scene, &event, process, &mut random).await else { continue };
        let guest = event.count.fetch_add(1, Ordering::SeqCst);
        event.guests.lock().unwrap().insert(opened.txn.clone(), guest);
        let person = random.below(PEOPLE.len() as u64) as u8;
        let credential = scene.identity_app.credential(&opened, PEOPLE[usize::from(person)]);
        let body = CallbackFormat::Json.success(&opened.txn, &credential);
        let answer = scene
            .retry(&mut random, |address| {
                let request = scene.http.post(address.public(&opened.callback_path()));
                request.header(CONTENT_TYPE, CallbackFormat::Json.content_type()).body(body.clone())
            })
            .await;
        scene.record(
            history(&scene, &event),
            (process, PlacesOp::Register(guest, person)),
            answer,
            |reply| match reply.status {
                200 => Some(PlacesRet::Registered),
                409 if reply.text.contains("already registered") => Some(PlacesRet::Duplicate),
                409 if reply.text.contains("full") => Some(PlacesRet::Full),
                _ => None,
            },
        );
    }
}

/// Starts a scan from a browser, and fetches the intent of its transaction.
async fn scan(scene: &Scene, event: &Event, process: u32, random: &mut Random) -> Option<Opened> {
    let was_current = scene.are_readings_current();
    let start = format!("/e/{}/start", event.id);
    let press = |address: &Addresses| {
        scene.http.post(address.public(&start)).header(ACCEPT, BROWSER).header("sec-fetch-site", "same-origin")
    };
    let pressed = scene.send_once(random, press).await;
    let (_, reply) = pressed.reply.clone()?;
    let is_full = reply.status == 409;
    if !is_full || (was_current && scene.are_readings_current()) {
        scene.record_reading(history(scene, event), (process, PlacesOp::Scan), pressed, |reply| match reply.status {
            303 => Some(PlacesRet::Scanned),
            409 => Some(PlacesRet::Full),
            _ => None,
        });
    }
    let txn = reply.location?.strip_prefix("/v/")?.to_owned();
    let intent = scene
        .retry(random, |address| scene.http.get(address.public(&format!("/v/{txn}"))).header(ACCEPT, IDENTITY_APP))
        .await;
    let (_, intent) = intent.reply?;
    if intent.status != 200 {
        scene.record_unexpected("intent", &intent);
        return None;
    }
    Some(Opened::read(&json!({"txnId": txn, "intentJwt": intent.text})))
}

/// Reads the event, and sometimes changes its places.
pub(crate) async fn run_organiser(scene: Arc<Scene>, event: Arc<Event>, mut random: Random) {
    let process = scene.next_process();
    for _ in 0..READINGS {
        if !scene.is_running() {
            return;
        }
        pause(&mut random, 150).await;
        match random.below(6) {
            0 => {
                let max = 1 + random.below(PEOPLE.len() as u64);
                let api = |address: &Addresses| scene.api(&scene.client, address);
                let change = json!({"max_guests": max});
                let answer = scene
                    .send_once(&mut random, |address| {
                        api(address).request(public::change_event(&event.id, &change)).expect("a body")
                    })
                    .await;
                scene.record(
                    history(&scene, &event),
                    (process, PlacesOp::SetMax(scene.next_process(), max)),
                    answer,
                    |reply| match reply.status {
                        200 => Some(PlacesRet::Changed),
                        400 => Some(PlacesRet::TooSmall),
                        _ => None,
                    },
                );
            }
            1 | 2 => read_guests(&scene, &event, process, &mut random).await,
            _ => read_event(&scene, &event, process, &mut random).await,
        }
    }
}

pub(crate) async fn read_event(scene: &Scene, event: &Event, process: u32, random: &mut Random) {
    let was_current = scene.are_readings_current();
    let answer = scene.call(&scene.client, random, || public::event(&event.id)).await;
    if was_current && scene.are_readings_current() {
        scene.record_reading(history(scene, event), (process, PlacesOp::ReadEvent), answer, |reply| {
            let count = |member: &str| reply.body[member].as_u64();
            Some(PlacesRet::Counts(count("registration_count")?, count("max_guests")?))
        });
    }
}

pub(crate) async fn read_guests(scene: &Scene, event: &Event, process: u32, random: &mut Random) {
    let was_current = scene.are_readings_current();
    let path = format!("{}/registrations?page=1&page_size=100", public::event_path(&event.id));
    let answer = scene.call(&scene.client, random, || Call::<Value>::new(Method::GET, &*path)).await;
    if was_current && scene.are_readings_current() {
        scene.record_reading(history(scene, event), (process, PlacesOp::ReadGuests), answer, |reply| {
            let guests = event.guests.lock().unwrap();
            let number = |row: &Value| guests.get(row["txn_id"].as_str()?).copied();
            reply.body["registrations"].as_array()?.iter().map(number).collect::<Option<_>>().map(PlacesRet::Guests)
        });
    }
}
