//! Webhooks: one attempt each, whatever happens to the dispatcher.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_outbound::client::SendWebhook;
use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver};
use sakshi_store::{OpenOutcome, Outbox as _};
use serde_json::Value;

use super::panics::Panic;
use super::{Fixture, WINDOW, run, verified};
use crate::{Complete, CompleteReply};

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

/// Panics in the middle of every attempt.
#[derive(Debug)]
struct Panicking;

impl SendWebhook for Panicking {
    fn attempt<'a>(&'a self, _: &'a WebhookUrl, _: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>> {
        Box::pin(async { panic!("as the test asked") })
    }
}

#[test]
fn an_attempt_that_panics_is_unknown_and_is_not_made_again() {
    run(async {
        let fixture = Fixture::new().await;
        fixture.tree.stop();
        let (panicking, _escalations) = fixture.start_with(Arc::new(Panicking)).await;
        let transactions = panicking.start_shard().unwrap().transactions;
        let id = transactions.new_id(&fixture.client);
        let opening = fixture.opening(id, Some("http://127.0.0.1:9/hook"));
        assert!(matches!(transactions.open(opening).await, Ok(OpenOutcome::Opened { .. })));
        let complete = Complete { answer: verified(1), known: None, replay_window: WINDOW, result_ttl: WINDOW };
        assert_eq!(transactions.complete(id, complete).await, Ok(CompleteReply::Accepted));
        let attempt = loop {
            let delivery = fixture.store.load_delivery(id.into()).await.unwrap().unwrap();
            if let Some(attempt) = delivery.attempt {
                break attempt;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(attempt.outcome, DeliveryOutcome::Unknown);
        assert!(fixture.store.due_deliveries(None, None, 10).await.unwrap().is_empty(), "nobody may send it");
        panicking.stop();
        fixture.end().await;
    });
}
