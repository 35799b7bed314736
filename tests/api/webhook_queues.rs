//! Receivers do not delay each other, and connections closed by a receiver lose no delivery.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;
use sakshi_kit::outbox::txn_of;
use sakshi_kit::waiting::{TIMEOUT, assert_within};

/// Completes `count` transactions with webhooks to one URL, several at a time.
async fn complete_many(backend: &Backend, identity_app: &IdentityApp, url: &str, count: usize) -> Vec<Opened> {
    let mut completed = Vec::with_capacity(count);
    while completed.len() < count {
        let batch = (count - completed.len()).min(25);
        let opened = join_all((0..batch).map(|_| backend.open_reported(&["name"], url))).await;
        join_all(opened.iter().map(|opened| identity_app.approve(opened, "asha"))).await;
        completed.extend(opened);
    }
    completed
}

#[tokio::test]
async fn a_hundred_webhooks_to_a_hanging_receiver_do_not_delay_a_healthy_one() {
    let node = TestNode::start_with(&[("SERVER__DRAIN_TIMEOUT_S", "1")]).await;
    let (backend, identity_app) = (node.backend_with_credits(110).await, node.identity_app());
    let hanging = WebhookReceiver::start(Behaviour::Hang).await.unwrap();
    let healthy = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    complete_many(&backend, &identity_app, &hanging.url("/"), 100).await;
    assert!(hanging.wait_for(64, TIMEOUT).await.len() >= 64, "the maximum in flight to one origin");
    for number in 1..=5 {
        let opened = backend.open_reported(&["name"], &healthy.url("/")).await;
        let credential = identity_app.credential(&opened, "asha");
        let started = Instant::now();
        assert_eq!(identity_app.present(&opened, &credential).await.status, 200);
        assert_eq!(healthy.wait_for(number, TIMEOUT).await.len(), number);
        assert_within(started.elapsed(), Duration::from_secs(1), "a webhook to the healthy receiver");
    }
}

#[tokio::test]
async fn a_receiver_that_closes_idle_connections_loses_no_delivery() {
    let node = TestNode::start().await;
    let (backend, identity_app, operator) =
        (node.backend_with_credits(400).await, node.identity_app(), node.operator());
    let receiver = WebhookReceiver::start(Behaviour::CloseIdle).await.unwrap();
    let opened = complete_many(&backend, &identity_app, &receiver.url("/"), 400).await;
    let webhooks = receiver.wait_for(400, TIMEOUT).await;
    let mut expected: Vec<String> = opened.iter().map(|opened| opened.txn.clone()).collect();
    let mut arrived: Vec<String> = webhooks.iter().map(|webhook| txn_of(&webhook.body)).collect();
    expected.sort_unstable();
    arrived.sort_unstable();
    assert_eq!(arrived, expected, "each arrives once");
    for opened in &opened {
        assert_eq!(operator.outcome(&opened.txn).await, "delivered");
    }
}

#[tokio::test]
async fn deliveries_queued_for_a_slow_receiver_are_all_sent() {
    let node =
        TestNode::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "2"), ("WEBHOOKS__MAX_IN_FLIGHT", "4")]).await;
    let (backend, identity_app) = (node.backend_with_credits(30).await, node.identity_app());
    let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(Duration::from_millis(20))).await.unwrap();
    complete_many(&backend, &identity_app, &receiver.url("/"), 30).await;
    assert_eq!(receiver.wait_for(30, TIMEOUT).await.len(), 30);
}
