//! Webhooks: one attempt each, whatever happens to the dispatcher.

use std::collections::HashMap;
use std::time::Duration;

use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver};
use serde_json::Value;

use super::panics::Panic;
use super::{Fixture, run, verified};

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
