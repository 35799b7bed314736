//! Invalid terms of an event, and the isolation of apps from each other's events.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::event::{BROWSER, EVENTS, IDENTITY_APP, PROGRAM, TestEvent, terms, timestamp_in};
use sakshi_kit::node::TestNode;

const DAY: Duration = Duration::from_secs(86_400);

/// Returns the terms of an event with one field changed.
fn terms_with(field: &str, value: Value) -> Value {
    let mut terms = terms(10);
    terms[field] = value;
    terms
}

/// Opens an event of ten places for which two guests have registered.
async fn event_with_two_guests(node: &TestNode, organiser: &Backend) -> TestEvent {
    let event = TestEvent::open(node, organiser, &terms(10)).await;
    for _ in 0..2 {
        node.identity_app().approve(&event.scan().await, "asha").await;
    }
    event
}

#[tokio::test]
async fn an_invalid_event_is_refused_with_the_name_of_each_field() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(1).await;
    // Body, and the fields that the error names.
    let cases = [
        (json!({}), vec!["name", "claims", "max_guests", "expires_at"]),
        (terms_with("name", json!("")), vec!["name"]),
        (terms_with("name", json!("   ")), vec!["name"]),
        (terms_with("name", json!("x".repeat(201))), vec!["name"]),
        (terms_with("name", json!("Open\u{0}day")), vec!["name"]),
        (terms_with("name", json!(7)), vec!["name"]),
        (terms_with("claims", json!([])), vec!["claims"]),
        (terms_with("claims", json!("name")), vec!["claims"]),
        (terms_with("claims", json!(["name", "shoe_size"])), vec!["claims[1]"]),
        (terms_with("max_guests", json!(0)), vec!["max_guests"]),
        (terms_with("max_guests", json!(1_000_001)), vec!["max_guests"]),
        (terms_with("max_guests", json!(-1)), vec!["max_guests"]),
        (terms_with("max_guests", json!(2.5)), vec!["max_guests"]),
        (terms_with("max_guests", json!("10")), vec!["max_guests"]),
        (terms_with("expires_at", json!("2020-01-01T00:00:00Z")), vec!["expires_at"]),
        (terms_with("expires_at", json!("tomorrow")), vec!["expires_at"]),
        (terms_with("starts_at", json!(timestamp_in(DAY * 365))), vec!["starts_at"]),
        (terms_with("starts_at", json!("noon")), vec!["starts_at"]),
        (terms_with("starts_at", json!("0001-01-01T00:00:00Z")), vec!["starts_at"]),
        (terms_with("place", json!(" ")), vec!["place"]),
        (terms_with("expires_at", json!(1_900_000_000)), vec!["expires_at"]),
        (terms_with("expires_at", json!(timestamp_in(DAY * 367))), vec!["expires_at"]),
        (terms_with("language", json!("klingon")), vec!["language"]),
        (terms_with("time_zone", json!("IST")), vec!["time_zone"]),
        (terms_with("time_zone", json!(330)), vec!["time_zone"]),
        (terms_with("organiser", json!(" ")), vec!["organiser"]),
        (terms_with("purpose", json!("x".repeat(201))), vec!["purpose"]),
        (terms_with("language", json!(24)), vec!["language"]),
        (terms_with("webhook_url", json!("ftp://hooks.example/")), vec!["webhook_url"]),
        (terms_with("webhook_url", json!("https://user:secret@hooks.example/")), vec!["webhook_url"]),
        (terms_with("webhook_url", json!("https://hooks.example/#part")), vec!["webhook_url"]),
        (terms_with("is_active", json!(true)), vec!["is_active"]),
        (terms_with("capacity", json!(10)), vec!["capacity"]),
    ];
    for (body, fields) in cases {
        assert_eq!(organiser.post(EVENTS, &body).await.refused_fields(), fields, "{body}");
    }
    assert_eq!(organiser.get(EVENTS).await.ok()["total"], 0, "a refused event does not exist");
    for body in [
        terms_with("max_guests", json!(1_000_000)),
        terms_with("max_guests", json!(20.0)),
        terms_with("language", json!(12.0)),
        terms_with("name", json!("é".repeat(200))),
        terms_with("expires_at", json!(timestamp_in(DAY * 365))),
    ] {
        organiser.post(EVENTS, &body).await.ok();
    }
    assert_eq!(node.operator().balance(&organiser.client).await, 1, "events cost nothing");
}

