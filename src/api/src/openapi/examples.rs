//! Examples in the OpenAPI document. The real response types serialize the outcomes.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, NaiveTime};
use sakshi_domain::channel::Channel;
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::KeyCase;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{
    AnswerDigest, Completed, Failure, OptionalTerms, Outcome, Pending, Terms, VerifiedClaims,
};
use sakshi_wire::ORDER;
use sakshi_wire::ovse::{OvsePayload, OvsePending};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{checks, flow_examples};
use crate::routes::{EVENT, EVENTS};

const TXN: Uuid = Uuid::from_u128(0x3f0f_6c0e_9a3e_4c55_8d2a_0b8c_5e0e_7f11);
const EVENT_ID: &str = "1R8swWyefAkVT2e0k";
const WEBHOOK_URL: &str = "https://client.example/hooks/ovse";
const ORGANISER: &str = "Museum of Demopura";
const PURPOSE: &str = "Free entry for residents of the district";

/// Lifetime of a transaction.
const WINDOW: Duration = Duration::from_secs(900);
/// Time from the beginning of the month to the deadlines in the examples. The deadlines stay in the future until the
/// next month, within the bounds of every request.
const DEADLINE_AFTER: Duration = Duration::from_secs(62 * 24 * 3_600);

/// Returns the beginning of this month: examples are the same on every node, and a new date seldom changes generated
/// clients.
fn month_start() -> Timestamp {
    let now = DateTime::from_timestamp_millis(SystemClock.now().millis()).unwrap_or_default();
    let first = now.date_naive().with_day(1).unwrap_or_default().and_time(NaiveTime::MIN);
    Timestamp::from_millis(first.and_utc().timestamp_millis())
}

/// Returns the end of the events, doors and invitations in the examples.
pub(super) fn deadline() -> Timestamp {
    month_start() + DEADLINE_AFTER
}

/// Writes examples into the operations of a document.
struct ExampleWriter<'a> {
    document: &'a mut Value,
}

impl ExampleWriter<'_> {
    fn set_request(&mut self, path: &str, method: &str, example: Value) {
        self.document["paths"][path][method]["requestBody"]["content"]["application/json"]["example"] = example;
    }

    fn set_named_requests(&mut self, path: &str, method: &str, examples: Value) {
        self.document["paths"][path][method]["requestBody"]["content"]["application/json"]["examples"] = examples;
    }

    fn set_response(&mut self, path: &str, method: &str, example: Value) {
        self.document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["example"] = example;
    }

    fn set_named_responses(&mut self, path: &str, method: &str, examples: Value) {
        self.document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["examples"] = examples;
    }
}

/// Adds examples to the bodies of all operations.
pub(super) fn attach(document: &mut Value, spelling: KeyCase) {
    let writer = &mut ExampleWriter { document };
    attach_verifications(writer, spelling);
    attach_events(writer);
    attach_doors(writer);
    attach_credits(writer);
    attach_flows(writer);
    attach_webhook_urls(writer);
    attach_service(writer);
    checks::attach_examples(document);
}

/// Builds an entry of `examples`, where an operation has several.
pub(super) fn named_example(summary: &str, value: &Value) -> Value {
    json!({ "summary": summary, "value": value })
}

fn attach_verifications(writer: &mut ExampleWriter<'_>, spelling: KeyCase) {
    let mut polled = outcomes(spelling);
    polled["pending"] =
        named_example("Waiting for the person", &json!(OvsePending::new(TxnId::from_bytes(*TXN.as_bytes()))));

    let opened = json!({ "txnId": TXN, "intentJwt": "eyJhbGciOiJSUzI1NiIs…", "expiresAt": month_start() + WINDOW,
        "requestUrl": format!("https://verify.example/v/{TXN}") });
    writer.set_named_requests("/api/v1/nationalid-ovse/init", "post", init_requests());
    writer.set_response("/api/v1/nationalid-ovse/init", "post", opened);

    let qr = json!({ "qrPayload": "https://qr.example/getIntent?value=3141592653589793" });
    writer.set_request("/api/v1/nationalid-ovse/qr-intent", "post", json!({ "txnId": TXN }));
    writer.set_response("/api/v1/nationalid-ovse/qr-intent", "post", qr);

    writer.set_named_responses("/api/v1/nationalid-ovse/result/{txnId}", "get", polled);
    let evidence = json!({ "payload": "eyJ2ZXJzaW9uIjoxLCJ0eG5faWQi…", "protected": "eyJhbGciOiJSUzI1NiIs…",
        "signature": "Xk2h0Tz9aVnB4cLrE8yW…" });
    writer.set_response("/api/v1/nationalid-ovse/result/{txnId}/evidence", "get", evidence);

    let row = json!({ "txn_id": TXN, "status": "passed", "opened_at": month_start(), "channel": "web",
        "client_reference_id": "order-42" });
    writer.set_response("/api/v1/nationalid-ovse/transactions", "get", json!({ "transactions": [row] }));
}

