//! Examples of requests and responses in the document. A test validates each example against its schema.

use serde_json::{Value, json};

const CLIENT: &str = "cl_5f0c1d2e3b4a49788695a4b3c2d1e0f9";
const APP: &str = "app_0c1d2e3b4a5f49788695a4b3c2d1e0f9";
const KEY: &str = "key_2e3b4a5f0c1d49788695a4b3c2d1e0f9";
/// Placeholder for the text of a key.
const KEY_TEXT: &str = "sk_…";
const USER: &str = "usr_5f0c1d2e3b4a49788695a4b3c2d1e0f9";
const OPERATOR: &str = "op_4a5f0c1d2e3b49788695a4b3c2d1e0f9";
const TXN: &str = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
/// Time at which the records of the examples were created.
const CREATED: &str = "2026-01-15T10:00:00.000Z";
/// Time at which a record of the examples was changed or ends.
const LATER: &str = "2026-01-15T10:15:00.000Z";

/// Adds examples to the bodies of an operation.
pub(super) fn attach(operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let example = client_example(id).or_else(|| app_example(id)).or_else(|| user_example(id));
    let example = example.or_else(|| credit_example(id)).or_else(|| service_example(id)).or_else(|| node_example(id));
    let Some((request, response)) = example else { return };
    if !request.is_null() {
        operation["requestBody"]["content"]["application/json"]["example"] = request;
    }
    if !response.is_null() {
        operation["responses"]["200"]["content"]["application/json"]["example"] = response;
    }
}

/// Returns an example of a brand (name, logo and colours of a client on pages).
fn brand() -> Value {
    json!({ "name": "Example Bank", "logo_url": "/assets/logo/5f0c1d2e3b4a49788695a4b3c2d1e0f9", "picture_url": null,
        "colour": "#7a1f3d",
        "support": "help@bank.example", "privacy_url": "https://bank.example/privacy" })
}

/// Request and response of an operation; null without a body.
type Example = (Value, Value);

/// Returns the example of an operation on clients and their brands.
fn client_example(id: &str) -> Option<Example> {
    let name = |name: &str| json!({ "name": name });
    Some(match id {
        "listClients" => (Value::Null, json!({ "page": 1, "page_size": 20, "total": 1, "clients": [client(None)] })),
        "getClient" => (Value::Null, client(None)),
        "updateClient" => (json!({ "suspended": true, "requests_per_second": 50 }), client(Some(LATER))),
        "createClient" => (name("Example Bank"), json!({ "client_id": CLIENT })),
        "exportClient" => (Value::Null, export()),
        "importClient" => {
            let record = |kind, id, outcome, changed: Value| {
                json!({ "kind": kind, "id": id, "outcome": outcome,
                "changed": changed })
            };
            let records = json!([
                record("client", CLIENT, "unchanged", json!([])),
                record("app", APP, "changed", json!(["payload_spelling"])),
                record("key", KEY, "created", json!([])),
            ]);
            (export(), json!({ "client_id": CLIENT, "records": records }))
        }
        "getClientBrand" | "getEventBrand" => (Value::Null, brand()),
        "changeClientBrand" | "changeEventBrand" => {
            (json!({ "colour": "#7a1f3d", "support": "help@bank.example" }), brand())
        }
        _ => return None,
    })
}

/// Returns the example of an operation on apps and keys.
fn app_example(id: &str) -> Option<Example> {
    let name = |name: &str| json!({ "name": name });
    let url = "https://client.example/hooks/consent";
    Some(match id {
        "createApp" => (name("Kiosk"), json!({ "app_id": APP })),
        "listApps" => (Value::Null, json!({ "apps": [app(None)] })),
        "getApp" => (Value::Null, app(None)),
        "updateApp" => (json!({ "payload_spelling": "snake_case", "consent_webhook_url": url }), app(Some(url))),
        "listAppEvents" => {
            let event = json!({ "event_id": "1R8swWyefAkVT2e0k", "name": "Open day", "status": "active",
                "max_guests": 200,
                "registrations": 1, "scans": 3, "abandoned": 1, "created_at": CREATED, "expires_at": LATER });
            (Value::Null, json!({ "page": 1, "page_size": 20, "total": 1, "events": [event] }))
        }
        "listAppWebhookOrigins" => {
            (Value::Null, json!({ "webhook_urls": [{ "apiType": "ESign", "origin": "https://client.example" }] }))
        }
        "issueKey" => (
            json!({ "label": "kiosk", "environments": ["stage", "production"], "networks": ["203.0.113.0/24"],
                "expires_at": "2027-01-15T10:00:00.000Z" }),
            json!({ "key_id": KEY, "api_key": KEY_TEXT }),
        ),
        "listKeys" => (Value::Null, json!({ "keys": [key(None, None)] })),
        "revokeKey" => (Value::Null, key(None, Some(LATER))),
        "rotateKey" => {
            let successor = "key_3b4a5f0c1d2e49788695a4b3c2d1e0f9";
            (
                json!({ "overlap_s": 900 }),
                json!({ "key_id": successor, "api_key": KEY_TEXT, "previous": key(Some(LATER), None) }),
            )
        }
        _ => return None,
    })
}

