//! Webhooks: one attempt each, whatever happens to the dispatcher.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::TxnId;
use sakshi_outbound::client::SendWebhook;
use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver};
use sakshi_store::OpenOutcome;
use serde_json::Value;
use tokio::sync::watch;

use super::panics::Panic;
use super::{Fixture, completion, run, verified, wait_until};
use crate::{CompleteReply, Tree};

const TIMEOUT: Duration = Duration::from_secs(20);

fn count_by_transaction(received: &[Received]) -> HashMap<String, usize> {
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
            let id = fixture.open_with_webhook(Some(&url)).await.unwrap();
            // Three times in sixty.
            if mark % 20 == 10 {
                fixture.tree.dispatcher.do_send(Panic);
            }
            fixture.complete(id, verified(mark)).await;
        }
        let counts = count_by_transaction(&receiver.wait_for(60, TIMEOUT).await);
        assert_eq!(counts.len(), 60);
        assert!(counts.values().all(|count| *count == 1));
        let node = fixture.tree.view().children.into_iter().find(|node| node.name == "webhook-dispatcher").unwrap();
        assert_eq!((node.restarts, node.state), (3, "running"));
        fixture.end().await;
    });
}

/// Panics in the middle of every attempt.
#[derive(Debug)]
struct PanickingClient;

impl SendWebhook for PanickingClient {
    fn attempt<'a>(&'a self, _: &'a WebhookUrl, _: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>> {
        Box::pin(async { panic!("as the test asked") })
    }
}

#[test]
fn an_attempt_that_panics_has_an_unknown_outcome_and_is_not_repeated() {
    run(async {
        let fixture = Fixture::new().await;
        fixture.tree.stop();
        let (panicking, _escalations) = fixture.start_with_client(Arc::new(PanickingClient)).await;
        let transactions = panicking.start_shard().unwrap().transactions;
        let id = transactions.new_id(&fixture.client);
        let opening = fixture.opening(id, Some("http://127.0.0.1:9/hook"));
        assert!(matches!(transactions.open(opening).await, Ok(OpenOutcome::Opened { .. })));
        assert_eq!(transactions.complete(id, completion(verified(1))).await, Ok(CompleteReply::Accepted));
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

/// Receivers whose names resolve, fail to resolve in time, or are pending.
#[derive(Debug)]
pub(crate) struct FakeResolver {
    /// State of the pending origin: `None` while its lookup is pending, then true if it resolves.
    answer_received: watch::Sender<Option<bool>>,
    origins_sent_to: Mutex<Vec<String>>,
}

impl FakeResolver {
    pub(crate) const UNANSWERED: &str = "http://unanswered.example";

    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { answer_received: watch::Sender::new(None), origins_sent_to: Mutex::default() })
    }

    fn origins_sent_to(&self) -> Vec<String> {
        self.origins_sent_to.lock().unwrap().clone()
    }
}

impl SendWebhook for FakeResolver {
    fn wait_for_resolution(&self, origin: &str, _: tokio::time::Instant) -> BoxFuture<'static, bool> {
        let (is_unanswered, mut answer_received) = (origin == Self::UNANSWERED, self.answer_received.subscribe());
        let answer = async move {
            !is_unanswered || answer_received.wait_for(Option::is_some).await.is_ok_and(|answer| *answer == Some(true))
        };
        answer.boxed()
    }

    fn attempt<'a>(&'a self, url: &'a WebhookUrl, _: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>> {
        self.origins_sent_to.lock().unwrap().push(url.origin().to_owned());
        Box::pin(async { Attempt::from_status(200, 1) })
    }
}

/// Starts a tree with this resolver, and queues a delivery to each origin.
pub(crate) async fn start_sending_to(
    fixture: &Fixture,
    resolver: &Arc<FakeResolver>,
    origins: &[&str],
) -> (Tree, Vec<TxnId>) {
    let (tree, _escalations) = fixture.start_with_client(Arc::<FakeResolver>::clone(resolver)).await;
    let transactions = tree.start_shard().unwrap().transactions;
    let mut ids = Vec::new();
    for origin in origins {
        let id = transactions.new_id(&fixture.client);
        let opening = fixture.opening(id, Some(&format!("{origin}/hook")));
        assert!(matches!(transactions.open(opening).await, Ok(OpenOutcome::Opened { .. })));
        assert_eq!(transactions.complete(id, completion(verified(1))).await, Ok(CompleteReply::Accepted));
        ids.push(id);
    }
    (tree, ids)
}

async fn wait_for_outcome(fixture: &Fixture, id: TxnId) -> DeliveryOutcome {
    loop {
        if let Some(attempt) = fixture.store.load_delivery(id.into()).await.unwrap().unwrap().attempt {
            return attempt.outcome;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn webhooks_wait_for_a_name_unclaimed_and_are_sent_once() {
    run(async {
        let fixture = Fixture::new().await;
        fixture.tree.stop();
        let resolver = FakeResolver::new();
        let (tree, ids) = start_sending_to(
            &fixture,
            &resolver,
            &[FakeResolver::UNANSWERED, FakeResolver::UNANSWERED, "http://resolved.example"],
        )
        .await;
        assert_eq!(wait_for_outcome(&fixture, ids[2]).await, DeliveryOutcome::Delivered);
        wait_until("the attempt has ended", || tree.attempts_in_flight() == 0).await;
        assert_eq!(fixture.unclaimed_deliveries().await, 2, "the two deliveries are not claimed");
        resolver.answer_received.send_replace(Some(true));
        for id in &ids {
            assert_eq!(wait_for_outcome(&fixture, *id).await, DeliveryOutcome::Delivered);
        }
        assert_eq!(
            resolver.origins_sent_to(),
            ["http://resolved.example", FakeResolver::UNANSWERED, FakeResolver::UNANSWERED]
        );
        tree.stop();
        fixture.end().await;
    });
}

#[test]
fn webhooks_whose_name_does_not_resolve_in_time_are_not_sent() {
    run(async {
        let fixture = Fixture::new().await;
        fixture.tree.stop();
        let resolver = FakeResolver::new();
        let (tree, ids) =
            start_sending_to(&fixture, &resolver, &[FakeResolver::UNANSWERED, FakeResolver::UNANSWERED]).await;
        resolver.answer_received.send_replace(Some(false));
        for id in ids {
            assert_eq!(wait_for_outcome(&fixture, id).await, DeliveryOutcome::Unresolved);
        }
        assert!(resolver.origins_sent_to().is_empty());
        tree.stop();
        fixture.end().await;
    });
}

#[test]
fn webhooks_that_wait_for_a_name_do_not_delay_a_drain_and_stay_due() {
    run(async {
        let fixture = Fixture::new().await;
        fixture.tree.stop();
        let resolver = FakeResolver::new();
        let (tree, _) = start_sending_to(&fixture, &resolver, &[FakeResolver::UNANSWERED]).await;
        assert_eq!(tree.drain(TIMEOUT).await, 0);
        resolver.answer_received.send_replace(Some(true));
        assert_eq!(tree.drain(TIMEOUT).await, 0);
        assert!(resolver.origins_sent_to().is_empty());
        tree.stop();
        assert_eq!(fixture.unclaimed_deliveries().await, 1);
        fixture.end().await;
    });
}
