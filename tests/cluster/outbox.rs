//! The at-most-once table when a node is gone for good and others are there.

use futures_util::future::join_all;
use sakshi_kit::waiting::TIMEOUT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::Value;

use crate::nodes::Nodes;

#[tokio::test]
async fn what_a_dead_node_had_queued_is_sent_by_another_and_what_it_had_under_way_never_again() {
    let mut nodes = Nodes::with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    let (backend, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Hang).await.expect("a port");
    let url = receiver.url("/hook");
    let opened = join_all((0..10).map(|_| backend.open_reported(&["name"], &url))).await;
    for opened in &opened {
        identity_app.through(&nodes.all[2].addresses).approve(opened, "asha").await;
    }
    assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1, "one is under way, nine are queued, all at the third node");
    nodes.all[2].kill().await;
    receiver.set_behaviour(Behaviour::Answer(200));
    assert_eq!(receiver.wait_for(10, TIMEOUT).await.len(), 10, "another node sends the nine without being asked");

    let operator = nodes.all[0].operator();
    let mut outcomes = Vec::new();
    for opened in &opened {
        outcomes.push(operator.outcome(&opened.txn).await);
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [vec!["delivered"; 9], vec!["unknown"]].concat());
    let mut txns: Vec<String> = receiver.received().iter().map(|request| txn_of(&request.body)).collect();
    txns.sort_unstable();
    txns.dedup();
    assert_eq!(txns.len(), 10, "each came once");
    nodes.all[2].launch().await;
}

#[tokio::test]
async fn a_node_that_leaves_hands_over_what_it_had_queued() {
    let mut nodes = Nodes::with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    let (backend, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(std::time::Duration::from_secs(1))).await.expect("a port");
    let url = receiver.url("/hook");
    let opened = join_all((0..6).map(|_| backend.open_reported(&["name"], &url))).await;
    for opened in &opened {
        identity_app.through(&nodes.all[1].addresses).approve(opened, "asha").await;
    }
    receiver.wait_for(1, TIMEOUT).await;
    nodes.all[1].restart().await;
    assert_eq!(receiver.wait_for(6, TIMEOUT).await.len(), 6);
    for opened in &opened {
        let record = nodes.all[0].operator().delivery(&opened.txn).await;
        assert_eq!(record["attempt"]["outcome"], "delivered", "the one under way was finished, the others were handed over: {record}");
    }
}

#[tokio::test]
async fn a_node_that_was_taken_for_dead_and_comes_back_sends_nothing_twice() {
    // The two that hang at the receiver end soon after the node is back.
    let nodes = Nodes::with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "2"), ("WEBHOOKS__TIMEOUT_MS", "10000")]).await;
    let (backend, identity_app) = (nodes.backend(20).await, nodes.all[0].identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Hang).await.expect("a port");
    let url = receiver.url("/hook");
    let opened = join_all((0..12).map(|_| backend.open_reported(&["name"], &url))).await;
    for opened in &opened {
        identity_app.through(&nodes.all[2].addresses).approve(opened, "asha").await;
    }
    receiver.wait_for(2, TIMEOUT).await;
    nodes.all[2].process().signal("STOP");
    receiver.set_behaviour(Behaviour::Answer(200));
    assert_eq!(receiver.wait_for(12, TIMEOUT).await.len(), 12, "the others have taken over");
    nodes.all[2].process().signal("CONT");
    let operator = nodes.all[2].operator();
    for opened in &opened {
        operator.delivery(&opened.txn).await;
    }
    // A new delivery through the returned node's lane ends after whatever it would have repeated.
    let last = backend.open_reported(&["name"], &receiver.url("/hook")).await;
    identity_app.through(&nodes.all[2].addresses).approve(&last, "asha").await;
    operator.delivery(&last.txn).await;
    let mut txns: Vec<String> = receiver.received().iter().map(|request| txn_of(&request.body)).collect();
    txns.sort_unstable();
    assert_eq!(txns.len(), 13);
    txns.dedup();
    assert_eq!(txns.len(), 13, "each came once");
}

fn txn_of(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    body["data"]["txn_id"].as_str().expect("a txn_id").to_owned()
}
