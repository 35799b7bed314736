//! Specification, "Events": a webhook is sent at most once, and the operator sees its outcome.

use sakshi_domain::time::Timestamp;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{Backend, INIT, Opened};
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;
use sakshi_kit::operator::ADMIN_TOKEN;
use sakshi_kit::ports::free_address;
use sakshi_kit::waiting::TIMEOUT;

async fn start_receiver(behaviour: Behaviour) -> WebhookReceiver {
    WebhookReceiver::start(behaviour).await.expect("a port")
}

/// Opens a transaction with a webhook to this receiver.
async fn open_reported_to(backend: &Backend, receiver: &WebhookReceiver, request_id: &str) -> Opened {
    let body = json!({
        "claims": ["name", "dob", "gender", "address", "pincode"], "channel": "web",
        "webhook_url": receiver.url("/hook?for=order-7"),
        "client_reference_id": "order-7",
    });
    let request = backend.request(reqwest::Method::POST, INIT).header("X-Request-ID", request_id).json(&body);
    Opened::read(&Answer::receive(request).await.ok())
}

/// Completes a transaction, verified or refused by the person.
async fn complete(identity_app: &IdentityApp, opened: &Opened, passes: bool) {
    if passes {
        identity_app.approve(opened, "asha").await;
    } else {
        assert_eq!(identity_app.fail(opened, "301", "User Reject").await.status, 200);
    }
}

