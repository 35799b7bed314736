//! The organiser's API on a running service: create, read, change, and the registered guests.

use std::time::Duration;

use reqwest::Method;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::ids::AppId;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use crate::in_process::InProcessNode;

const EVENTS: &str = "/api/v1/nationalid-ovse/events";

fn open_day() -> Value {
    json!({"name": "Open day", "claims": ["name", "age_above_18"], "max_guests": 3, "expires_at": in_days(7)})
}

fn in_days(days: u64) -> String {
    (SystemClock.now() + Duration::from_secs(days * 86_400)).to_string()
}

async fn created(live: &InProcessNode, request: &Value) -> String {
    let (status, answer) = live.post(EVENTS, request).await;
    assert_eq!(status, 200, "{answer}");
    let id = answer["event_id"].as_str().unwrap();
    assert_eq!(answer, json!({"event_id": id, "qr_url": live.url(&format!("/e/{id}"))}));
    id.to_owned()
}

async fn patched(live: &InProcessNode, id: &str, change: &Value) -> (u16, Value) {
    live.send(Method::PATCH, &format!("{EVENTS}/{id}"), live.first.app.as_str(), change).await
}

/// Scans the event's code with the identity app and lets a resident answer; the callback's status.
async fn guest(live: &InProcessNode, id: &str, resident: &str, action: &str) -> u64 {
    let scan = live.http.get(live.url(&format!("/e/{id}"))).header("accept", "application/jwt").send().await.unwrap();
    assert_eq!(scan.status(), 200);
    let intent = scan.text().await.unwrap();
    answered(live, &intent, resident, action).await
}

async fn answered(live: &InProcessNode, intent: &str, resident: &str, action: &str) -> u64 {
    let answer = json!({"intent": intent, "resident": resident, "action": action});
    let posted = live.http.post(live.url("/sandbox/app/answer")).json(&answer).send().await.unwrap();
    let posted: Value = posted.json().await.unwrap();
    posted["callback"]["status"].as_u64().unwrap_or_else(|| panic!("{posted}"))
}

#[actix_rt::test]
async fn a_created_event_is_shown_and_listed_with_every_field_and_no_guests() {
    let live = InProcessNode::start().await;
    let mut request = open_day();
    request["language"] = json!("urdu");
    request["webhook_url"] = json!("https://client.example/hook");
    let id = created(&live, &request).await;
    let (status, event) = live.get(&format!("{EVENTS}/{id}")).await;
    let expected = json!({
        "event_id": id, "name": "Open day", "status": "active", "is_active": true, "claims": ["name", "age_above_18"],
        "language": "urdu", "max_guests": 3, "registration_count": 0, "remaining": 3, "scan_count": 0, "abandoned_count": 0,
        "webhook_url": "https://client.example/hook", "qr_url": live.url(&format!("/e/{id}")),
        "created_at": event["created_at"], "expires_at": request["expires_at"],
    });
    assert_eq!((status, &event), (200, &expected));
    let second = created(&live, &open_day()).await;
    let (_, page) = live.get(&format!("{EVENTS}?page=2&page_size=1")).await;
    assert_eq!((&page["page"], &page["page_size"], &page["total"]), (&json!(2), &json!(1), &json!(2)));
    assert_eq!(page["events"][0]["event_id"], second, "oldest first");
    let (_, first) = live.get(&format!("{EVENTS}?page_size=1")).await;
    assert_eq!(first["events"], json!([event]));
    let (_, none) = live.get(&format!("{EVENTS}/{id}/registrations")).await;
    assert_eq!(none, json!({"event_id": id, "page": 1, "page_size": 20, "total": 0, "registrations": []}));
    live.stop().await;
}

