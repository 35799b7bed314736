//! Authentication of a client by its key and app id (specification, "Authentication" and "Errors").

use std::time::Duration;

use reqwest::Method;
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{INIT, QR_INTENT, result_path};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

const SOME_TXN: &str = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";

/// Checks for the 401 of the specification, with the four fields that this service adds to every error.
fn assert_specified_401(answer: &Answer, case: &str) {
    let error_id = answer.header("x-request-id").unwrap_or_default();
    let expected = json!({
        "success": false, "error": "Unauthorized", "message": "Missing or invalid X-API-KEY header",
        "code": "unauthorized", "statusCode": 401, "errorId": error_id, "docUrl": answer.json()["docUrl"],
    });
    assert_eq!(answer.header("www-authenticate"), Some("ApiKey"), "{case}");
    assert_eq!((answer.status, answer.json()), (401, expected), "{case}");
    assert!(!error_id.is_empty());
}

#[tokio::test]
async fn a_missing_or_empty_header_is_answered_with_the_401_of_the_specification() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let (key, app) = (backend.key.as_str(), backend.app.as_str());
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("no header", &[]),
        ("no key", &[("X-API-APP-ID", app)]),
        ("no app id", &[("X-API-KEY", key)]),
        ("an empty key", &[("X-API-KEY", ""), ("X-API-APP-ID", app)]),
        ("an empty app id", &[("X-API-KEY", key), ("X-API-APP-ID", "")]),
        ("both empty", &[("X-API-KEY", ""), ("X-API-APP-ID", "")]),
    ];
    for (case, headers) in cases {
        for (method, path) in [(Method::POST, INIT), (Method::POST, QR_INTENT), (Method::GET, &*result_path(SOME_TXN))]
        {
            let mut request = node.http.request(method, node.addresses.public(path));
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            assert_specified_401(&Answer::receive(request).await, &format!("{case} at {path}"));
        }
    }
}

#[tokio::test]
async fn an_unknown_revoked_or_foreign_key_is_answered_like_a_missing_key() {
    let node = TestNode::start().await;
    let operator = node.operator();
    let (backend, other) = (node.backend_with_credits(1).await, node.backend_with_credits(1).await);
    let (revoked_id, revoked_key) = operator.issue_key(&backend.client, &json!({})).await;
    operator.delete(&format!("/admin/v1/keys/{revoked_id}")).await.ok();
    let mut changed_key = backend.key.clone();
    let last = if changed_key.pop() == Some('0') { '1' } else { '0' };
    changed_key.push(last);
    let cases = [
        ("another client's app", backend.with_credentials(&backend.key, &other.app)),
        ("an app that does not exist", backend.with_credentials(&backend.key, "app_0000000000000000")),
        ("a key with another last character", backend.with_credentials(&changed_key, &backend.app)),
        ("a key that was never issued", backend.with_credentials("sk_live_0000000000000000000000000000", &backend.app)),
        ("a revoked key", backend.with_credentials(&revoked_key, &backend.app)),
        ("a key of 10,000 characters", backend.with_credentials(&"k".repeat(10_000), &backend.app)),
        ("key and app swapped", backend.with_credentials(&backend.app, &backend.key)),
    ];
    for (case, caller) in cases {
        assert_specified_401(&caller.post(INIT, &json!({"claims": ["name"], "channel": "qr"})).await, case);
        assert_specified_401(&caller.result(SOME_TXN).await, case);
    }
    assert_eq!(operator.balance(&backend.client).await, 1);
}

#[tokio::test]
async fn credentials_are_checked_before_the_body() {
    let node = TestNode::start().await;
    for body in ["{\"claims\": [\"shoe_size\"]}", "{", "", "\u{0}"] {
        let request = node.http.post(node.addresses.public(INIT)).header("content-type", "application/json").body(body);
        assert_specified_401(&Answer::receive(request).await, body);
    }
    let large = node.http.post(node.addresses.public(INIT)).body(vec![b'x'; 100_000]);
    assert_eq!(Answer::receive(large).await.status, 401, "a stranger learns neither the size limit nor the media type");
}

