//! Webhooks: one attempt each, whatever happens to the dispatcher.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver};
use sakshi_store::Outbox as _;
use serde_json::Value;

use super::panics::Panic;
use super::{Fixture, declined, run, verified};

const PATIENCE: Duration = Duration::from_secs(20);

fn by_txn(received: &[Received]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for webhook in received {
        let body: Value = serde_json::from_slice(&webhook.body).unwrap();
        *counts.entry(body["data"]["txn_id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn a_dispatcher_that_crashes_sends_every_webhook_once() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let url = receiver.url("/hook");
        for mark in 0..60 {
            let id = fixture.open_for(Some(&url)).await.unwrap();
            if mark % 20 == 10 {
                fixture.tree.dispatcher.do_send(Panic);
            }
            fixture.complete(id, verified(mark)).await;
        }
        let counts = by_txn(&receiver.wait_for(60, PATIENCE).await);
        assert_eq!(counts.len(), 60);
        assert!(counts.values().all(|count| *count == 1));
        let node = fixture.tree.view().children.into_iter().find(|node| node.name == "webhook-dispatcher").unwrap();
        assert_eq!((node.restarts, node.state), (3, "running"));
        fixture.end().await;
    });
}

#[test]
fn a_failure_is_reported_with_its_reason_and_its_attempt_is_kept() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(503)).await.unwrap();
        let id = fixture.open_for(Some(&receiver.url("/hook"))).await.unwrap();
        fixture.complete(id, declined()).await;
        let webhook = receiver.wait_for(1, PATIENCE).await.pop().unwrap();
        let body: Value = serde_json::from_slice(&webhook.body).unwrap();
        assert_eq!((&body["success"], &body["data"]["error_code"]), (&Value::Bool(false), &Value::from("301")));
        let end = Instant::now() + PATIENCE;
        let attempt = loop {
            if let Some(attempt) = fixture.store.load_delivery(id.into()).await.unwrap().unwrap().attempt {
                break attempt;
            }
            assert!(Instant::now() < end, "the attempt was not recorded");
        };
        assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Rejected, Some(503)));
        fixture.end().await;
    });
}

#[test]
fn a_hundred_webhooks_to_a_hanging_receiver_do_not_delay_a_healthy_one() {
    run(async {
        let fixture = Fixture::new().await;
        let hanging = WebhookReceiver::start(Behaviour::Hang).await.unwrap();
        let healthy = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        for mark in 0..100 {
            let id = fixture.open_for(Some(&hanging.url("/hook"))).await.unwrap();
            fixture.complete(id, verified(mark)).await;
        }
        assert_eq!(hanging.wait_for(16, PATIENCE).await.len(), 16, "as many as may be in flight to one origin");
        let id = fixture.open_for(Some(&healthy.url("/hook"))).await.unwrap();
        let began = Instant::now();
        fixture.complete(id, verified(200)).await;
        assert_eq!(healthy.wait_for(1, PATIENCE).await.len(), 1);
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        fixture.end().await;
    });
}