/// Returns the example of an operation on users and operators.
fn user_example(id: &str) -> Option<Example> {
    Some(match id {
        "inviteUser" => (
            json!({ "name": "Asha Rao", "email": "asha@bank.example", "role": "organise" }),
            json!({ "user_id": USER, "invite_url": "https://verify.example/portal/invite/…", "expires_at": LATER }),
        ),
        "resetUser" => (
            Value::Null,
            json!({ "user_id": USER, "invite_url": "https://verify.example/portal/invite/…", "expires_at": LATER }),
        ),
        "listUsers" => (Value::Null, json!({ "users": [user(None)] })),
        "updateUser" => (json!({ "disabled": true }), user(Some(LATER))),
        "removeUser" => (Value::Null, json!({ "user_id": USER })),
        "addOperator" => (
            json!({ "name": "Asha Rao", "role": "support", "expires_at": "2027-01-15T10:00:00.000Z" }),
            json!({ "operator_id": OPERATOR, "token": "so_…" }),
        ),
        "listOperators" => (Value::Null, json!({ "operators": [operator(None)] })),
        "revokeOperator" => (Value::Null, operator(Some(LATER))),
        _ => return None,
    })
}

/// Returns the example of an operation on credits.
fn credit_example(id: &str) -> Option<Example> {
    Some(match id {
        "getClientCredits" => (Value::Null, json!({ "balance": 999 })),
        "grantCredits" => (
            json!({ "kind": "grant", "amount": 1_000, "reference": "invoice-7" }),
            json!({ "balance": 1_000, "entry": ledger_entry(1, "grant", 1_000, 1_000, "invoice-7") }),
        ),
        "listGrantRequests" => (Value::Null, json!({ "requests": [grant_request("pending")] })),
        "confirmGrant" => {
            let moved = ledger_entry(2, "grant", 100_000, 101_000, "invoice-8");
            (Value::Null, json!({ "balance": 101_000, "entry": moved, "request": grant_request("confirmed") }))
        }
        "refuseGrant" => (Value::Null, grant_request("refused")),
        "getClientStatement" => {
            let entries = [ledger_entry(1, "grant", 1_000, 1_000, "invoice-7"), ledger_entry(2, "debit", 1, 999, TXN)];
            (Value::Null, json!({ "page": 1, "page_size": 20, "total": 2, "entries": entries }))
        }
        "auditCredits" => {
            let client =
                json!({ "client_id": CLIENT, "balance": 999, "sum": 999, "entries": 2, "faults": 0, "clean": true });
            (Value::Null, json!({ "clean": true, "clients": [client] }))
        }
        _ => return None,
    })
}

/// Returns the example of an operation on encryption, erasure, logs, look-ups and reports.
fn service_example(id: &str) -> Option<Example> {
    Some(match id {
        "reseal" => (
            json!({ "from": "6.4096." }),
            json!({ "sealing_key": "5f0c1d2e", "next": null, "looked_at": 120_400, "resealed": 120_399,
                "left": [{ "key_id": "9f86d081", "values": 1 }] }),
        ),
        "erase" => (
            json!({ "kind": "transaction", "id": TXN }),
            json!({ "transactions": 1, "registrations": 1, "events": 0, "flows": 0, "answers": 1, "refusals": 0,
                "users": 0 }),
        ),
        "listIntentKeys" => (Value::Null, intent_keys(None)),
        "useIntentKey" => (json!({ "kid": "sakshi-2" }), intent_keys(Some("sakshi-2"))),
        "getAuditLog" => (Value::Null, audit_log()),
        "listConsents" => (Value::Null, consents()),
        "getTransaction" => (Value::Null, transaction()),
        "findRefusedRequest" => {
            let request = json!({ "at": CREATED, "client_id": CLIENT, "app_id": APP, "method": "POST",
                "route": "/api/v1/nationalid-ovse/init",
                "status": 400, "code": "invalid_request", "fields": ["claims[0]"], "request_id": "order-42-try-1" });
            (Value::Null, json!({ "requests": [request] }))
        }
        "getTransactionDelivery" => (Value::Null, delivery()),
        "listFlowDeliveries" => (Value::Null, flow()),
        "reportFlow" => (report(), json!({ "success": true, "result": "accepted" })),
        _ => return None,
    })
}

