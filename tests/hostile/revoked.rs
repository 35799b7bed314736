//! Requests in flight when their key is revoked.

use std::time::{Duration, Instant};

use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{INIT, result_path};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};
use serde_json::json;

use sakshi_kit::raw::Raw;

/// Time for a revocation to take effect everywhere, plus slack for a busy machine.
const REVOCATION_TIME_MAX: Duration = Duration::from_millis(1_500);

#[tokio::test]
async fn a_long_poll_ends_when_its_key_is_revoked_and_shows_no_claims() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let poll = backend.request(Method::GET, &format!("{}?wait=30", result_path(&opened.txn)));
    let poll_task = tokio::spawn(Answer::receive(poll));
    eventually("the poll waits", TIMEOUT, || async {
        let metrics = node.operator().probe("/metrics").await;
        // The public listener has no other request.
        (!poll_task.is_finished() && metrics.text.contains("sakshi_http_requests_in_flight 1\n")).then_some(())
    })
    .await;
    node.operator().delete(&format!("/admin/v1/keys/{}", backend.key_id)).await.ok();
    let revoked_at = Instant::now();
    let answer = poll_task.await.expect("an answer");
    assert_eq!(answer.refusal(401), "unauthorized");
    assert_within(revoked_at.elapsed(), REVOCATION_TIME_MAX, "the end of a poll whose key is revoked");
    identity_app.approve(&opened, "asha").await;
}

#[tokio::test]
async fn an_init_completed_after_its_key_is_revoked_debits_nothing() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(5).await;
    let body = json!({"claims": ["name"], "channel": "qr"}).to_string();
    let (beginning, last) = body.as_bytes().split_at(body.len() - 1);
    let (key, app) = (&backend.key, &backend.app);
    let headers = format!(
        "x-api-key: {key}\r\nx-api-app-id: {app}\r\ncontent-type: application/json\r\ncontent-length: {}",
        body.len()
    );
    let mut raw = Raw::post(&node, INIT, &headers, beginning).await;
    // The key is valid when the head is read: another request on the same workers is answered.
    assert_eq!(backend.get("/api/v1/credits").await.status, 200);
    node.operator().delete(&format!("/admin/v1/keys/{}", backend.key_id)).await.ok();
    eventually("the revocation", TIMEOUT, || async {
        (backend.get("/api/v1/credits").await.status == 401).then_some(())
    })
    .await;
    let first_refusal = Instant::now();
    eventually("every worker knows the revocation", TIMEOUT, || async {
        (first_refusal.elapsed() > REVOCATION_TIME_MAX).then_some(())
    })
    .await;
    raw.send(last).await;
    assert_eq!(raw.status().await, 401);
    assert_eq!(node.operator().balance(&backend.client).await, 5);
}
