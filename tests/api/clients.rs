//! An operator's settings of a client: its name, suspension, and limits.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use sakshi_client::public::EVENTS;
use sakshi_kit::answer::Answer;
use sakshi_kit::event::{BROWSER, EventCounts, PROGRAM, TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::portal::Browser;
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

#[tokio::test]
async fn a_suspended_client_is_refused_while_its_pending_verifications_go_on() {
    let node = TestNode::start().await;
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    let (backend, operator, identity_app) = (node.backend_with_credits(10).await, node.operator(), node.identity_app());
    let browser = Browser::signed_in(&node, &backend).await;
    let event = TestEvent::open(&node, &backend, &terms(5)).await;
    let (pending, guest) = (backend.open_reported(&["name"], &receiver.url("/hook")).await, event.scan().await);
    let other = node.backend_with_credits(1).await;

    let path = format!("/admin/v1/clients/{}", backend.client);
    let changed_client = operator.patch(&path, &json!({"suspended": true})).await.ok();
    assert!(changed_client["suspended_at"].is_string(), "{changed_client}");
    let suspended_at = Instant::now();
    loop {
        let elapsed = suspended_at.elapsed();
        if backend.result(&pending.txn).await.status == 401 {
            break;
        }
        assert_within(elapsed, Duration::from_secs(1), "the refusal of a suspended client");
    }
    assert_eq!(backend.init(&json!({"claims": ["name"], "channel": "qr"})).await.refusal(401), "unauthorized");
    assert!(browser.is_redirected_to_sign_in("/portal").await, "the session has ended");
    let page = Answer::receive(event.visit(reqwest::Method::GET, BROWSER)).await;
    assert!(page.text.contains("Registration has closed"), "{}", page.text);
    assert_eq!(Answer::receive(event.button(PROGRAM)).await.refusal(410), "event_closed");
    other.open(&["name"]).await;

    identity_app.approve(&pending, "asha").await;
    identity_app.approve(&guest, "asha").await;
    assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1);
    assert_eq!(operator.balance(&backend.client).await, 8, "the refused guest cost nothing");

    operator.patch(&path, &json!({"suspended": false})).await.ok();
    eventually("the client's return", TIMEOUT, || async {
        (backend.result(&pending.txn).await.status == 200).then_some(())
    })
    .await;
    assert_eq!(event.counts().await, EventCounts { status: "active", registered: 1, scanned: 1, abandoned: 0 });
    assert!(browser.is_redirected_to_sign_in("/portal").await, "an ended session stays ended");
}

#[tokio::test]
async fn a_change_of_a_client_is_in_the_audit_log() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(0).await, node.operator());
    let path = format!("/admin/v1/clients/{}", backend.client);
    let change = json!({"name": "Acme Bank", "requests_per_second": 7, "events_per_app": 3, "low_credits": 1_000});
    let changed = operator.patch(&path, &change).await.ok();
    for (name, value) in change.as_object().unwrap() {
        assert_eq!(&changed[name], value, "{name}");
    }
    assert_eq!(operator.get(&path).await.ok(), changed);
    let listed = operator.get("/admin/v1/clients").await.ok();
    assert!(listed["clients"].as_array().unwrap().contains(&changed), "{listed}");
    let removed = operator.patch(&path, &json!({"requests_per_second": null})).await.ok();
    assert!(removed["requests_per_second"].is_null() && removed["events_per_app"] == 3, "{removed}");
    let log = operator.get("/admin/v1/audit-log").await.ok();
    let entries = log["entries"].as_array().unwrap();
    let find_entry = |stage: &str| {
        entries
            .iter()
            .map(|row| &row["entry"])
            .find(|entry| entry["operation"] == "updateClient" && entry["stage"] == stage)
    };
    let (request_entry, answer_entry) = (find_entry("asked").unwrap(), find_entry("answered").unwrap());
    assert_eq!(
        (&request_entry["asked"], &request_entry["before"]["name"], &answer_entry["after"]),
        (&change, &json!("Client"), &changed)
    );
    for (wrong, field) in [
        (json!({"requests_per_second": 0}), "requests_per_second"),
        (json!({"events_per_app": -1}), "events_per_app"),
        (json!({"low_credits": 0.5}), "low_credits"),
        (json!({"suspended": null}), "suspended"),
        (json!({"name": ""}), "name"),
        (json!({"credits": 1}), "credits"),
    ] {
        assert_eq!(operator.patch(&path, &wrong).await.refused_fields(), [field]);
    }
    assert_eq!(operator.patch("/admin/v1/clients/cl_nobody", &json!({})).await.status, 404);
}

