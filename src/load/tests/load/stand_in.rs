//! A small server that answers like the service without any verification, and with a fault if the test needs a fault. A
//! real service cannot show these faults.

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

/// A fault of the server. It affects the event of the run, which is the second event: the rehearsal creates the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    DropsAWebhook,
    SendsAWebhookTwice,
    DebitsTwice,
    /// No fault: a debit is committed between the first statement and the balance that is read after it.
    DebitsLate,
    AcceptsOneTooMany,
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

/// Number of the run's event; the rehearsal creates the first.
const RUN_EVENT: usize = 2;
/// Position of the affected guest, in the order of arrival.
const AFFECTED: usize = 5;

/// The event of a client, with its transactions and guests.
#[derive(Default)]
struct Event {
    places: usize,
    webhook: String,
    /// Ids of the opened transactions.
    opened: Vec<String>,
    registered: Vec<Guest>,
    on_duplicate: String,
    /// Names of the gates.
    doors: Vec<String>,
    /// Ids of the transactions with a debit, in order.
    debits: Vec<String>,
    /// Id of a transaction whose debit is committed after the next statement.
    late_debit: Option<String>,
    page_requests: usize,
    /// True if a stranger was refused as a duplicate.
    has_refused: bool,
}

/// The records of the server.
#[derive(Default)]
struct State {
    /// Number of clients so far.
    clients: usize,
    /// Granted credits, by number of the client.
    granted: BTreeMap<usize, usize>,
    /// Number of transactions so far.
    transactions: usize,
    /// The event of each client, by number of the client.
    events: BTreeMap<usize, Event>,
}

/// A running stand-in server.
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

fn json_answer(status: u16, body: &Value) -> Answer {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Full::new(body.to_string().into()))
        .unwrap()
}

/// An arbitrary time.
const AT: &str = "2026-01-01T00:00:00.000Z";

/// Formats the id of an event as the service does.
fn event_id(number: usize) -> String {
    format!("{number:017}")
}

/// Returns the number of the event of a transaction.
fn event_number(txn: &str) -> usize {
    txn.split('-').next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// Returns the number in the id of a client, an app or an event.
fn id_number(id: &str) -> usize {
    id.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// Answers every request of a run.
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
        && id_number(id) == RUN_EVENT
    {
        let page_requests = {
            let mut state = state.lock().unwrap();
            let event = state.events.get_mut(&RUN_EVENT).unwrap();
            event.page_requests += 1;
            event.page_requests
        };
        if page_requests == AFFECTED {
            tokio::time::sleep(time).await;
        }
    }
    if let ["d", door @ ..] = segments.as_slice() {
        let query = parts.uri.query().unwrap_or_default();
        return Ok(guests::answer_door(
            &mut state.lock().unwrap(),
            parts.method.as_str(),
            door,
            query,
            &header("cookie"),
            &form,
            fault,
        ));
    }
    let (method, mut webhooks) = (parts.method.as_str(), Vec::new());
    let answer = {
        let state = &mut *state.lock().unwrap();
        match segments.as_slice() {
            ["admin", "v1", "clients", path @ ..] => answer_operator(state, method, path, &body),
            ["api", "v1", "nationalid-ovse", path @ ..] => {
                answer_backend(state, method, path, &header("x-api-app-id"), &body, fault)
            }
            path => answer_guest(state, method, path, &header("accept"), &body, fault, &mut webhooks),
        }
    };
    for (url, body) in webhooks {
        tokio::spawn(reqwest::Client::new().post(url).body(body).send());
    }
    Ok(answer)
}

/// Answers a request below `/admin/v1/clients`.
fn answer_operator(state: &mut State, method: &str, path: &[&str], body: &Value) -> Answer {
    match (method, path) {
        ("POST", []) => {
            state.clients += 1;
            json_answer(200, &json!({ "client_id": format!("c{}", state.clients) }))
        }
        ("POST", [client, "apps"]) => json_answer(200, &json!({ "app_id": format!("a{}", id_number(client)) })),
        ("POST", [_, "keys"]) => json_answer(200, &json!({ "key_id": "k", "api_key": "key" })),
        ("POST", [client, "credits"]) => {
            state.granted.insert(id_number(client), usize::try_from(body["amount"].as_u64().unwrap()).unwrap());
            let entry = json!({ "seq": 1, "kind": "grant", "amount": body["amount"], "balance_after": body["amount"],
                "reference": "start", "at": AT });
            json_answer(200, &json!({ "balance": body["amount"], "entry": entry }))
        }
        ("GET", [client, "credits"]) => {
            json_answer(200, &json!({ "balance": state.granted[&id_number(client)] - debits(state, client).len() }))
        }
        ("GET", [client, _]) => {
            let answer = json_answer(200, &statement(state, client));
            if let Some(event) = state.events.get_mut(&id_number(client)) {
                event.debits.extend(event.late_debit.take());
            }
            answer
        }
        _ => json_answer(404, &json!({})),
    }
}

/// Returns the debits of a client.
fn debits<'a>(state: &'a State, client: &str) -> &'a [String] {
    state.events.get(&id_number(client)).map_or(&[][..], |event| &event.debits)
}