/// Returns the example of an operation on nodes and the store.
fn node_example(id: &str) -> Option<Example> {
    Some(match id {
        "acceptLoss" => (Value::Null, json!({ "accepted": true, "since": CREATED })),
        "finishUpgrade" => {
            let finished =
                json!({ "schema": 28, "state": "finished", "behind": [], "looked_at": 5_120, "changed": 5_117 });
            (Value::Null, finished)
        }
        "acceptClock" => (Value::Null, json!({ "accepted": true, "since": CREATED, "ahead_s": 172_800 })),
        "getLogLevel" => (Value::Null, log_level("sakshi_store=debug", Some(LATER))),
        "changeLogLevel" => {
            (json!({ "level": "sakshi_store=debug", "for_s": 600 }), log_level("sakshi_store=debug", Some(LATER)))
        }
        "resetLogLevel" => (Value::Null, log_level(DEFAULT_LEVEL, None)),
        "getSupervisionTree" => (Value::Null, tree_node("root", "root", &[tree_node("reaper", "reaper", &[])])),
        "listNodes" => (Value::Null, nodes()),
        "getLiveness" | "getReadiness" => (Value::Null, json!({ "status": "ok" })),
        _ => return None,
    })
}

const DEFAULT_LEVEL: &str = "info,actix_server=warn";

fn log_level(level: &str, until: Option<&str>) -> Value {
    json!({ "level": level, "usual": DEFAULT_LEVEL, "until": until })
}

fn intent_keys(chosen: Option<&str>) -> Value {
    let key = |kid: &str, setting: &str, signs_from: Option<&str>, signs| {
        json!({ "kid": kid, "algorithm": "ES256",
        "setting": setting, "signs_from": signs_from, "signs": signs })
    };
    let keys = [
        key("sakshi-1", "authority.intent_key", None, chosen.is_none()),
        key("sakshi-2", "authority.further_intent_keys", Some("2027-01-15T10:00:00.000Z"), chosen.is_some()),
    ];
    json!({ "keys": keys, "chosen": chosen, "chosen_at": chosen.map(|_| LATER) })
}

fn consents() -> Value {
    let entry = json!({ "kind": "verification", "id": TXN, "client_id": CLIENT, "app_id": APP, "event_id": null,
        "purpose": "To open your savings account", "asked": ["name", "dob"], "language": "hindi",
        "consent_text_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "release": "0.1.0",
        "opened_at": CREATED, "answered_at": LATER, "answer": "given", "code": null });
    json!({ "consents": [entry], "next": format!("/admin/v1/clients/{CLIENT}/consents?after=2971.100&limit=100") })
}

fn export() -> Value {
    json!({
        "client": { "client_id": CLIENT, "name": "Example Bank", "created_at": CREATED },
        "apps": [{ "app_id": APP, "name": "Kiosk", "payload_spelling": "snake_case", "created_at": CREATED }],
        "keys": [{ "key_id": KEY, "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "label": "kiosk",
            "created_at": CREATED }],
    })
}

fn client(suspended_at: Option<&str>) -> Value {
    json!({ "client_id": CLIENT, "name": "Example Bank", "created_at": CREATED, "suspended_at": suspended_at,
        "requests_per_second": 50, "events_per_app": null, "low_credits": null, "result_ttl_s": 3_600,
        "registration_ttl_days": null,
        "portal_key_sign_in": true })
}

fn app(consent_webhook_url: Option<&str>) -> Value {
    json!({ "app_id": APP, "client_id": CLIENT, "name": "Kiosk", "payload_spelling": "snake_case", "evidence": false,
        "consent_webhook_url": consent_webhook_url, "data_webhook_url": null, "historical_webhook_url": null,
        "created_at": CREATED })
}

fn key(expires_at: Option<&str>, revoked_at: Option<&str>) -> Value {
    json!({ "key_id": KEY, "client_id": CLIENT, "label": "kiosk", "environments": [], "networks": ["203.0.113.0/24"],
        "created_at": CREATED,
        "expires_at": expires_at, "revoked_at": revoked_at })
}

fn ledger_entry(seq: u64, kind: &str, amount: u64, balance_after: u64, reference: &str) -> Value {
    json!({ "seq": seq, "kind": kind, "amount": amount, "balance_after": balance_after, "reference": reference,
        "at": CREATED })
}

fn grant_request(state: &str) -> Value {
    let decided = (state != "pending").then_some(LATER);
    json!({ "grant_id": "gr_1d2e3b4a5f0c49788695a4b3c2d1e0f9", "client_id": CLIENT, "kind": "grant", "amount": 100_000,
        "reference": "invoice-8", "state": state, "asked_by": OPERATOR, "asked_by_name": "Asha Rao",
        "asked_at": CREATED,
        "ends_at": "2026-01-16T10:00:00.000Z", "decided_by": decided.map(|_| "settings"),
        "decided_by_name": decided.map(|_| "settings"),
        "decided_at": decided })
}