#[tokio::test]
async fn the_body_is_golden_in_the_apps_spelling_and_equals_the_result() {
    let node = TestNode::start().await;
    let (backend, identity_app, operator) = (node.backend_with_credits(4).await, node.identity_app(), node.operator());
    let receiver = start_receiver(Behaviour::Answer(200)).await;
    let cases = [
        ("snake_case", true, include_str!("golden/verified_snake_case.json")),
        ("snake_case", false, include_str!("golden/failed_snake_case.json")),
        ("camelCase", true, include_str!("golden/verified_camel_case.json")),
        ("camelCase", false, include_str!("golden/failed_camel_case.json")),
    ];
    for (number, (spelling, passes, golden)) in cases.into_iter().enumerate() {
        operator.patch(&format!("/admin/v1/apps/{}", backend.app), &json!({"payload_spelling": spelling})).await.ok();
        // The app's settings are cached for at most a second, like its keys.
        let app = operator.get(&format!("/admin/v1/apps/{}", backend.app)).await.ok();
        assert_eq!(app["payload_spelling"], spelling);
        let opened = open_reported_to(&backend, &receiver, &format!("order-7/{number}")).await;
        complete(&identity_app, &opened, passes).await;
        let webhooks = receiver.wait_for(number + 1, TIMEOUT).await;
        assert_eq!(webhooks.len(), number + 1);
        let body = std::str::from_utf8(&webhooks[number].body).expect("UTF-8");
        let data: Value = serde_json::from_str::<Value>(body).expect("JSON")["data"].clone();
        let verified_at =
            data.get("verified_at").or(data.get("verifiedAt")).and_then(Value::as_str).expect("a time").to_owned();
        let time = Timestamp::parse_iso8601(&verified_at).expect("RFC 3339");
        assert!(verified_at.ends_with('Z') && (time.seconds() - sakshi_kit::issuer::now()).abs() < 30, "{verified_at}");
        let golden = golden.trim_end().replace("{txn}", &opened.txn).replace("{verified_at}", &verified_at);
        assert_eq!(body, golden.replace("{request_id}", &format!("order-7/{number}")));
        sakshi_kit::waiting::eventually("the poll in the same spelling", TIMEOUT, || async {
            (backend.result(&opened.txn).await.text == body).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_webhook_is_one_json_post_without_custom_headers() {
    let node = TestNode::start().await;
    let (backend, identity_app, operator) = (node.backend_with_credits(1).await, node.identity_app(), node.operator());
    let receiver = start_receiver(Behaviour::Answer(204)).await;
    let opened = open_reported_to(&backend, &receiver, "order-7").await;
    identity_app.approve(&opened, "asha").await;
    let record = operator.delivery(&opened.txn).await;
    assert_eq!((&record["attempt"]["outcome"], &record["attempt"]["status"]), (&json!("delivered"), &json!(204)));
    let webhooks = receiver.received();
    assert_eq!(webhooks.len(), 1);
    let request = &webhooks[0];
    assert_eq!(request.path, "/hook?for=order-7");
    assert_eq!(request.headers["content-type"], "application/json");
    let names: Vec<&str> = request.headers.keys().map(|name| name.as_str()).collect();
    for name in names {
        let known = ["host", "content-type", "content-length", "accept", "user-agent", "connection"];
        assert!(known.contains(&name), "{name} is not a header of the specification");
    }
}

#[tokio::test]
async fn a_repeated_callback_sends_no_second_webhook_even_after_a_restart() {
    let mut node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let receiver = start_receiver(Behaviour::Answer(200)).await;
    let opened = open_reported_to(&backend, &receiver, "order-7").await;
    let credential = identity_app.credential(&opened, "asha");
    identity_app.present(&opened, &credential).await;
    node.operator().delivery(&opened.txn).await;
    identity_app.present(&opened, &credential).await;
    node.kill().await;
    node.launch().await;
    assert_eq!(identity_app.present(&opened, &credential).await.status, 200);
    // A later delivery to the same origin ends after any delivery repeated by the restart.
    let next = open_reported_to(&backend, &receiver, "order-8").await;
    identity_app.approve(&next, "asha").await;
    node.operator().delivery(&next.txn).await;
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test]
async fn a_transaction_without_a_webhook_url_sends_nothing() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    identity_app.approve(&opened, "asha").await;
    assert_eq!(backend.result(&opened.txn).await.ok()["success"], true);
    let path = format!("/admin/v1/transactions/{}/delivery", opened.txn);
    assert_eq!(node.operator().get(&path).await.refusal(404), "not_found");
}

#[tokio::test]
async fn an_expired_transaction_sends_no_webhook() {
    let node = TestNode::start_with(&[("OVSE__WINDOW_S", "1")]).await;
    let backend = node.backend_with_credits(1).await;
    let receiver = start_receiver(Behaviour::Answer(200)).await;
    let opened = open_reported_to(&backend, &receiver, "order-7").await;
    sakshi_kit::waiting::eventually("expiry", TIMEOUT, || async {
        (backend.result(&opened.txn).await.status == 410).then_some(())
    })
    .await;
    let path = format!("/admin/v1/transactions/{}/delivery", opened.txn);
    assert_eq!(node.operator().get(&path).await.status, 404);
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn a_failed_attempt_is_not_retried_and_its_outcome_is_recorded() {
    // Long enough that a receiver that answers is in time on a busy machine.
    let settings = [("WEBHOOKS__TIMEOUT_MS", "3000"), ("WEBHOOKS__CONNECT_TIMEOUT_MS", "2500")];
    let node = TestNode::start_with(&settings).await;
    let (backend, identity_app, operator) = (node.backend_with_credits(20).await, node.identity_app(), node.operator());
    let redirect_target = start_receiver(Behaviour::Answer(200)).await;
    // Behaviour of the receiver, recorded outcome, whether the request was sent, and its HTTP status.
    let cases = [
        (Behaviour::Answer(500), "rejected", "yes", json!(500)),
        (Behaviour::Answer(404), "rejected", "yes", json!(404)),
        (Behaviour::Answer(429), "rejected", "yes", json!(429)),
        (Behaviour::Redirect(redirect_target.url("/moved")), "rejected", "yes", json!(302)),
        (Behaviour::Hang, "timed_out", "unknown", Value::Null),
        (Behaviour::Drop, "broken", "unknown", Value::Null),
    ];
    for (behaviour, outcome, sent, status) in cases {
        let receiver = start_receiver(behaviour.clone()).await;
        let opened = open_reported_to(&backend, &receiver, "order-7").await;
        identity_app.approve(&opened, "asha").await;
        let record = operator.delivery(&opened.txn).await;
        let attempt = &record["attempt"];
        assert_eq!((&attempt["outcome"], &attempt["status"]), (&json!(outcome), &status), "{behaviour:?}: {record}");
        assert_eq!(attempt["sent"], sent, "{behaviour:?}: {record}");
        assert!(attempt["duration_ms"].as_u64().unwrap() < 5_000, "{record}");
        assert_eq!(record["origin"], receiver.url(""), "the path of a webhook URL may be a secret");
        receiver.set_behaviour(Behaviour::Answer(200));
        let next = open_reported_to(&backend, &receiver, "order-8").await;
        identity_app.approve(&next, "asha").await;
        assert_eq!(operator.outcome(&next.txn).await, "delivered");
        assert_eq!(receiver.received().len(), 2, "{behaviour:?}: one attempt each");
        assert_eq!(backend.result(&opened.txn).await.ok()["success"], true, "the result can still be polled");
    }
    assert!(redirect_target.received().is_empty(), "a redirect is not followed");
}

#[tokio::test]
async fn a_missing_receiver_is_recorded_as_unreachable() {
    let node = TestNode::start().await;
    let (backend, identity_app, operator) = (node.backend_with_credits(2).await, node.identity_app(), node.operator());
    let unused_address = free_address();
    for (url, outcome, reason, part) in [
        (format!("http://{unused_address}/"), "unreachable", "refused", "connection"),
        ("http://nowhere.invalid/".to_owned(), "unresolved", "dns", "name"),
    ] {
        let opened = backend.open_reported(&["name"], &url).await;
        identity_app.approve(&opened, "asha").await;
        assert_eq!(operator.outcome(&opened.txn).await, outcome, "{url}");
        let attempt = &operator.delivery(&opened.txn).await["attempt"];
        assert_eq!((&attempt["reason"], &attempt["part"]), (&json!(reason), &json!(part)), "{url}");
        let metrics = node
            .http
            .get(node.addresses.internal("/metrics"))
            .bearer_auth(ADMIN_TOKEN)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(metrics.contains(&format!("sakshi_webhook_failures_total{{reason=\"{reason}\"}} 1\n")), "{reason}");
    }
}

#[tokio::test]
async fn internal_addresses_are_blocked_unless_allowed() {
    let mut node = TestNode::start().await;
    let (backend, identity_app, operator) = (node.backend_with_credits(20).await, node.identity_app(), node.operator());
    let receiver = start_receiver(Behaviour::Answer(200)).await;
    let port = receiver.address().port();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
        "224.0.0.1",
    ];
    let webhook_url = |host: &str| format!("http://{host}:{port}/");
    let mut transactions = Vec::new();
    for host in hosts {
        transactions.push(backend.open_reported(&["name"], &webhook_url(host)).await);
    }
    node.set("WEBHOOKS__ALLOW_PRIVATE_TARGETS", "false");
    node.restart().await;
    for (host, opened) in hosts.into_iter().zip(&transactions) {
        assert_eq!(identity_app.fail(opened, "301", "User Reject").await.status, 200);
        assert_eq!(operator.outcome(&opened.txn).await, "blocked", "{host}, accepted before the change");
        let init_body = json!({"claims": ["name"], "channel": "qr", "webhook_url": webhook_url(host)});
        assert_eq!(backend.init(&init_body).await.refused_fields(), ["webhook_url"], "{host}");
    }
    assert!(receiver.received().is_empty());
}