#[tokio::test]
async fn ping_needs_no_headers() {
    let node = TestNode::start().await;
    let answer = node.get("/api/ping").await;
    assert_eq!(answer.ok()["success"], true);
}

#[tokio::test]
async fn one_key_works_for_every_app_of_its_client() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    let second = node.operator().create_app(&backend.client).await;
    let opened = backend.open(&["name"]).await;
    let as_second = backend.with_credentials(&backend.key, &second);
    as_second.open(&["name"]).await;
    assert_eq!(as_second.result(&opened.txn).await.refusal(404), "transaction_not_found");
    assert_eq!(node.operator().balance(&backend.client).await, 0);
}

#[tokio::test]
async fn a_key_works_only_from_its_networks_as_reported_by_the_trusted_proxy() {
    let node = TestNode::start_with(&[("SERVER__TRUSTED_PROXIES", "127.0.0.1")]).await;
    let operator = node.operator();
    let client = operator.create_client().await;
    let app = operator.create_app(&client).await;
    let (_, key) = operator.issue_key(&client, &json!({"networks": ["203.0.113.0/24", "2001:db8::7"]})).await;
    let request_from = async |forwarded_for: &str| {
        let request = node
            .http
            .get(node.addresses.public("/api/v1/credits"))
            .header("X-API-KEY", &key)
            .header("X-API-APP-ID", &app);
        Answer::receive(request.header("X-Forwarded-For", forwarded_for)).await
    };
    for allowed in ["203.0.113.9", "10.0.0.1, 203.0.113.9", "2001:db8::7"] {
        assert_eq!(request_from(allowed).await.status, 200, "{allowed}");
    }
    for foreign in ["203.0.114.9", "203.0.113.9, 198.51.100.1", "2001:db8::8"] {
        assert_eq!(request_from(foreign).await.refusal(401), "address_not_allowed", "{foreign}");
    }
    let keys = operator.get(&format!("/admin/v1/clients/{client}/keys")).await.ok();
    assert_eq!(keys["keys"][0]["networks"], json!(["203.0.113.0/24", "2001:db8::7/128"]));
    for bad in [json!([]), json!(["bank.example"]), json!("203.0.113.0/24"), json!(["10.0.0.0/33"])] {
        let answer = operator.post(&format!("/admin/v1/clients/{client}/keys"), &json!({"networks": bad})).await;
        assert!(answer.refused_fields()[0].starts_with("networks"), "{bad}");
    }
}

#[tokio::test]
async fn a_key_issued_for_other_environments_does_not_work_here() {
    let node = TestNode::start().await;
    let operator = node.operator();
    let backend = node.backend_with_credits(5).await;
    let (_, foreign_key) = operator.issue_key(&backend.client, &json!({"environments": ["production", "stage"]})).await;
    let (_, own_key) = operator.issue_key(&backend.client, &json!({"environments": ["sandbox"]})).await;
    let body = json!({"claims": ["name"], "channel": "qr"});
    assert_specified_401(
        &backend.with_credentials(&foreign_key, &backend.app).post(INIT, &body).await,
        "a key for production and stage",
    );
    backend.with_credentials(&own_key, &backend.app).init(&body).await.ok();
}

#[tokio::test]
async fn a_key_is_refused_after_its_expiry() {
    let node = TestNode::start().await;
    let operator = node.operator();
    let backend = node.backend_with_credits(1).await;
    let terms_until = |expires_at: Value| json!({"expires_at": expires_at});
    let path = format!("/admin/v1/clients/{}/keys", backend.client);
    let refused = operator.post(&path, &terms_until(json!("2020-01-01T00:00:00Z"))).await;
    assert_eq!(refused.refused_fields(), ["expires_at"]);
    let soon = SystemClock.now() + Duration::from_secs(8);
    let (_, expiring_key) = operator.issue_key(&backend.client, &terms_until(json!(soon))).await;
    let caller = backend.with_credentials(&expiring_key, &backend.app);
    assert_eq!(caller.result(SOME_TXN).await.status, 404, "the key works until then");
    eventually("the key's end", TIMEOUT, || async { (caller.result(SOME_TXN).await.status == 401).then_some(()) })
        .await;
}
