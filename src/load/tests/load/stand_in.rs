//! A small server that answers as the service does, without verifying anything, and with a fault if the test wants one.
//! Only for behaviour that a real service cannot be made to show.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use self::guests::Guest;

mod guests;

/// Fault of the server, shown once, at the event of the run: the second event, because the rehearsal has one of its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    DropsAWebhook,
    SendsAWebhookTwice,
    DebitsTwice,
    TakesOneTooMany,
    ForgetsAGuest,
    TurnsAwayEarly,
    DelaysAPage(Duration),
    MarksNobody,
    MarksAStranger,
    RegistersTwice,
    RefusesAStranger,
    ChecksInTwice,
    LosesACheckIn,
    CountsACheckInTwice,
    NamesAnotherGate,
    HidesAGuest,
}

/// Position of the guest whom the fault affects, in the order of arrival.
const AFFECTED: usize = 5;

#[derive(Default)]
struct Event {
    places: usize,
    webhook: String,
    opened: Vec<String>,
    registered: Vec<Guest>,
    on_duplicate: String,
    /// Gates.
    doors: Vec<String>,
    debits: Vec<String>,
    page_requests: usize,
    /// True if a stranger was refused as a duplicate.
    has_refused: bool,
}

#[derive(Default)]
struct State {
    clients: usize,
    granted: BTreeMap<usize, usize>,
    transactions: usize,
    events: BTreeMap<usize, Event>,
}

pub(crate) struct StandIn {
    pub(crate) base: String,
}

impl StandIn {
    pub(crate) async fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(request, Arc::clone(&state), fault));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { base }
    }
}

type Answer = Response<Full<Bytes>>;

fn json_of(status: u16, body: &Value) -> Answer {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Full::new(body.to_string().into()))
        .unwrap()
}

/// An arbitrary moment.
const AT: &str = "2026-01-01T00:00:00.000Z";

/// Formats an event's id like the service's.
fn event_id(number: usize) -> String {
    format!("{number:017}")
}

