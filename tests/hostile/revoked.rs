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
const WITHIN: Duration = Duration::from_millis(1_500);

#[tokio::test]
async fn a_long_poll_ends_with_its_key_and_tells_no_claims() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let poll = backend.request(Method::GET, &format!("{}?wait=30", result_path(&opened.txn)));
    let waiting = tokio::spawn(Answer::receive(poll));
    eventually("the poll to wait", TIMEOUT, || async {
        let shown = node.operator().probe("/metrics").await;
        (!waiting.is_finished() && shown.status == 200).then_some(())
    })
    .await;
    node.operator().delete(&format!("/admin/v1/keys/{}", backend.key_id)).await.ok();
    let revoked = Instant::now();
    let answer = waiting.await.expect("an answer");
    assert_eq!(answer.refusal(401), "unauthorized");
    assert_within(revoked.elapsed(), WITHIN, "the end of a poll whose key is revoked");
    identity_app.approve(&opened, "asha").await;
}

#[tokio::test]
async fn an_init_whose_last_byte_was_withheld_debits_nothing_once_its_key_is_revoked() {
    let node = TestNode::start().await;
    let backend = node.backend(5).await;
    let body = json!({"claims": ["name"], "channel": "qr"}).to_string();
    let (opened, last) = body.as_bytes().split_at(body.len() - 1);
    let (key, app) = (&backend.key, &backend.app);
    let headers = format!(
        "x-api-key: {key}\r\nx-api-app-id: {app}\r\ncontent-type: application/json\r\ncontent-length: {}",
        body.len()
    );
    let mut raw = Raw::post(&node, INIT, &headers, opened).await;
    // The key is valid when the head is read: another request on the same workers is answered.
    assert_eq!(backend.get("/api/v1/credits").await.status, 200);
    node.operator().delete(&format!("/admin/v1/keys/{}", backend.key_id)).await.ok();
    eventually("the revocation", TIMEOUT, || async {
        (backend.get("/api/v1/credits").await.status == 401).then_some(())
    })
    .await;
    let settled = Instant::now();
    eventually("every worker to know", TIMEOUT, || async { (settled.elapsed() > WITHIN).then_some(()) }).await;
    raw.send(last).await;
    assert_eq!(raw.status().await, 401);
    assert_eq!(node.operator().balance(&backend.client).await, 5);
}