#[tokio::test]
async fn an_invalid_change_of_an_event_is_refused_and_changes_nothing() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(5).await;
    let event = event_with_two_guests(&node, &organiser).await;
    let before = event.state().await;
    // Change, and the fields that the error names.
    let cases = [
        (json!({"max_guests": 1}), vec!["max_guests"]),
        (json!({"max_guests": 0}), vec!["max_guests"]),
        (json!({"max_guests": 1_000_001}), vec!["max_guests"]),
        (json!({"max_guests": null}), vec!["max_guests"]),
        (json!({"max_guests": "20"}), vec!["max_guests"]),
        (json!({"is_active": null}), vec!["is_active"]),
        (json!({"is_active": "no"}), vec!["is_active"]),
        (json!({"expires_at": null}), vec!["expires_at"]),
        (json!({"expires_at": "2020-01-01T00:00:00Z"}), vec!["expires_at"]),
        (json!({"expires_at": timestamp_in(DAY * 367)}), vec!["expires_at"]),
        (json!({"expires_at": "later"}), vec!["expires_at"]),
        (json!({"starts_at": timestamp_in(DAY * 365)}), vec!["starts_at"]),
        (json!({"place": ""}), vec!["place"]),
        (json!({"name": null}), vec!["name"]),
        (json!({"name": " "}), vec!["name"]),
        (json!({"name": "a\nb"}), vec!["name"]),
        (json!({"webhook_url": "ftp://hooks.example/"}), vec!["webhook_url"]),
        (json!({"claims": ["dob"]}), vec!["claims"]),
        (json!({"language": "hindi"}), vec!["language"]),
        (json!({"time_zone": null, "organiser": "", "purpose": "a\u{7}b"}), vec!["time_zone", "organiser", "purpose"]),
        (json!({"registration_count": 3, "status": "disabled"}), vec!["status", "registration_count"]),
        (json!({"remaining": 7, "qr_url": "https://verify.example/e/other"}), vec!["remaining", "qr_url"]),
        (json!({"is_active": false, "max_guests": 1}), vec!["max_guests"]),
        (json!({"name": "", "expires_at": "later", "max_guests": 0}), vec!["max_guests", "expires_at", "name"]),
        (json!({"max_guests": 1, "expires_at": "2020-01-01T00:00:00Z"}), vec!["max_guests", "expires_at"]),
        (json!({"name": "", "expires_at": "2020-01-01T00:00:00Z", "claims": 7}), vec!["expires_at", "name", "claims"]),
    ];
    for (change, fields) in cases {
        assert_eq!(event.patch(&change).await.refused_fields(), fields, "{change}");
        assert_eq!(event.state().await, before, "{change}");
    }
}

#[tokio::test]
async fn an_event_may_be_sent_back_as_it_was_read_after_guests_and_retries() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(5).await, node.identity_app());
    let event = event_with_two_guests(&node, &organiser).await;
    let before = event.state().await;
    event.patch(&json!([])).await.refusal(400);
    assert_eq!(event.patch(&json!({})).await.ok(), before, "an empty change changes nothing");
    assert_eq!(event.patch(&before).await.ok(), before, "an event may be sent back as it was read");
    identity_app.approve(&event.scan().await, "asha").await;
    assert_eq!(event.patch(&before).await.ok()["registration_count"], 3, "even if a guest has registered meanwhile");
    for reason in [json!("credits_exhausted"), json!("a later word"), Value::Null] {
        assert_eq!(
            event.patch(&json!({"status_reason": reason})).await.ok()["status_reason"],
            Value::Null,
            "{reason} is ignored"
        );
    }
    for field in ["status_reason", "warning"] {
        assert_eq!(event.patch(&json!({field: 7})).await.refused_fields(), [field]);
    }
    // A retry after a lost response sends the status and the places that were read before the first attempt.
    let mut disabling = event.state().await;
    disabling["is_active"] = json!(false);
    disabling["max_guests"] = json!(20);
    for _ in 0..2 {
        assert_eq!(event.patch(&disabling).await.ok()["status"], "disabled");
    }
    assert_eq!(event.patch(&json!({"status": "active"})).await.refused_fields(), ["status"]);
    event.patch(&before).await.ok();
    let full = event.patch(&json!({"max_guests": 3, "name": "Last day"})).await.ok();
    assert_eq!(
        (&full["status"], &full["name"]),
        (&json!("at_capacity"), &json!("Last day")),
        "a limit equal to the count makes the event full"
    );
    let more = json!({"status": "active", "name": "Last day", "max_guests": 4});
    assert_eq!(event.patch(&more).await.ok()["status"], "active", "the last guest has come since it was read");
}