/// Returns the credit statement of a client.
fn statement(state: &State, client: &str) -> Value {
    let granted = state.granted[&id_number(client)];
    let grant = json!({ "seq": 1, "kind": "grant", "amount": granted, "balance_after": granted,
        "reference": "start", "at": AT });
    let debit = |(index, txn): (usize, &String)| {
        json!({ "seq": index + 2, "kind": "debit", "amount": 1,
            "balance_after": granted - 1 - index, "reference": txn, "at": AT })
    };
    let entries: Vec<Value> =
        std::iter::once(grant).chain(debits(state, client).iter().enumerate().map(debit)).collect();
    json!({ "page": 1, "page_size": 100, "total": entries.len(), "entries": entries })
}

/// Answers a request of a client backend.
fn answer_backend(state: &mut State, method: &str, path: &[&str], app: &str, body: &Value, fault: Fault) -> Answer {
    match (method, path) {
        ("POST", ["events"]) => create_event(state, app, body),
        ("POST", ["events", id, "doors"]) => guests::open_door(
            state.events.get_mut(&id_number(id)).unwrap(),
            id_number(id),
            body["name"].as_str().unwrap(),
        ),
        // Only the results of repeated guests are read.
        ("GET", ["result", _]) => {
            json_answer(200, &json!({ "data": { "verification_passed": false, "error_code": "already_registered" } }))
        }
        ("GET", ["events", id]) => json_answer(200, &event_view(id, &state.events[&id_number(id)], fault)),
        ("GET", ["events", id, "registrations"]) => {
            let rows = guests::registration_rows(&state.events[&id_number(id)]);
            json_answer(
                200,
                &json!({ "event_id": id, "page": 1, "page_size": 100, "total": rows.len(), "registrations": rows }),
            )
        }
        _ => json_answer(404, &json!({})),
    }
}

fn create_event(state: &mut State, app: &str, body: &Value) -> Answer {
    let client = id_number(app);
    let places = usize::try_from(body["max_guests"].as_u64().unwrap()).unwrap();
    let webhook = body["webhook_url"].as_str().unwrap().to_owned();
    let on_duplicate = body["on_duplicate"].as_str().unwrap().to_owned();
    state.events.insert(client, Event { places, webhook, on_duplicate, ..Event::default() });
    let qr_url = format!("http://stand-in.invalid/e/{}", event_id(client));
    json_answer(200, &json!({ "event_id": event_id(client), "qr_url": qr_url }))
}

