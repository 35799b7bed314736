//! The guests of the stand-in server's events, with duplicates and doors.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use sakshi_domain::time::Timestamp;
use sakshi_domain::time_zone::TimeZone;
use serde_json::{Value, json};

use super::{AFFECTED, Answer, Event, Fault, State, event_id, json_answer};

/// Cookie of a browser that has entered the PIN of a door.
const COOKIE: &str = "sakshi_door=yes";

/// A registered guest.
#[derive(Clone)]
pub(super) struct Guest {
    pub(super) txn: String,
    /// The device key in the credential.
    device: String,
    /// The transaction of an earlier guest with the same device key.
    duplicate_of: Option<String>,
    /// The time in milliseconds since 1970, and the gate.
    check_in: Option<(i64, String)>,
}

/// Returns the device key of a credential.
fn device_key(credential: &str) -> String {
    let payload =
        credential.split('.').nth(1).and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok()).unwrap_or_default();
    serde_json::from_slice::<Value>(&payload).unwrap_or_default()["cnf"]["jwk"].to_string()
}

/// Builds the guest of a transaction from a credential. Returns `None` if the event refuses the person.
pub(super) fn new_guest(
    event: &Event,
    txn: &str,
    credential: &str,
    is_at_fault: impl Fn(Fault) -> bool,
) -> Option<Guest> {
    let device = device_key(credential);
    let earlier = event.registered.iter().find(|guest| guest.device == device).map(|guest| guest.txn.clone());
    match (&*event.on_duplicate, &earlier) {
        ("refuse", Some(_)) if !is_at_fault(Fault::RegistersTwice) => return None,
        _ => {}
    }
    let stranger = is_at_fault(Fault::MarksAStranger).then(|| event.registered[0].txn.clone());
    let marked = earlier.filter(|_| event.on_duplicate == "flag" && !is_at_fault(Fault::MarksNobody)).or(stranger);
    Some(Guest { txn: txn.to_owned(), device, duplicate_of: marked, check_in: None })
}

impl Event {
    pub(super) fn duplicate_count(&self) -> usize {
        self.registered.iter().filter(|guest| guest.duplicate_of.is_some()).count()
    }

    pub(super) fn checked_in_count(&self, fault: Fault) -> usize {
        let checked_in = self.registered.iter().filter(|guest| guest.check_in.is_some()).count();
        checked_in + usize::from(fault == Fault::CountsACheckInTwice && checked_in > AFFECTED)
    }
}

/// Returns the code of a guest: six characters, of which four are the digits of the guest's number.
fn guest_code(index: usize) -> String {
    format!("7K{index:04}")
}

fn guest_name(guest: &Guest) -> String {
    format!("Guest {}", guest.txn)
}

/// Builds the rows of the list of registrations.
pub(super) fn registration_rows(event: &Event) -> Vec<Value> {
    let row = |(index, guest): (usize, &Guest)| {
        let (at, gate) = guest.check_in.clone().unzip();
        json!({
            "txn_id": guest.txn, "registration_code": guest_code(index), "verified_at": super::AT,
            "verification_passed": true,
            "verified_claims": { "residentName": guest_name(guest) }, "possible_duplicate_of": guest.duplicate_of,
            "checked_in_at": at.map(|at| Timestamp::from_millis(at).to_string()), "gate": gate,
        })
    };
    event.registered.iter().enumerate().map(row).collect()
}

/// Opens a door.
pub(super) fn open_door(event: &mut Event, id: usize, gate: &str) -> Answer {
    event.doors.push(gate.to_owned());
    let door_url = format!("http://stand-in.invalid/d/{}-{}", event_id(id), event.doors.len());
    let door = json!({ "door_id": format!("{:012}", event.doors.len()), "name": gate, "door_url": door_url,
        "pin": "12345678", "expires_at": super::AT });
    json_answer(200, &door)
}