/// Returns the event of a transaction.
fn event_of(txn: &str) -> usize {
    txn.split('-').next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// Returns the number in an id of a client, an app or an event.
fn number(id: &str) -> usize {
    id.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

async fn answer(request: Request<Incoming>, state: Arc<Mutex<State>>, fault: Fault) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let form = String::from_utf8_lossy(&body).into_owned();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    if let (Fault::DelaysAPage(time), ["e", id]) = (fault, segments.as_slice())
        && number(id) == 2
    {
        let turn = {
            let mut state = state.lock().unwrap();
            let event = state.events.get_mut(&2).unwrap();
            event.page_requests += 1;
            event.page_requests
        };
        if turn == AFFECTED {
            tokio::time::sleep(time).await;
        }
    }
    let mut send = Vec::new();
    if let ["d", door @ ..] = segments.as_slice() {
        let query = parts.uri.query().unwrap_or_default();
        return Ok(guests::at_door(
            &mut state.lock().unwrap(),
            parts.method.as_str(),
            door,
            query,
            &header("cookie"),
            &form,
            fault,
        ));
    }
    let answer =
        respond(&mut state.lock().unwrap(), parts.method.as_str(), &segments, &header, &body, fault, &mut send);
    for (url, body) in send {
        tokio::spawn(reqwest::Client::new().post(url).body(body).send());
    }
    Ok(answer)
}

fn respond(
    state: &mut State,
    method: &str,
    segments: &[&str],
    header: &dyn Fn(&str) -> String,
    body: &Value,
    fault: Fault,
    send: &mut Vec<(String, String)>,
) -> Answer {
    match (method, segments) {
        ("POST", ["admin", "v1", "clients"]) => {
            state.clients += 1;
            json_of(200, &json!({ "client_id": format!("c{}", state.clients) }))
        }
        ("POST", ["admin", "v1", "clients", client, "apps"]) => {
            json_of(200, &json!({ "app_id": format!("a{}", number(client)) }))
        }
        ("POST", ["admin", "v1", "clients", _, "keys"]) => json_of(200, &json!({ "key_id": "k", "api_key": "key" })),
        ("POST", ["admin", "v1", "clients", client, "credits"]) => {
            state.granted.insert(number(client), usize::try_from(body["amount"].as_u64().unwrap()).unwrap());
            let entry = json!({ "seq": 1, "kind": "grant", "amount": body["amount"], "balance_after": body["amount"],
                "reference": "start", "at": AT });
            json_of(200, &json!({ "balance": body["amount"], "entry": entry }))
        }
        ("GET", ["admin", "v1", "clients", client, what]) => {
            let debits = state.events.get(&number(client)).map_or(&[][..], |event| &event.debits);
            let granted = state.granted[&number(client)];
            let balance = granted - debits.len();
            if *what == "credits" {
                return json_of(200, &json!({ "balance": balance }));
            }
            let grant = json!({ "seq": 1, "kind": "grant", "amount": granted, "balance_after": granted,
                "reference": "start", "at": AT });
            let debit = |(number, txn): (usize, &String)| {
                json!({ "seq": number + 2, "kind": "debit", "amount": 1,
                "balance_after": granted - 1 - number, "reference": txn, "at": AT })
            };
            let entries: Vec<Value> = std::iter::once(grant).chain(debits.iter().enumerate().map(debit)).collect();
            json_of(200, &json!({ "page": 1, "page_size": 100, "total": entries.len(), "entries": entries }))
        }
        ("POST", ["api", "v1", "nationalid-ovse", "events"]) => {
            let client = number(&header("x-api-app-id"));
            let places = usize::try_from(body["max_guests"].as_u64().unwrap()).unwrap();
            let webhook = body["webhook_url"].as_str().unwrap().to_owned();
            let on_duplicate = body["on_duplicate"].as_str().unwrap().to_owned();
            state.events.insert(client, Event { places, webhook, on_duplicate, ..Event::default() });
            let qr_url = format!("http://stand-in.invalid/e/{}", event_id(client));
            json_of(200, &json!({ "event_id": event_id(client), "qr_url": qr_url }))
        }
        ("POST", ["api", "v1", "nationalid-ovse", "events", id, "doors"]) => {
            guests::open_door(state.events.get_mut(&number(id)).unwrap(), number(id), body["name"].as_str().unwrap())
        }
        ("GET", ["api", "v1", "nationalid-ovse", "result", _]) => {
            json_of(200, &json!({ "data": { "verification_passed": false, "error_code": "already_registered" } }))
        }
        ("GET", ["api", "v1", "nationalid-ovse", "events", id]) => {
            json_of(200, &view(id, &state.events[&number(id)], fault))
        }
        ("GET", ["api", "v1", "nationalid-ovse", "events", id, "registrations"]) => {
            let rows = guests::rows(&state.events[&number(id)]);
            json_of(
                200,
                &json!({ "event_id": id, "page": 1, "page_size": 100, "total": rows.len(), "registrations": rows }),
            )
        }
        ("GET", ["e", id]) => {
            let event = &state.events[&number(id)];
            json_of(
                if event.registered.len() < event.places || fault == Fault::TakesOneTooMany { 200 } else { 409 },
                &json!({}),
            )
        }
        ("POST", ["e", id, "start"]) => start(state, id, fault),
        ("GET", ["v", txn]) if header("accept") == "application/jwt" => Response::new(Full::new(intent(txn).into())),
        ("GET", ["v", _]) => json_of(200, &json!({})),
        ("POST", ["cb", txn, _]) => callback(state, txn, body, fault, send),
        _ => json_of(404, &json!({})),
    }
}

/// Renders the state of an event.
fn view(id: &str, event: &Event, fault: Fault) -> Value {
    let (registered, scans) = (event.registered.len(), event.opened.len());
    json!({
        "event_id": id, "name": "Load test", "status": "active", "is_active": true, "claims": ["name"],
        "language": "english",
        "max_guests": event.places, "registration_count": registered,
        "remaining": event.places.saturating_sub(registered),
        "scan_count": scans, "abandoned_count": 0, "pending_count": 0, "webhook_url": event.webhook,
        "entry": "open", "qr_url": "http://stand-in.invalid", "kiosk_url": "http://stand-in.invalid/kiosk",
        "poster_url": "http://stand-in.invalid/poster",
        "time_zone": "Asia/Kolkata", "organiser": null, "purpose": null,
        "created_at": AT, "expires_at": AT, "on_duplicate": event.on_duplicate,
        "duplicate_count": event.duplicates(), "checked_in_count": event.inside(fault),
    })
}

fn start(state: &mut State, id: &str, fault: Fault) -> Answer {
    state.transactions += 1;
    let txn = format!("{:08}-0000-4000-8000-{:012}", number(id), state.transactions);
    let event = state.events.get_mut(&number(id)).unwrap();
    let is_affected = number(id) == 2 && event.opened.len() == AFFECTED;
    if is_affected && fault == Fault::TurnsAwayEarly {
        event.opened.push("nobody".to_owned());
        event.debits.clear();
        return json_of(409, &json!({ "code": "event_full" }));
    }
    event.opened.push(txn.clone());
    event.debits.push(txn.clone());
    if is_affected && fault == Fault::DebitsTwice {
        event.debits.push(txn.clone());
    }
    Response::builder().status(303).header("location", format!("/v/{txn}")).body(Full::default()).unwrap()
}

fn intent(txn: &str) -> String {
    let segment = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let payload = json!({
        "txn": txn, "i": "credential", "lang": "23", "sc": "0".repeat(64), "pop": 1, "ch": "web", "m": 1, "ac": "a",
        "sa": "b",
        "cb": format!("http://stand-in.invalid/cb/{txn}/capability"), "aud": "http://stand-in.invalid", "iss": "s",
        "iat": 1, "exp": 4_000_000_000_u64, "jti": "j",
    });
    format!("{}.{}.{}", segment(&json!({ "alg": "RS256" })), segment(&payload), URL_SAFE_NO_PAD.encode("signature"))
}

fn callback(state: &mut State, txn: &str, body: &Value, fault: Fault, send: &mut Vec<(String, String)>) -> Answer {
    let event = state.events.get_mut(&event_of(txn)).unwrap();
    if body["response"].is_null() {
        return json_of(200, &json!({}));
    }
    let room = event.places + usize::from(fault == Fault::TakesOneTooMany);
    if event.registered.len() >= room {
        return json_of(409, &json!({}));
    }
    let is_affected = event_of(txn) == 2 && event.registered.len() == AFFECTED;
    // Faults of duplicates affect any guest that they fit.
    let is_at_fault = |wanted| fault == wanted && event_of(txn) == 2 && (fault != Fault::MarksAStranger || is_affected);
    let refused =
        json_of(409, &json!({ "txn": txn, "responseCode": 409, "responseMsg": "This person is already registered" }));
    let Some(guest) = guests::coming(event, txn, body["response"].as_str().unwrap(), is_at_fault) else {
        return refused;
    };
    if is_affected && fault == Fault::RefusesAStranger && !std::mem::replace(&mut event.has_refused, true) {
        return refused;
    }
    let report = json!({ "data": { "txn_id": txn, "verification_passed": true } }).to_string();
    let times = match fault {
        Fault::DropsAWebhook if is_affected => 0,
        Fault::SendsAWebhookTwice if is_affected => 2,
        _ => 1,
    };
    send.extend((0..times).map(|_| (event.webhook.clone(), report.clone())));
    // In place of the guest who is forgotten, another one is listed twice.
    event.registered.push(if is_affected && fault == Fault::ForgetsAGuest {
        event.registered[0].clone()
    } else {
        guest
    });
    json_of(200, &json!({}))
}
