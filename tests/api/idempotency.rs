//! `Idempotency-Key` on init: one key opens one transaction, with one debit and one response.

use futures_util::future::join_all;
use serde_json::{Value, json};

use sakshi_kit::node::TestNode;

fn init_body() -> Value {
    json!({"claims": ["name"], "channel": "qr"})
}

#[tokio::test]
async fn a_retry_under_the_same_key_gets_the_first_response_byte_for_byte() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(5).await;
    let first = backend.init_once("order-1", &init_body()).await;
    first.ok();
    for _ in 0..3 {
        let again = backend.init_once("order-1", &init_body()).await;
        assert_eq!((again.status, &again.text), (200, &first.text));
    }
    let other = backend.init_once("order-2", &init_body()).await;
    assert_ne!(other.ok()["txnId"], first.json()["txnId"]);
    assert_eq!(node.operator().balance(&backend.client).await, 3);
}

#[tokio::test]
async fn the_same_key_with_another_body_gets_422() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(5).await;
    backend.init_once("order-1", &init_body()).await.ok();
    let other = json!({"claims": ["name", "dob"], "channel": "qr"});
    assert_eq!(backend.init_once("order-1", &other).await.refusal(422), "idempotency_key_reused");
    assert_eq!(node.operator().balance(&backend.client).await, 4);
}

#[tokio::test]
async fn concurrent_requests_under_one_key_open_one_transaction() {
    let node = TestNode::start().await;
    // After the first request there is no credit for another.
    let backend = node.backend_with_credits(1).await;
    let answers = join_all((0..24).map(|_| {
        let backend = backend.clone();
        async move { backend.init_once("order-1", &init_body()).await }
    }))
    .await;
    for answer in &answers {
        assert_eq!((answer.status, &answer.text), (200, &answers[0].text));
    }
    assert_eq!(node.operator().balance(&backend.client).await, 0);
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_app() {
    let node = TestNode::start().await;
    let (one, other) = (node.backend_with_credits(1).await, node.backend_with_credits(1).await);
    let first = one.init_once("order-1", &init_body()).await.ok();
    assert_ne!(other.init_once("order-1", &init_body()).await.ok()["txnId"], first["txnId"]);
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_unused() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(0).await;
    assert_eq!(backend.init_once("order-1", &json!({"channel": "qr"})).await.status, 400);
    assert_eq!(backend.init_once("order-1", &init_body()).await.refusal(402), "insufficient_credits");
    node.operator().grant(&backend.client, 1, "later").await;
    backend.init_once("order-1", &init_body()).await.ok();
}

#[tokio::test]
async fn a_stored_response_survives_a_restart() {
    let mut node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let backend = node.backend_with_credits(2).await;
    let first = backend.init_once("order-1", &init_body()).await;
    node.kill().await;
    node.launch().await;
    let again = backend.init_once("order-1", &init_body()).await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    assert_eq!(node.operator().balance(&backend.client).await, 1);
}

#[tokio::test]
async fn a_malformed_idempotency_key_gets_400() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    for key in ["two words", "", &"x".repeat(256)] {
        assert_eq!(backend.init_once(key, &init_body()).await.refused_fields(), ["Idempotency-Key"], "{key}");
    }
}
