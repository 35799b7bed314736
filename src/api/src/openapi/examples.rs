//! Examples in the document. The code of the real outcomes writes them.

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

const TXN: Uuid = Uuid::from_u128(0x3f0f_6c0e_9a3e_4c55_8d2a_0b8c_5e0e_7f11);
/// The window of a transaction.
const WINDOW: Duration = Duration::from_secs(900);
/// Time from the first to the last moment of the examples. The last stays in the future until the next month, within
/// the bounds of every request.
const AHEAD: Duration = Duration::from_secs(62 * 24 * 3_600);

/// Returns the beginning of this month: examples are the same on every node, and a new date seldom changes generated
/// clients.
pub(super) fn month() -> Timestamp {
    let now = DateTime::from_timestamp_millis(SystemClock.now().millis()).unwrap_or_default();
    let first = now.date_naive().with_day(1).unwrap_or_default().and_time(NaiveTime::MIN);
    Timestamp::from_millis(first.and_utc().timestamp_millis())
}

/// Returns the end of everything that the examples open.
pub(super) fn end() -> Timestamp {
    month() + AHEAD
}

/// Puts examples beside the bodies that have none of their own.
pub(super) fn attach(document: &mut Value, spelling: KeyCase) {
    let ovse = "/api/v1/nationalid-ovse";
    let named = |summary: &str, value: Value| json!({ "summary": summary, "value": value });
    let (claims, hook) = (json!(["name", "dob", "gender", "address", "pincode"]), "https://client.example/hooks/ovse");
    let mut init = json!({
        "web": named("Web: a page on the phone", json!({ "claims": claims, "channel": "web", "language": "hindi",
            "face_auth": true, "purpose": "To open your savings account", "webhook_url": hook })),
        "qr": named("A QR code at a counter", json!({ "claims": ["name", "photo", "age_above_18"], "channel": "qr",
            "client_reference_id": "order-42" })),
        "android": named("A native app on Android", json!({ "claims": ["name"], "channel": "app",
            "app_id": "com.client.example",
            "app_signature": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=" })),
        "ios": named("A native app on iOS", json!({ "claims": ["name"], "channel": "app" })),
    });
    init["web"][ORDER] = json!(0);
    let times = [month(), month() + WINDOW];
    let opened = json!({ "txnId": TXN, "intentJwt": "eyJhbGciOiJSUzI1NiIs…", "expiresAt": times[1],
        "requestUrl": format!("https://verify.example/v/{TXN}") });
    let qr = json!({ "qrPayload": "https://qr.example/getIntent?value=3141592653589793" });
    let entries = json!([
        { "seq": 1, "kind": "grant", "amount": 1_000, "balance_after": 1_000, "reference": "invoice-7",
            "at": times[0] },
        { "seq": 2, "kind": "debit", "amount": 1, "balance_after": 999, "reference": TXN, "at": times[1] },
    ]);
    let event_id = "1R8swWyefAkVT2e0k";
    let (name, guests) = ("Open day", json!(["name", "age_above_18"]));
    let (zone, organiser, purpose) = ("Asia/Kolkata", "Museum of Demopura", "Free entry for residents of the district");
    let (qr_url, ends) = (format!("https://verify.example/e/{event_id}"), end());
    let kiosk_url = format!("{qr_url}/kiosk?key=x7Qm2h0Tz9aVnB4cLrE8yWpK");
    let event = json!({ "event_id": event_id, "name": name, "status": "active", "status_reason": null,
        "is_active": true, "claims": guests, "language": "hindi",
        "max_guests": 200, "max_pending": null, "credit_budget": 500, "entry": "open", "on_duplicate": "flag",
        "registration_count": 1, "duplicate_count": 0, "checked_in_count": 1, "remaining": 199, "scan_count": 3,
        "abandoned_count": 1, "pending_count": 1, "warning": null, "webhook_url": hook, "qr_url": qr_url,
        "kiosk_url": kiosk_url, "poster_url": format!("https://verify.example{ovse}/events/{event_id}/poster"),
        "created_at": times[0], "starts_at": null, "place": "Innovation Hub, Bengaluru", "expires_at": ends,
        "time_zone": zone, "organiser": organiser,
        "purpose": purpose });
    let registered = json!({ "txn_id": TXN, "registration_code": "7KMQ2X", "verified_at": times[1],
        "possible_duplicate_of": null,
        "checked_in_at": times[1], "gate": "Gate B", "verification_passed": true,
        "verified_claims": { "residentName": "Asha Rao", "ageAbove18": true } });
    let mut polled = outcomes(spelling);
    polled["pending"] = named("Waiting for the person", json!(OvsePending::new(TxnId::from_bytes(*TXN.as_bytes()))));

    let mut put = |path: &str, method: &str, place: &[&str], key: &str, value: Value| {
        let mut at = &mut document["paths"][path][method];
        for step in place {
            at = &mut at[step];
        }
        at["content"]["application/json"][key] = value;
    };
    let answer = ["responses", "200"];
    put(&format!("{ovse}/init"), "post", &["requestBody"], "examples", init);
    put(&format!("{ovse}/init"), "post", &answer, "example", opened);
    put(&format!("{ovse}/qr-intent"), "post", &["requestBody"], "example", json!({ "txnId": TXN }));
    put(&format!("{ovse}/qr-intent"), "post", &answer, "example", qr);
    put(&format!("{ovse}/result/{{txnId}}"), "get", &answer, "examples", polled);
    let evidence = json!({ "payload": "eyJ2ZXJzaW9uIjoxLCJ0eG5faWQi…", "protected": "eyJhbGciOiJSUzI1NiIs…",
        "signature": "Xk2h0Tz9aVnB4cLrE8yW…" });
    put(&format!("{ovse}/result/{{txnId}}/evidence"), "get", &answer, "example", evidence);
    let (events, one) = (format!("{ovse}/events"), format!("{ovse}/events/{{eventId}}"));
    put(
        &events,
        "post",
        &["requestBody"],
        "example",
        json!({ "name": name, "claims": guests, "language": "hindi", "max_guests": 200, "expires_at": ends,
            "time_zone": zone,
            "organiser": organiser, "purpose": purpose, "webhook_url": hook }),
    );
    put(&events, "post", &answer, "example", json!({ "event_id": event_id, "qr_url": qr_url }));
    put(&events, "get", &answer, "example", json!({ "page": 1, "page_size": 20, "total": 1, "events": [event] }));
    put(&one, "get", &answer, "example", event.clone());
    put(&one, "patch", &["requestBody"], "example", json!({ "max_guests": 250, "expires_at": ends }));
    put(&one, "patch", &answer, "example", event);
    let page = json!({ "event_id": event_id, "page": 1, "page_size": 20, "total": 1, "registrations": [registered] });
    put(&format!("{one}/registrations"), "get", &answer, "example", page);
    let door_url = format!("https://verify.example/d/{event_id}k7w2p9x4m3qz");
    let door = json!({ "door_id": "k7w2p9x4m3qz", "name": "Gate B", "door_url": door_url, "expires_at": ends });
    let mut opened = door.clone();
    opened["pin"] = "04291738".into();
    put(&format!("{one}/doors"), "post", &["requestBody"], "example", json!({ "name": "Gate B" }));
    put(&format!("{one}/doors"), "post", &answer, "example", opened);
    put(&format!("{one}/doors"), "get", &answer, "example", json!({ "event_id": event_id, "doors": [door] }));
    put(
        &format!("{one}/check-ins"),
        "post",
        &["requestBody"],
        "example",
        json!({ "code": "7KMQ2X", "gate": "Gate B" }),
    );
    let checked = json!({ "txn_id": TXN, "checked_in_at": times[1], "gate": "Gate B", "already": false });
    put(&format!("{one}/check-ins"), "post", &answer, "example", checked);
    let row = json!({ "txn_id": TXN, "status": "passed", "opened_at": times[0], "channel": "web",
        "client_reference_id": "order-42" });
    put(&format!("{ovse}/transactions"), "get", &answer, "example", json!({ "transactions": [row] }));
    put("/api/v1/credits", "get", &answer, "example", json!({ "balance": 999 }));
    let page = json!({ "page": 1, "page_size": 20, "total": 2, "entries": entries });
    put("/api/v1/credits/statement", "get", &answer, "example", page);
    for (path, request, opened) in flow_examples::openings() {
        put(path, "post", &["requestBody"], "example", request);
        put(path, "post", &answer, "example", opened);
    }
    put("/api/v1/esign/status", "post", &["requestBody"], "example", json!({ "documentId": TXN }));
    put("/api/v1/esign/status", "post", &answer, "examples", flow_examples::esign_polls());
    put("/api/v1/doclocker/details/{transactionId}", "get", &answer, "examples", flow_examples::doclocker_polls());
    let setting = json!({ "apiType": "ESign", "webhookUrl": "https://client.example/hooks/esign" });
    put("/api/v1/user/webhook", "put", &["requestBody"], "example", setting.clone());
    put("/api/v1/user/webhook", "put", &answer, "example", json!({ "success": true, "data": setting }));
    put("/api/v1/user/webhook", "get", &answer, "example", json!({ "success": true, "data": [setting] }));
    let authority = json!({ "answers": 412, "service_down": 3, "http_errors": 0, "last_answer_at": times[0] });
    let upstreams = json!([{ "kind": "esign", "answered": 7, "failed": 0 }]);
    let webhooks = json!({ "delivered": 98, "failed": 1, "waiting": 1 });
    let status = json!({ "authority": authority, "upstreams": upstreams, "webhooks": webhooks });
    put("/api/v1/status", "get", &answer, "example", status);
    put("/api/ping", "get", &answer, "example", json!({ "success": true, "message": "pong" }));
    let key = json!({ "kty": "RSA", "alg": "RS256", "use": "sig", "kid": "intent-1", "n": "qK3v…", "e": "AQAB" });
    put("/.well-known/jwks.json", "get", &answer, "example", json!({ "keys": [key] }));
    checks::attach_examples(document);
}

/// Builds outcomes as the webhook and a finished result carry them.
pub(super) fn outcomes(spelling: KeyCase) -> Value {
    let claims = json!({ "residentName": "Asha Rao", "dob": "1990-02-14", "gender": "F",
        "address": "12 Sample Apartments, First Example Street, Demopura", "pincode": "560000" });
    let claims = claims.as_object().cloned().unwrap_or_default();
    let passed = completed(Outcome::Verified(Arc::new(VerifiedClaims::new(claims))));
    let failed = completed(Outcome::NotVerified(Failure::new("User Reject", Some("301"))));
    let named = |summary: &str, completed: &Completed| {
        json!({ "summary": summary, "value": OvsePayload::new(completed,
        spelling) })
    };
    let mut outcomes =
        json!({ "passed": named("Verified", &passed), "failed": named("Rejected by the person", &failed) });
    outcomes["passed"][ORDER] = json!(0);
    outcomes
}

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
        opened_at: month(),
        expires_at: month() + WINDOW,
        terms,
    };
    Completed { opened, verified_at: month() + WINDOW / 10, outcome, answer: AnswerDigest([0; 32]) }
}