#[tokio::test]
async fn invalid_page_parameters_are_refused_by_name() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(1).await;
    let event = TestEvent::open(&node, &organiser, &terms(10)).await;
    for path in [format!("{}/registrations", event.path()), EVENTS.to_owned()] {
        for (query, field) in [
            ("page=0", "page"),
            ("page=-1", "page"),
            ("page=x", "page"),
            ("page=2147483648", "page"),
            ("page=1&page=2", "page"),
            ("page_size=0", "page_size"),
            ("page_size=101", "page_size"),
            ("sort=name", "sort"),
        ] {
            assert_eq!(organiser.get(&format!("{path}?{query}")).await.refused_fields(), [field], "{query}");
        }
        assert_eq!(organiser.get(&format!("{path}?page=2147483647&page_size=100")).await.status, 200);
    }
}

/// Disables and reads an event, and lists its guests; returns the answers.
async fn call_each_operation(backend: &Backend, id: &str) -> Vec<Answer> {
    let path = format!("{EVENTS}/{id}");
    let disable = Answer::receive(backend.request(Method::PATCH, &path).json(&json!({"is_active": false}))).await;
    vec![disable, backend.get(&path).await, backend.get(&format!("{path}/registrations")).await]
}

#[tokio::test]
async fn another_apps_event_looks_like_an_unknown_event() {
    let node = TestNode::start().await;
    let (organiser, stranger) = (node.backend_with_credits(1).await, node.backend_with_credits(1).await);
    let sibling = organiser.with_credentials(&organiser.key, &node.operator().create_app(&organiser.client).await);
    let event = TestEvent::open(&node, &organiser, &terms(10)).await;
    for (backend, id) in [
        (&stranger, event.id.as_str()),
        (&sibling, &event.id),
        (&organiser, "0000000000000"),
        (&organiser, "seven"),
        (&organiser, "%00"),
    ] {
        for answer in call_each_operation(backend, id).await {
            assert_eq!(answer.refusal(404), "not_found", "{id}");
            assert_eq!(answer.json()["message"], "There is no such event.", "{id}");
        }
    }
    for backend in [&stranger, &sibling] {
        assert_eq!(backend.get(EVENTS).await.ok()["events"], json!([]));
        for code in ["poster", "qr.png"] {
            assert_eq!(backend.get(&format!("{}/{code}", event.path())).await.refusal(404), "not_found");
        }
    }
    for answer in call_each_operation(&organiser.with_credentials("wrong", &organiser.app), &event.id).await {
        assert_eq!(answer.status, 401, "{}", answer.text);
    }
    assert_eq!(event.state().await["status"], "active");
}

#[tokio::test]
async fn guests_get_404_for_an_unknown_event() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(1).await;
    let mut unknown = TestEvent::open(&node, &organiser, &terms(10)).await;
    for id in ["0000000000000", "seven", "%3Cscript%3E"] {
        unknown.id = id.to_owned();
        for request in [unknown.visit(Method::GET, BROWSER), unknown.button(BROWSER)] {
            let page = Answer::receive(request).await;
            assert_eq!(page.status, 404, "{id}");
            assert!(
                page.header("content-type").unwrap().starts_with("text/html") && !page.text.contains("<script>"),
                "{}",
                page.text
            );
        }
        for request in [unknown.button(PROGRAM), unknown.visit(Method::GET, IDENTITY_APP)] {
            assert_eq!(Answer::receive(request).await.refusal(404), "not_found", "{id}");
        }
        assert_eq!(node.get(&format!("/e/{id}/start")).await.status, 404, "{id}");
    }
}

/// Creates an event under an idempotency key.
async fn create_once(backend: &Backend, key: &str, body: &Value) -> Answer {
    Answer::receive(backend.request(Method::POST, EVENTS).header("Idempotency-Key", key).json(body)).await
}

#[tokio::test]
async fn an_idempotency_key_creates_one_event() {
    let mut node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let organiser = node.backend_with_credits(1).await;
    let body = terms(10);
    let answers = join_all((0..12).map(|_| create_once(&organiser, "fair-7", &body))).await;
    for answer in &answers {
        assert_eq!((answer.status, &answer.text), (200, &answers[0].text));
    }
    let created = answers[0].json();
    let qr_url = format!("https://verify.example/e/{}", created["event_id"].as_str().expect("an event_id"));
    assert_eq!(created, json!({"event_id": created["event_id"], "qr_url": qr_url}));
    let other = terms(11);
    assert_eq!(create_once(&organiser, "fair-7", &other).await.refusal(422), "idempotency_key_reused");
    node.kill().await;
    node.launch().await;
    assert_eq!(create_once(&organiser, "fair-7", &body).await.text, answers[0].text);
    assert_eq!(organiser.get(EVENTS).await.ok()["total"], 1);
    create_once(&organiser, "fair-8", &body).await.ok();
    assert_eq!(organiser.get(EVENTS).await.ok()["total"], 2);
}