/// Answers a request to `/d/{door}`.
pub(super) fn answer_door(
    state: &mut State,
    method: &str,
    path: &[&str],
    query: &str,
    cookie: &str,
    form: &str,
    fault: Fault,
) -> Answer {
    let Some((id, number)) = path[0].split_once('-') else { return json_answer(404, &json!({})) };
    let event = state.events.get_mut(&super::id_number(id)).unwrap();
    let gate = event.doors[number.parse::<usize>().unwrap() - 1].clone();
    match (method, path.get(1)) {
        ("GET", None) if cookie != COOKIE => html("PIN of this door"),
        ("GET", None) => html(&format!("<main data-now=\"{}\">", now_millis())),
        ("POST", None) if form == "pin=12345678" => Response::builder()
            .status(303)
            .header("set-cookie", format!("{COOKIE}; Path=/d/"))
            .body(Full::default())
            .unwrap(),
        _ if cookie != COOKIE => json_answer(401, &json!({})),
        ("GET", Some(&"guests")) => json_answer(200, &guest_list(event, query, fault)),
        ("POST", Some(&"check-ins")) => check_in(event, &gate, form, fault),
        _ => json_answer(404, &json!({})),
    }
}

fn html(text: &str) -> Answer {
    Response::new(Full::new(Bytes::from(text.to_owned())))
}

fn now_millis() -> i64 {
    use sakshi_domain::clock::{Clock as _, SystemClock};
    SystemClock.now().millis()
}

/// Renders the list of guests at a door, after the first `after` guests of the query.
fn guest_list(event: &Event, query: &str, fault: Fault) -> Value {
    let after: usize = query.strip_prefix("after=").and_then(|after| after.parse().ok()).unwrap_or_default();
    let mut bits = vec![0_u8; event.registered.len().div_ceil(8)];
    for (index, guest) in event.registered.iter().enumerate() {
        bits[index / 8] |= if guest.check_in.is_some() { 0x80 >> (index % 8) } else { 0 };
    }
    let listed =
        event.registered.iter().enumerate().skip(after).map(|(index, guest)| (guest_code(index), guest_name(guest)));
    // The affected guest is missing in the list of a door with this fault.
    let hidden = if fault == Fault::HidesAGuest { AFFECTED } else { usize::MAX };
    let listed: Vec<_> =
        listed.enumerate().filter(|(index, _)| index + after != hidden).map(|(_, guest)| guest).collect();
    let (registered, checked_in) = (event.registered.len(), event.checked_in_count(fault));
    json!({ "now": now_millis(), "registered": registered, "inside": checked_in, "guests": listed,
        "checked_in": STANDARD.encode(bits), "many": false })
}

/// Checks in the guest with the code of the form.
fn check_in(event: &mut Event, gate: &str, form: &str, fault: Fault) -> Answer {
    let field = |name: &str| form.split('&').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    let (Some(code), Some(at)) = (field("code"), field("at").and_then(|at| at.parse::<i64>().ok())) else {
        return json_answer(400, &json!({}));
    };
    let index = code.strip_prefix("7K").and_then(|index| index.parse::<usize>().ok());
    let Some((index, guest)) = index.and_then(|index| Some((index, event.registered.get_mut(index)?))) else {
        return json_answer(200, &json!({ "state": "unknown", "when": null }));
    };
    let is_affected = index == AFFECTED;
    let is_new = guest.check_in.as_ref().is_none_or(|check_in| *check_in == (at, gate.to_owned()));
    let loses_check_in = is_affected && fault == Fault::LosesACheckIn;
    let checks_in_twice = fault == Fault::ChecksInTwice;
    let check_in = guest.check_in.clone().filter(|_| !checks_in_twice).unwrap_or_else(|| (at, gate.to_owned()));
    if !loses_check_in {
        guest.check_in = Some(check_in.clone());
    }
    let reported_gate = if is_affected && fault == Fault::NamesAnotherGate { "Gate 77" } else { &check_in.1 };
    let when = format!("{}, {reported_gate}", TimeZone::INDIA.local(Timestamp::from_millis(check_in.0)).time);
    let state = if is_new || checks_in_twice { "in" } else { "already" };
    json_answer(200, &json!({ "state": state, "when": when, "inside": 0, "registered": 0 }))
}
