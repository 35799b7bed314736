//! At-most-once delivery of webhooks when the process is killed.

use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use sakshi_kit::node::TestNode;
use sakshi_kit::outbox::{approve_many, assert_each_arrived_once, outcomes};
use sakshi_kit::waiting::TIMEOUT;

const WEBHOOKS: usize = 10;

#[tokio::test]
async fn queued_webhooks_are_sent_after_a_kill_and_one_in_flight_is_not_repeated() {
    let settings = [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")];
    let mut node = TestNode::start_with(&settings).await;
    let (backend, identity_app) = (node.backend_with_credits(10).await, node.identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Hang).await.expect("a port");
    let opened = approve_many(WEBHOOKS, &backend, &identity_app, &receiver).await;
    assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1, "one is in flight, nine are queued");
    node.kill().await;
    receiver.set_behaviour(Behaviour::Answer(200));
    node.launch().await;
    assert_eq!(
        receiver.wait_for(WEBHOOKS, TIMEOUT).await.len(),
        WEBHOOKS,
        "the nine queued webhooks are sent after the restart"
    );

    assert_eq!(outcomes(&node.operator(), &opened).await, [vec!["delivered"; WEBHOOKS - 1], vec!["unknown"]].concat());
    assert_each_arrived_once(&receiver, WEBHOOKS);
}

#[tokio::test]
async fn a_settled_delivery_does_not_change_over_several_kills() {
    let mut node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let (backend, identity_app) = (node.backend_with_credits(3).await, node.identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Answer(500)).await.expect("a port");
    let opened = backend.open_reported(&["name"], &receiver.url("/hook")).await;
    identity_app.approve(&opened, "asha").await;
    let record = node.operator().delivery(&opened.txn).await;
    for round in 1..=2 {
        node.kill().await;
        node.launch().await;
        assert_eq!(node.operator().delivery(&opened.txn).await, record);
        // A later delivery to the same origin ends after anything that the restart would have sent.
        let next = backend.open_reported(&["name"], &receiver.url("/hook")).await;
        identity_app.approve(&next, "asha").await;
        node.operator().delivery(&next.txn).await;
        assert_eq!(receiver.received().len(), 1 + round);
    }
}
