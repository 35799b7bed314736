//! The sandbox's test clock: `POST /sandbox/transactions/{txnId}/expire`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::result_path;
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::assert_within;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

/// Ends the window of a transaction, as a developer does in the sandbox.
async fn end_window(node: &TestNode, txn: &str) -> Answer {
    Answer::receive(node.http.post(node.addresses.public(&format!("/sandbox/transactions/{txn}/expire")))).await
}

#[tokio::test]
async fn an_ended_window_is_over_at_once_for_polls_pages_and_the_identity_app() {
    let mut node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    let opened = backend.open_reported(&["name"], &receiver.url("/")).await;
    let (caller, path) = (backend.clone(), format!("{}?wait=30", result_path(&opened.txn)));
    let poll = tokio::spawn(async move { caller.get(&path).await });
    node.wait_for_requests_in_flight(1).await;
    assert!(!poll.is_finished(), "the poll waits");

    let answer = end_window(&node, &opened.txn).await.ok();
    let ended_at = Instant::now();
    assert_eq!(answer, json!({"success": true, "txnId": opened.txn, "expiresAt": answer["expiresAt"]}));
    assert!(answer["expiresAt"].as_str().unwrap() < opened.answer["expiresAt"].as_str().unwrap());
    assert_eq!(poll.await.unwrap().refusal(410), "transaction_expired");
    assert_within(ended_at.elapsed(), Duration::from_secs(4), "the end of a poll whose window was ended");
    assert_eq!(backend.result(&opened.txn).await.refusal(410), "transaction_expired");
    assert_eq!(node.get(&format!("/v/{}", opened.txn)).await.status, 410, "the page");
    let status: Value = node.get(&format!("/v/{}/status", opened.txn)).await.ok();
    assert_eq!((&status["state"], &status["remaining_s"]), (&json!("expired"), &json!(0)));
    assert_eq!(identity_app.present(&opened, &identity_app.credential(&opened, "asha")).await.status, 410);
    assert_eq!(end_window(&node, &opened.txn).await.ok(), answer, "a second request changes nothing");

    node.restart().await;
    let backend = backend.through(&node.addresses);
    assert_eq!(backend.result(&opened.txn).await.refusal(410), "transaction_expired", "the expiry is stored");
    assert_eq!(backend.get("/api/v1/credits").await.ok()["balance"], 0, "its credit stays spent");
    assert!(receiver.received().is_empty(), "no webhook is sent");
}

#[tokio::test]
async fn a_window_can_be_ended_only_while_the_transaction_is_pending() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let completed = backend.open(&["name"]).await;
    identity_app.approve(&completed, "asha").await;
    assert_eq!(end_window(&node, &completed.txn).await.refusal(409), "already_completed");
    assert_eq!(backend.result(&completed.txn).await.ok()["data"]["verification_passed"], true);
    for unknown in [&*uuid::Uuid::new_v4().to_string(), "seven"] {
        assert_eq!(end_window(&node, unknown).await.refusal(404), "transaction_not_found", "{unknown}");
    }
    assert_eq!(
        node.get(&format!("/sandbox/transactions/{}/expire", completed.txn)).await.refusal(405),
        "method_not_allowed"
    );
}

#[tokio::test]
async fn a_guest_whose_window_is_ended_counts_as_abandoned() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(1).await;
    let event = TestEvent::open(&node, &organiser, &terms(3)).await;
    let scanned = event.scan().await;
    end_window(&node, &scanned.txn).await.ok();
    let state = event.state().await;
    assert_eq!(
        (&state["scan_count"], &state["abandoned_count"], &state["remaining"]),
        (&json!(1), &json!(1), &json!(3))
    );
    assert_eq!(state["warning"], "abandoned_scans", "more abandoned scans than registered guests");
}
