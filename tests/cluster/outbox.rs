//! The at-most-once table for a node that is gone for good, with others present.

use sakshi_kit::outbox::{approve_many, assert_each_arrived_once, outcomes};
use sakshi_kit::waiting::TIMEOUT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use crate::nodes::Nodes;

#[tokio::test]
async fn what_a_dead_node_had_queued_is_sent_by_another_and_what_it_had_under_way_never_again() {
    let mut nodes = Nodes::with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    let (backend, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Hang).await.expect("a port");
    let opened = approve_many(10, &backend, &identity_app.through(&nodes.all[2].addresses), &receiver).await;
    assert_eq!(
        receiver.wait_for(1, TIMEOUT).await.len(),
        1,
        "one is under way, nine are queued, all at the third node"
    );
    nodes.all[2].kill().await;
    receiver.set_behaviour(Behaviour::Answer(200));
    assert_eq!(receiver.wait_for(10, TIMEOUT).await.len(), 10, "another node sends the nine without being asked");

    assert_eq!(outcomes(&nodes.all[0].operator(), &opened).await, [vec!["delivered"; 9], vec!["unknown"]].concat());
    assert_each_arrived_once(&receiver, 10);
    nodes.all[2].launch().await;
}

#[tokio::test]
async fn a_node_that_leaves_hands_over_what_it_had_queued() {
    let mut nodes = Nodes::with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    let (backend, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let receiver =
        WebhookReceiver::start(Behaviour::SlowAnswer(std::time::Duration::from_secs(1))).await.expect("a port");
    let opened = approve_many(6, &backend, &identity_app.through(&nodes.all[1].addresses), &receiver).await;
    receiver.wait_for(1, TIMEOUT).await;
    nodes.all[1].restart().await;
    assert_eq!(receiver.wait_for(6, TIMEOUT).await.len(), 6);
    for opened in &opened {
        let record = nodes.all[0].operator().delivery(&opened.txn).await;
        assert_eq!(
            record["attempt"]["outcome"], "delivered",
            "the one under way was finished, the others were handed over: {record}"
        );
    }
}

#[tokio::test]
async fn a_node_that_was_taken_for_dead_and_comes_back_sends_nothing_twice() {
    // The two that hang at the receiver end soon after the node is back.
    let nodes = Nodes::with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "2"), ("WEBHOOKS__TIMEOUT_MS", "10000")]).await;
    let (backend, identity_app) = (nodes.backend(20).await, nodes.all[0].identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Hang).await.expect("a port");
    let third = identity_app.through(&nodes.all[2].addresses);
    let opened = approve_many(12, &backend, &third, &receiver).await;
    receiver.wait_for(2, TIMEOUT).await;
    nodes.all[2].process().signal("STOP");
    receiver.set_behaviour(Behaviour::Answer(200));
    assert_eq!(receiver.wait_for(12, TIMEOUT).await.len(), 12, "the others have taken over");
    nodes.all[2].process().signal("CONT");
    let operator = nodes.all[2].operator();
    for opened in &opened {
        operator.delivery(&opened.txn).await;
    }
    // A new delivery by the returned node ends after anything that it would have repeated.
    let last = backend.open_reported(&["name"], &receiver.url("/hook")).await;
    third.approve(&last, "asha").await;
    operator.delivery(&last.txn).await;
    assert_each_arrived_once(&receiver, 13);
}