#[actix_rt::test]
async fn what_is_not_acceptable_is_a_400_that_names_every_field() {
    let live = InProcessNode::start().await;
    let fields = |answer: &(u16, Value)| -> Vec<String> {
        assert_eq!(answer.0, 400, "{answer:?}");
        answer.1["errors"].as_array().into_iter().flatten().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(fields(&live.post(EVENTS, &json!({})).await), ["name", "claims", "max_guests", "expires_at"]);
    for (field, value) in [
        ("name", json!("")),
        ("name", json!("x".repeat(201))),
        ("claims", json!([])),
        ("language", json!("klingon")),
        ("max_guests", json!(0)),
        ("max_guests", json!(1_000_001)),
        ("expires_at", json!("yesterday")),
        ("expires_at", json!(in_days(367))),
        ("webhook_url", json!("ftp://client.example/")),
    ] {
        let mut request = open_day();
        request[field] = value;
        assert_eq!(fields(&live.post(EVENTS, &request).await), [field]);
    }
    let mut unknown = open_day();
    unknown["colour"] = json!("red");
    assert_eq!(live.post(EVENTS, &unknown).await.0, 400);

    let id = created(&live, &open_day()).await;
    for change in [
        json!({"max_guests": 0}),
        json!({"max_guests": null}),
        json!({"expires_at": "2020-01-01T00:00:00Z"}),
        json!({"is_active": null}),
        json!({"is_active": "no"}),
        json!({"name": "a\nb"}),
        json!({"claims": ["name"]}),
        json!([]),
    ] {
        assert_eq!(patched(&live, &id, &change).await.0, 400, "{change}");
    }
    for query in ["page=0", "page_size=101", "page=x", "colour=red"] {
        assert_eq!(live.get(&format!("{EVENTS}?{query}")).await.0, 400, "{query}");
        assert_eq!(live.get(&format!("{EVENTS}/{id}/registrations?{query}")).await.0, 400, "{query}");
    }
    assert_eq!(live.get(&format!("{EVENTS}/{id}")).await.1["status"], "active", "nothing was changed");
    live.stop().await;
}

#[actix_rt::test]
async fn another_apps_event_does_not_exist_for_this_one() {
    let live = InProcessNode::start().await;
    let id = created(&live, &open_day()).await;
    let mut other = live.node.store.load_app(live.first.app.clone()).await.unwrap().unwrap();
    other.app_id = AppId::generate();
    assert!(live.node.store.create_app(other.clone()).await.unwrap());
    let nothing = Value::Null;
    let disable = json!({"is_active": false});
    for (method, path, body) in [
        (Method::GET, format!("{EVENTS}/{id}"), &nothing),
        (Method::GET, format!("{EVENTS}/{id}/registrations"), &nothing),
        (Method::GET, format!("{EVENTS}/{id}/poster"), &nothing),
        (Method::GET, format!("{EVENTS}/{id}/qr.png"), &nothing),
        (Method::PATCH, format!("{EVENTS}/{id}"), &disable),
        (Method::GET, format!("{EVENTS}/not-an-id"), &nothing),
        (Method::GET, format!("{EVENTS}/00000000000000000"), &nothing),
    ] {
        let (status, answer) = live.send(method.clone(), &path, other.app_id.as_str(), body).await;
        assert_eq!((status, &answer["code"]), (404, &json!("not_found")), "{method} {path}");
    }
    assert_eq!(live.send(Method::GET, EVENTS, other.app_id.as_str(), &nothing).await.1["total"], 0);
    assert_eq!(live.get(&format!("{EVENTS}/{id}")).await.1["is_active"], true);
    live.stop().await;
}

#[actix_rt::test]
async fn guests_are_registered_once_each_with_claims_and_webhook_and_failures_take_no_place() {
    let live = InProcessNode::start().await;
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    let mut request = open_day();
    request["webhook_url"] = json!(receiver.url("/hook"));
    let id = created(&live, &request).await;
    let (_, credits) = live.get("/api/v1/credits").await;
    assert_eq!(guest(&live, &id, "asha", "approve").await, 200);
    assert_eq!(guest(&live, &id, "asha", "decline").await, 200);
    assert_eq!(guest(&live, &id, "asha", "approve").await, 200);

    let (_, event) = live.get(&format!("{EVENTS}/{id}")).await;
    let counts = ["status", "registration_count", "remaining", "scan_count", "abandoned_count"].map(|field| event[field].clone());
    assert_eq!(counts, [json!("active"), json!(2), json!(1), json!(3), json!(0)]);
    assert_eq!(live.get("/api/v1/credits").await.1["balance"], credits["balance"].as_i64().unwrap() - 3);

    let (_, first) = live.get(&format!("{EVENTS}/{id}/registrations?page_size=1")).await;
    assert_eq!((&first["total"], first["registrations"].as_array().unwrap().len()), (&json!(2), 1));
    let row = &first["registrations"][0];
    assert_eq!((&row["verification_passed"], row["verified_claims"].as_object().unwrap().len()), (&json!(true), 2));
    assert_eq!(guest(&live, &id, "asha", "approve").await, 200);
    let (_, same) = live.get(&format!("{EVENTS}/{id}/registrations?page_size=1")).await;
    assert_eq!(same["registrations"], first["registrations"], "a guest's place never changes");
    let (_, all) = live.get(&format!("{EVENTS}/{id}/registrations?page_size=100")).await;
    let mut guests: Vec<&str> = all["registrations"].as_array().unwrap().iter().map(|row| row["txn_id"].as_str().unwrap()).collect();
    assert_eq!(live.get(&format!("{EVENTS}/{id}/registrations?page=3&page_size=1")).await.1["registrations"][0]["txn_id"], guests[2]);

    // One webhook for each guest; the one who declined is told of as a single verification would be.
    let hooks = receiver.wait_for(4, Duration::from_secs(10)).await;
    let hooks: Vec<Value> = hooks.iter().map(|hook| serde_json::from_slice(&hook.body).unwrap()).collect();
    let mut told: Vec<String> = hooks
        .iter()
        .filter(|hook| hook["success"] == true)
        .map(|hook| hook["data"]["txn_id"].as_str().unwrap_or_default().to_owned())
        .collect();
    told.sort();
    guests.sort_unstable();
    assert_eq!(told, guests, "{hooks:?}");
    live.stop().await;
}

#[actix_rt::test]
async fn a_full_event_opens_again_when_its_cap_is_raised_and_a_disabled_one_stops_the_next_scan_at_once() {
    let live = InProcessNode::start().await;
    let mut request = open_day();
    request["max_guests"] = json!(1);
    let id = created(&live, &request).await;
    let page = async || live.http.get(live.url(&format!("/e/{id}"))).send().await.unwrap().status().as_u16();
    let late = live.http.get(live.url(&format!("/e/{id}"))).header("accept", "application/jwt").send().await.unwrap().text().await.unwrap();
    assert_eq!(guest(&live, &id, "asha", "approve").await, 200);
    assert_eq!(page().await, 409);
    assert_eq!(answered(&live, &late, "asha", "approve").await, 409, "the last place went while this guest was in the app");
    assert_eq!(patched(&live, &id, &json!({"max_guests": 0})).await.0, 400);
    let (status, event) = patched(&live, &id, &json!({"max_guests": 2, "name": "Open days", "expires_at": in_days(9)})).await;
    assert_eq!((status, &event["status"], &event["name"], &event["remaining"]), (200, &json!("active"), &json!("Open days"), &json!(1)));
    assert_eq!(page().await, 200);
    assert_eq!(patched(&live, &id, &json!({"is_active": false})).await.1["status"], "disabled");
    assert_eq!(page().await, 410);
    let scan = live.http.get(live.url(&format!("/e/{id}"))).header("accept", "application/jwt").send().await.unwrap();
    assert_eq!((scan.status().as_u16(), &scan.json::<Value>().await.unwrap()["code"]), (410, &json!("event_closed")));
    assert_eq!(patched(&live, &id, &json!({"is_active": true, "webhook_url": null})).await.1["status"], "active");
    assert_eq!(guest(&live, &id, "asha", "approve").await, 200);
    assert_eq!(patched(&live, &id, &json!({"max_guests": 1})).await.0, 400, "below the registrations");
    live.stop().await;
}