fn delivery() -> Value {
    let attempt = json!({ "outcome": "delivered", "reason": null, "part": null, "sent": "yes", "status": 200,
        "duration_ms": 41 });
    json!({ "id": 7, "origin": "https://client.example", "queued_at": CREATED, "claimed_at": CREATED,
        "attempt": attempt })
}

fn operator(revoked_at: Option<&str>) -> Value {
    json!({ "operator_id": OPERATOR, "name": "Asha Rao", "role": "support", "created_at": CREATED,
        "expires_at": "2027-01-15T10:00:00.000Z", "revoked_at": revoked_at })
}

fn user(disabled_at: Option<&str>) -> Value {
    json!({ "user_id": USER, "client_id": CLIENT, "name": "Asha Rao", "email": "asha@bank.example", "role": "organise",
        "created_at": CREATED,
        "invited_until": null, "accepted_at": CREATED, "signed_in_at": CREATED, "disabled_at": disabled_at })
}

fn audit_log() -> Value {
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let entry = json!({ "at": CREATED, "stage": "asked", "operator_id": null, "operator": "settings",
        "operation": "createClient", "ids": {},
        "from": "127.0.0.1", "request_id": "order-42-try-1", "asked": { "name": "Example Bank" }, "before": null });
    let entry = json!({ "number": 1, "previous_hash": "0".repeat(64), "hash": hash, "entry": entry });
    json!({ "entries": [entry], "head": { "number": 1, "hash": hash } })
}

fn transaction() -> Value {
    json!({ "txn_id": TXN, "status": "completed", "client_id": CLIENT, "app_id": APP, "event_id": null,
        "client_name": "Example Bank",
        "app_name": "Kiosk", "event_name": null, "claims": ["name", "dob"], "webhook_origin": "https://client.example",
        "channel": "web",
        "request_id": "order-42-try-1", "trace_id": null, "opened_at": CREATED, "expires_at": LATER,
        "verified_at": CREATED,
        "verification_passed": true, "refused": null, "delivery": delivery() })
}

fn flow() -> Value {
    let webhook = json!({ "id": 8, "tells": "esign Completed", "state": "unreachable", "reason": "tls_expired",
        "part": "tls",
        "sent": "no", "status": null, "duration_ms": 41, "origin": "https://client.example", "queued_at": LATER,
        "claimed_at": LATER, "webhook": "9f86d081884c7d659a2feaa0c55ad015" });
    json!({ "flow_id": TXN, "kind": "esign", "state": "Completed", "app_id": APP, "client_id": CLIENT,
        "request_id": "order-42-try-1",
        "opened_at": CREATED, "kept_until": "2026-01-16T10:15:00.000Z", "deliveries": [webhook] })
}

fn report() -> Value {
    json!({ "app_id": APP, "uniqueIdentifier": TXN, "accountId": "account-2", "consentId": "consent-1",
        "status": "HISTORICAL_DATA_FETCH_SUCCESS", "fromDate": "2020-04-01", "toDate": "2026-01-31",
        "fiType": "MUTUAL_FUNDS",
        "consentHandleId": "handle-1", "maskedAccountNumber": "******5678", "fipId": "example-funds" })
}

fn tree_node(name: &str, kind: &str, children: &[Value]) -> Value {
    json!({ "name": name, "kind": kind, "state": "running", "live": 1, "restarts": 0, "last_exit": null,
        "last_panic": null,
        "age_s": 86_400, "mailbox": 0, "children": children })
}

fn nodes() -> Value {
    let panic = json!({ "at": CREATED, "place": "actors/src/reaper.rs:36", "request_id": null, "count": 1 });
    let mut reaper = tree_node("reaper", "reaper", &[]);
    reaper["restarts"] = 1.into();
    reaper["last_exit"] = "panicked".into();
    reaper["last_panic"] = panic;
    let figures = json!({ "interval_s": 2, "inits": [4, 6], "callbacks": [3, 5], "webhooks": [3, 5],
        "webhooks_failed": [0, 1],
        "p99_ms": [2.4, 3.1], "cpu_percent": [1.5, 2.0] });
    let this_node = json!({ "node": "5f0c1d2e3b4a49788695a4b3c2d1e0f9", "is_this": true, "version": "0.1.0 (5f0c1d2e)",
        "started_at": CREATED,
        "seen_at": LATER, "state": "live", "live_transactions": 12, "live_events": 1, "tree": tree_node("root", "root",
            &[reaper]),
        "receivers": [{ "origin": "https://client.example", "client_id": CLIENT, "waiting": 3, "in_flight": 1,
            "oldest_s": 4 }],
        "receivers_total": 1, "figures": figures });
    json!({ "now": LATER, "nodes": [this_node] })
}