#[tokio::test]
async fn a_client_is_limited_to_its_requests_per_second() {
    let node = TestNode::start().await;
    let (backend, other, operator) =
        (node.backend_with_credits(0).await, node.backend_with_credits(0).await, node.operator());
    let second_app = backend.with_credentials(&backend.key, &operator.create_app(&backend.client).await);
    let path = format!("/admin/v1/clients/{}", backend.client);
    operator.patch(&path, &json!({"requests_per_second": 1})).await.ok();
    // The limit takes effect within a second; then one of two concurrent requests exceeds it.
    let refusal = eventually("the limit", TIMEOUT, || async {
        let (first, second) = tokio::join!(backend.result("x"), second_app.result("x"));
        let refused = [&first, &second].into_iter().find(|answer| answer.status == 429)?;
        assert_eq!(refused.refusal(429), "rate_limited");
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(refused.header("ratelimit-policy"), Some("\"client\";q=1;w=1"), "it counts once");
        Some(refused.json()["errorId"].as_str().expect("an id").to_owned())
    })
    .await;
    let record = format!("/admin/v1/requests/{refusal}");
    eventually("the refusal in the records", TIMEOUT, || async {
        (operator.get(&record).await.status == 200).then_some(())
    })
    .await;
    operator.patch(&path, &json!({"requests_per_second": 1_000})).await.ok();
    eventually("a refused request that counts once", TIMEOUT, || async {
        let policy = backend.result("x").await.header("ratelimit-policy").map(str::to_owned);
        (policy.as_deref() == Some("\"client\";q=1000;w=1")).then_some(())
    })
    .await;
    for _ in 0..9 {
        assert_eq!(other.result("x").await.status, 404, "other clients have no limit");
    }
}

#[tokio::test]
async fn an_app_has_no_more_events_than_the_operator_allows() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(0).await, node.operator());
    let path = format!("/admin/v1/clients/{}", backend.client);
    operator.patch(&path, &json!({"events_per_app": 1})).await.ok();
    TestEvent::open(&node, &backend, &terms(5)).await;
    let event = terms(5);
    let open_another = || backend.post(EVENTS, &event);
    let refused =
        eventually("the limit", TIMEOUT, || async { Some(open_another().await).filter(|answer| answer.status != 200) })
            .await;
    assert_eq!(refused.refusal(409), "limit_reached");
    operator.patch(&path, &json!({"events_per_app": null})).await.ok();
    eventually("the end of the limit", TIMEOUT, || async { (open_another().await.status == 200).then_some(()) }).await;
}

#[tokio::test]
async fn a_client_is_counted_as_low_on_credits_by_its_own_limit() {
    let mut node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(500).await, node.operator());
    let low_clients = |node: &TestNode| {
        let operator = node.operator();
        async move {
            eventually("the figure", TIMEOUT, || async {
                let metrics = operator.probe("/metrics").await.text;
                let line = metrics.lines().find(|line| line.starts_with("sakshi_clients_low_on_credits "))?;
                line.split(' ').nth(1)?.parse::<Value>().ok()
            })
            .await
        }
    };
    operator.patch(&format!("/admin/v1/clients/{}", backend.client), &json!({"low_credits": 501})).await.ok();
    // A node counts at its start.
    node.restart().await;
    eventually("the count", TIMEOUT, || async { (low_clients(&node).await == 1).then_some(()) }).await;
    node.operator().patch(&format!("/admin/v1/clients/{}", backend.client), &json!({"low_credits": 500})).await.ok();
    node.restart().await;
    eventually("the count", TIMEOUT, || async { (low_clients(&node).await == 0).then_some(()) }).await;
}

#[tokio::test]
async fn a_client_may_have_a_shorter_retention_of_results() {
    let node = TestNode::start().await;
    let (backend, other, operator, identity_app) = (
        node.backend_with_credits(1_000).await,
        node.backend_with_credits(5).await,
        node.operator(),
        node.identity_app(),
    );
    let path = format!("/admin/v1/clients/{}", backend.client);
    let (opened_before, of_other_client) = (backend.open(&["name"]).await, other.open(&["name"]).await);
    operator.patch(&path, &json!({"result_ttl_s": 1, "registration_ttl_days": 1})).await.ok();
    for opened in [&opened_before, &of_other_client] {
        identity_app.approve(opened, "asha").await;
    }
    // New transactions get the new retention within a second.
    let opened_later = RefCell::new(Vec::new());
    let deleted_txn = eventually("the deletion of a result after a second", TIMEOUT, || async {
        let opened = backend.open(&["name"]).await;
        identity_app.approve(&opened, "asha").await;
        opened_later.borrow_mut().push(opened.txn);
        let txns = opened_later.borrow().clone();
        for txn in txns {
            if backend.result(&txn).await.status == 404 {
                return Some(txn);
            }
        }
        None
    })
    .await;
    assert_eq!(backend.result(&deleted_txn).await.refusal(404), "transaction_not_found");
    assert_eq!(
        (backend.result(&opened_before.txn).await.status, other.result(&of_other_client.txn).await.status),
        (200, 200),
        "the first was opened before the change, and the second is of another client"
    );
    for (wrong, field) in [
        (json!({"result_ttl_s": 366 * 86_400}), "result_ttl_s"),
        (json!({"registration_ttl_days": 3_660}), "registration_ttl_days"),
        (json!({"registration_ttl_days": 0}), "registration_ttl_days"),
    ] {
        assert_eq!(operator.patch(&path, &wrong).await.refused_fields(), [field]);
    }
}