/// Answers a request of a guest's browser or identity app.
fn answer_guest(
    state: &mut State,
    method: &str,
    path: &[&str],
    accept: &str,
    body: &Value,
    fault: Fault,
    webhooks: &mut Vec<(String, String)>,
) -> Answer {
    match (method, path) {
        ("GET", ["e", id]) => {
            let event = &state.events[&id_number(id)];
            json_answer(
                if event.registered.len() < event.places || fault == Fault::AcceptsOneTooMany { 200 } else { 409 },
                &json!({}),
            )
        }
        ("POST", ["e", id, "start"]) => start_transaction(state, id, fault),
        ("GET", ["v", txn]) if accept == "application/jwt" => Response::new(Full::new(intent_jwt(txn).into())),
        ("GET", ["v", _]) => json_answer(200, &json!({})),
        ("POST", ["cb", txn, _]) => answer_callback(state, txn, body, fault, webhooks),
        _ => json_answer(404, &json!({})),
    }
}

/// Renders the state of an event.
fn event_view(id: &str, event: &Event, fault: Fault) -> Value {
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
        "duplicate_count": event.duplicate_count(), "checked_in_count": event.checked_in_count(fault),
    })
}

/// Opens a transaction of an event, and redirects to its verify page.
fn start_transaction(state: &mut State, id: &str, fault: Fault) -> Answer {
    state.transactions += 1;
    let txn = format!("{:08}-0000-4000-8000-{:012}", id_number(id), state.transactions);
    let event = state.events.get_mut(&id_number(id)).unwrap();
    let is_affected = id_number(id) == RUN_EVENT && event.opened.len() == AFFECTED;
    if is_affected && fault == Fault::TurnsAwayEarly {
        event.opened.push("nobody".to_owned());
        event.debits.clear();
        return json_answer(409, &json!({ "code": "event_full" }));
    }
    event.opened.push(txn.clone());
    if is_affected && fault == Fault::DebitsLate {
        event.late_debit = Some(txn.clone());
    } else {
        event.debits.push(txn.clone());
    }
    if is_affected && fault == Fault::DebitsTwice {
        event.debits.push(txn.clone());
    }
    Response::builder().status(303).header("location", format!("/v/{txn}")).body(Full::default()).unwrap()
}

/// Builds an intent, without a valid signature.
fn intent_jwt(txn: &str) -> String {
    let segment = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let payload = json!({
        "txn": txn, "i": "credential", "lang": "23", "sc": "0".repeat(64), "pop": 1, "ch": "web", "m": 1, "ac": "a",
        "sa": "b",
        "cb": format!("http://stand-in.invalid/cb/{txn}/capability"), "aud": "http://stand-in.invalid", "iss": "s",
        "iat": 1, "exp": 4_000_000_000_u64, "jti": "j",
    });
    format!("{}.{}.{}", segment(&json!({ "alg": "RS256" })), segment(&payload), URL_SAFE_NO_PAD.encode("signature"))
}

/// Registers the guest of a callback, and queues the webhook.
fn answer_callback(
    state: &mut State,
    txn: &str,
    body: &Value,
    fault: Fault,
    webhooks: &mut Vec<(String, String)>,
) -> Answer {
    let event = state.events.get_mut(&event_number(txn)).unwrap();
    if body["response"].is_null() {
        return json_answer(200, &json!({}));
    }
    let guests_max = event.places + usize::from(fault == Fault::AcceptsOneTooMany);
    if event.registered.len() >= guests_max {
        return json_answer(409, &json!({}));
    }
    let is_affected = event_number(txn) == RUN_EVENT && event.registered.len() == AFFECTED;
    // Faults about duplicates can affect any guest.
    let is_at_fault =
        |wanted| fault == wanted && event_number(txn) == RUN_EVENT && (fault != Fault::MarksAStranger || is_affected);
    let refused = json_answer(
        409,
        &json!({ "txn": txn, "responseCode": 409, "responseMsg": "This person is already registered" }),
    );
    let Some(guest) = guests::new_guest(event, txn, body["response"].as_str().unwrap(), is_at_fault) else {
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
    webhooks.extend((0..times).map(|_| (event.webhook.clone(), report.clone())));
    // Another guest is listed twice in place of the forgotten guest.
    event.registered.push(if is_affected && fault == Fault::ForgetsAGuest {
        event.registered[0].clone()
    } else {
        guest
    });
    json_answer(200, &json!({}))
}
