//! Specification, "OVSE": polling, and the window of the transaction.

use std::time::{Duration, Instant};

use serde_json::json;

use sakshi_kit::backend::result_path;
use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};

#[tokio::test]
async fn a_poll_of_a_pending_transaction_returns_a_stub_with_both_ids() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    let stub =
        json!({"success": true, "pending": true, "data": {"txnId": opened.txn, "txn_id": opened.txn, "pending": true}});
    assert_eq!(backend.result(&opened.txn).await.ok(), stub);
}

#[tokio::test]
async fn an_unknown_or_foreign_transaction_gets_404() {
    let node = TestNode::start().await;
    let (backend, other, identity_app) =
        (node.backend_with_credits(2).await, node.backend_with_credits(1).await, node.identity_app());
    let (pending, completed) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    identity_app.approve(&completed, "asha").await;
    let unknown = uuid::Uuid::new_v4().to_string();
    for txn in [&*pending.txn, &completed.txn, &unknown, "seven", "%00", "..%2f..%2fetc"] {
        assert_eq!(other.result(txn).await.refusal(404), "transaction_not_found", "{txn}");
        assert_eq!(
            other.get(&format!("{}?wait=30", result_path(txn))).await.status,
            404,
            "a poll of {txn} does not wait"
        );
    }
}

#[tokio::test]
async fn a_long_poll_is_answered_as_soon_as_the_transaction_completes() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(3).await, node.identity_app());
    let mut delays = Vec::new();
    for _ in 0..3 {
        let opened = backend.open(&["name"]).await;
        let (path, caller) = (format!("{}?wait=30", result_path(&opened.txn)), backend.clone());
        let poll = tokio::spawn(async move { (caller.get(&path).await, Instant::now()) });
        node.wait_for_requests_in_flight(1).await;
        assert!(!poll.is_finished(), "the poll waits while the transaction is pending");
        let credential = identity_app.credential(&opened, "asha");
        let reply = identity_app.present(&opened, &credential).await;
        let completed_at = Instant::now();
        assert_eq!(reply.status, 200);
        let (answer, answered_at) = poll.await.expect("the poll ends");
        assert_eq!(answer.ok()["data"]["verification_passed"], true);
        delays.push(answered_at.saturating_duration_since(completed_at));
    }
    // The median, so that a pause of the machine does not count against the service.
    delays.sort_unstable();
    assert_within(delays[1], Duration::from_millis(100), "the answer to a poll after the callback");
}

#[tokio::test]
async fn a_long_poll_ends_with_a_stub_after_its_wait() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    let started = Instant::now();
    let answer = backend.get(&format!("{}?wait=1", result_path(&opened.txn))).await;
    assert_eq!(answer.ok()["pending"], true);
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_millis(990), "{elapsed:?}");
    assert_within(elapsed, Duration::from_secs(5), "a long poll of one second");
    for (query, field) in
        [("wait=31", "wait"), ("wait=-1", "wait"), ("wait=x", "wait"), ("wait=1&wait=2", "wait"), ("size=1", "size")]
    {
        assert_eq!(
            backend.get(&format!("{}?{query}", result_path(&opened.txn))).await.refused_fields(),
            [field],
            "{query}"
        );
    }
}

#[tokio::test]
async fn operations_after_the_window_get_410() {
    let node = TestNode::start_with(&[("OVSE__WINDOW_S", "1")]).await;
    let (backend, other, identity_app) =
        (node.backend_with_credits(2).await, node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let credential = identity_app.credential(&opened, "asha");
    let started = Instant::now();
    let polled = backend.get(&format!("{}?wait=30", result_path(&opened.txn))).await;
    assert_eq!(polled.refusal(410), "transaction_expired", "a long poll ends at expiry");
    assert_within(started.elapsed(), Duration::from_secs(5), "the end of a window of one second");
    assert_eq!(backend.result(&opened.txn).await.refusal(410), "transaction_expired");
    assert_eq!(
        other.result(&opened.txn).await.refusal(404),
        "transaction_not_found",
        "another app's transaction stays unknown"
    );
    for format in CallbackFormat::BOTH {
        let answer = identity_app.post(&opened, format, format.success(&opened.txn, &credential)).await;
        format.reply(&answer, &opened.txn, 410);
    }
    assert_eq!(backend.result(&opened.txn).await.status, 410);
    assert_eq!(node.operator().balance(&backend.client).await, 1, "expiry is not refunded");
}

#[tokio::test]
async fn a_result_outlives_the_window_and_is_deleted_after_its_retention() {
    let node = TestNode::start_with(&[("OVSE__WINDOW_S", "8"), ("OVSE__RESULT_TTL_S", "16")]).await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let (completed, abandoned) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    identity_app.approve(&completed, "asha").await;
    eventually("the end of the window", TIMEOUT, || async {
        (backend.result(&abandoned.txn).await.status == 410).then_some(())
    })
    .await;
    assert_eq!(backend.result(&completed.txn).await.ok()["success"], true);
    eventually("the end of the result", TIMEOUT, || async {
        (backend.result(&completed.txn).await.status == 404).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_used_credential_is_remembered_longer_than_its_transaction() {
    let node = TestNode::start_with(&[("OVSE__WINDOW_S", "8"), ("OVSE__RESULT_TTL_S", "16")]).await;
    let (backend, identity_app) = (node.backend_with_credits(3).await, node.identity_app());
    let first = backend.open(&["name"]).await;
    let credential = identity_app.bare_credential(first.intent.requested(), "asha");
    assert_eq!(identity_app.present(&first, &credential).await.status, 200);
    eventually("the end of the result", TIMEOUT, || async {
        (backend.result(&first.txn).await.status == 404).then_some(())
    })
    .await;
    let second = backend.open(&["name"]).await;
    assert_eq!(identity_app.present(&second, &credential).await.status, 400, "the credential has not expired");
    assert!(backend.is_pending(&second.txn).await);
    let fresh = identity_app.bare_credential(second.intent.requested(), "asha");
    assert_eq!(identity_app.present(&second, &fresh).await.status, 200);
}

#[tokio::test]
async fn an_expired_transaction_stays_expired_after_a_restart() {
    let mut node =
        TestNode::start_with(&[("OVSE__WINDOW_S", "1"), ("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    node.kill().await;
    node.launch().await;
    eventually("expiry", TIMEOUT, || async { (backend.result(&opened.txn).await.status == 410).then_some(()) }).await;
    assert_eq!(identity_app.fail(&opened, "301", "User Reject").await.status, 410);
}