/// Builds a request for each channel.
fn init_requests() -> Value {
    let claims = json!(["name", "dob", "gender", "address", "pincode"]);
    let mut requests = json!({
        "web": named_example("Web: a page on the phone", &json!({ "claims": claims, "channel": "web",
            "language": "hindi", "face_auth": true, "purpose": "To open your savings account",
            "webhook_url": WEBHOOK_URL })),
        "qr": named_example("A QR code at a counter", &json!({ "claims": ["name", "photo", "age_above_18"],
            "channel": "qr", "client_reference_id": "order-42" })),
        "android": named_example("A native app on Android", &json!({ "claims": ["name"], "channel": "app",
            "app_id": "com.client.example",
            "app_signature": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=" })),
        "ios": named_example("A native app on iOS", &json!({ "claims": ["name"], "channel": "app" })),
    });
    // The web channel comes first in the document, not in alphabetical order.
    requests["web"][ORDER] = json!(0);
    requests
}

fn attach_events(writer: &mut ExampleWriter<'_>) {
    let qr_url = format!("https://verify.example/e/{EVENT_ID}");
    let request = json!({ "name": "Open day", "claims": ["name", "age_above_18"], "language": "hindi",
        "max_guests": 200, "expires_at": deadline(), "time_zone": "Asia/Kolkata", "organiser": ORGANISER,
        "purpose": PURPOSE, "webhook_url": WEBHOOK_URL });
    writer.set_request(EVENTS, "post", request);
    writer.set_response(EVENTS, "post", json!({ "event_id": EVENT_ID, "qr_url": qr_url }));

    let event = event(&qr_url);
    writer.set_response(EVENTS, "get", json!({ "page": 1, "page_size": 20, "total": 1, "events": [event] }));
    writer.set_response(EVENT, "get", event.clone());
    writer.set_request(EVENT, "patch", json!({ "max_guests": 250, "expires_at": deadline() }));
    writer.set_response(EVENT, "patch", event);

    let verified_at = month_start() + WINDOW;
    let guest = json!({ "txn_id": TXN, "registration_code": "7KMQ2X", "verified_at": verified_at,
        "possible_duplicate_of": null,
        "checked_in_at": verified_at, "gate": "Gate B", "verification_passed": true,
        "verified_claims": { "residentName": "Asha Rao", "ageAbove18": true } });
    let page = json!({ "event_id": EVENT_ID, "page": 1, "page_size": 20, "total": 1, "registrations": [guest] });
    writer.set_response("/api/v1/nationalid-ovse/events/{eventId}/registrations", "get", page);
}

fn event(qr_url: &str) -> Value {
    let poster_url = format!("https://verify.example/api/v1/nationalid-ovse/events/{EVENT_ID}/poster");
    json!({ "event_id": EVENT_ID, "name": "Open day", "status": "active", "status_reason": null,
        "is_active": true, "claims": ["name", "age_above_18"], "language": "hindi",
        "max_guests": 200, "max_pending": null, "credit_budget": 500, "entry": "open", "on_duplicate": "flag",
        "registration_count": 1, "duplicate_count": 0, "checked_in_count": 1, "remaining": 199, "scan_count": 3,
        "abandoned_count": 1, "pending_count": 1, "warning": null, "webhook_url": WEBHOOK_URL, "qr_url": qr_url,
        "kiosk_url": format!("{qr_url}/kiosk?key=x7Qm2h0Tz9aVnB4cLrE8yWpK"), "poster_url": poster_url,
        "created_at": month_start(), "starts_at": null, "place": "Innovation Hub, Bengaluru",
        "expires_at": deadline(), "time_zone": "Asia/Kolkata", "organiser": ORGANISER, "purpose": PURPOSE })
}

fn attach_doors(writer: &mut ExampleWriter<'_>) {
    let doors = "/api/v1/nationalid-ovse/events/{eventId}/doors";
    let door_url = format!("https://verify.example/d/{EVENT_ID}k7w2p9x4m3qz");
    let door = json!({ "door_id": "k7w2p9x4m3qz", "name": "Gate B", "door_url": door_url, "expires_at": deadline() });
    let mut opened = door.clone();
    opened["pin"] = "04291738".into();
    writer.set_request(doors, "post", json!({ "name": "Gate B" }));
    writer.set_response(doors, "post", opened);
    writer.set_response(doors, "get", json!({ "event_id": EVENT_ID, "doors": [door] }));

    let check_ins = "/api/v1/nationalid-ovse/events/{eventId}/check-ins";
    let checked_in =
        json!({ "txn_id": TXN, "checked_in_at": month_start() + WINDOW, "gate": "Gate B", "already": false });
    writer.set_request(check_ins, "post", json!({ "code": "7KMQ2X", "gate": "Gate B" }));
    writer.set_response(check_ins, "post", checked_in);
}

fn attach_credits(writer: &mut ExampleWriter<'_>) {
    let entries = json!([
        { "seq": 1, "kind": "grant", "amount": 1_000, "balance_after": 1_000, "reference": "invoice-7",
            "at": month_start() },
        { "seq": 2, "kind": "debit", "amount": 1, "balance_after": 999, "reference": TXN,
            "at": month_start() + WINDOW },
    ]);
    let page = json!({ "page": 1, "page_size": 20, "total": 2, "entries": entries });
    writer.set_response("/api/v1/credits", "get", json!({ "balance": 999 }));
    writer.set_response("/api/v1/credits/statement", "get", page);
}

fn attach_flows(writer: &mut ExampleWriter<'_>) {
    for (path, request, response) in flow_examples::openings() {
        writer.set_request(path, "post", request);
        writer.set_response(path, "post", response);
    }
    writer.set_request("/api/v1/esign/status", "post", json!({ "documentId": TXN }));
    writer.set_named_responses("/api/v1/esign/status", "post", flow_examples::esign_polls());
    writer.set_named_responses("/api/v1/doclocker/details/{transactionId}", "get", flow_examples::doclocker_polls());
}

fn attach_webhook_urls(writer: &mut ExampleWriter<'_>) {
    let setting = json!({ "apiType": "ESign", "webhookUrl": "https://client.example/hooks/esign" });
    writer.set_request("/api/v1/user/webhook", "put", setting.clone());
    writer.set_response("/api/v1/user/webhook", "put", json!({ "success": true, "data": setting }));
    writer.set_response("/api/v1/user/webhook", "get", json!({ "success": true, "data": [setting] }));
}

fn attach_service(writer: &mut ExampleWriter<'_>) {
    let status = json!({
        "authority": { "answers": 412, "service_down": 3, "http_errors": 0, "last_answer_at": month_start() },
        "upstreams": [{ "kind": "esign", "answered": 7, "failed": 0 }],
        "webhooks": { "delivered": 98, "failed": 1, "waiting": 1 },
    });
    writer.set_response("/api/v1/status", "get", status);
    writer.set_response("/api/ping", "get", json!({ "success": true, "message": "pong" }));
    let key = json!({ "kty": "RSA", "alg": "RS256", "use": "sig", "kid": "intent-1", "n": "qK3v…", "e": "AQAB" });
    writer.set_response("/.well-known/jwks.json", "get", json!({ "keys": [key] }));
}

/// Builds the outcomes in webhooks and finished results.
pub(super) fn outcomes(spelling: KeyCase) -> Value {
    let claims = json!({ "residentName": "Asha Rao", "dob": "1990-02-14", "gender": "F",
        "address": "12 Sample Apartments, First Example Street, Demopura", "pincode": "560000" });
    let claims = claims.as_object().cloned().unwrap_or_default();
    let passed = completed(Outcome::Verified(Arc::new(VerifiedClaims::new(claims))));
    let failed = completed(Outcome::NotVerified(Failure::new("User Reject", Some("301"))));
    let mut outcomes = json!({
        "passed": named_example("Verified", &json!(OvsePayload::new(&passed, spelling))),
        "failed": named_example("Rejected by the person", &json!(OvsePayload::new(&failed, spelling))),
    });
    // The successful outcome comes first in the document.
    outcomes["passed"][ORDER] = json!(0);
    outcomes
}

/// Builds a completed transaction with this outcome.
fn completed(outcome: Outcome) -> Completed {
    let terms = Terms {
        claims: ClaimSet::from_iter([Claim::Name, Claim::Dob, Claim::Gender, Claim::Address, Claim::Pincode]),
        channel: Channel::Web,
        language: Language::ENGLISH,
        face_auth: true,
        webhook_url: None,
        request_id: RequestId::parse("order-42-try-1").unwrap_or_else(|_| RequestId::mint()),
        extras: Some(Box::new(OptionalTerms {
            client_reference_id: Some("order-42".to_owned()),
            ..OptionalTerms::default()
        })),
    };
    let opened = Pending {
        id: TxnId::from_bytes(*TXN.as_bytes()),
        client: ClientId::generate(),
        app: AppId::generate(),
        event: None,
        opened_at: month_start(),
        expires_at: month_start() + WINDOW,
        terms,
    };
    Completed { opened, verified_at: month_start() + WINDOW / 10, outcome, answer: AnswerDigest([0; 32]) }
}
