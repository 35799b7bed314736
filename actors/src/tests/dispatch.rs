//! Webhooks: one attempt each, whatever happens to the dispatcher.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use actix::{Handler, Message};
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, QueuedDelivery, Receiver};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::TxnId;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_outbound::client::SendWebhook;
use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver};
use sakshi_store::OpenOutcome;
use serde_json::Value;
use tokio::sync::watch;

use super::panics::Panic;
use super::{Fixture, completion, run, verified, wait_until};
use crate::dispatcher::{DeliveryQueued, WebhookDispatcher};
use crate::{CompleteReply, Transactions, Tree};

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

/// Stops the scans of the outbox, unless one is under way. Returns true if they are stopped.
#[derive(Clone, Copy, Message)]
#[rtype(result = "bool")]
struct StopScans;

impl Handler<StopScans> for WebhookDispatcher {
    type Result = bool;
    fn handle(&mut self, _: StopScans, _: &mut Self::Context) -> bool {
        !std::mem::replace(&mut self.scanning, true)
    }
}

/// Stops the scans of the outbox, so that only notices lead to webhooks.
pub(super) async fn stop_scans(tree: &Tree) {
    while !tree.dispatcher.send(StopScans).await.unwrap() {}
}

#[test]
fn a_webhook_is_sent_before_any_scan_finds_it() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        stop_scans(&fixture.tree).await;
        let id = fixture.open_with_webhook(Some(&receiver.url("/hook"))).await.unwrap();
        fixture.complete(id, verified(1)).await;
        assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1);
        fixture.end().await;
    });
}

#[test]
fn a_webhook_that_found_its_queue_full_is_sent_when_there_is_room() {
    run(async {
        let fixture = Fixture::new().await;
        fixture.tree.stop();
        let resolver = FakeResolver::new();
        let (tree, _escalations) = fixture.start_with_client(Arc::<FakeResolver>::clone(&resolver)).await;
        stop_scans(&tree).await;
        // A queue holds a thousand. The store does not know these, so their attempts end at once.
        let receiver = Receiver { client: fixture.client.clone(), origin: FakeResolver::UNANSWERED.into() };
        for id in 0..1_000 {
            let subject = TxnId::generate(fixture.client.partition(), 0).into();
            let receiver = receiver.clone();
            let unknown =
                QueuedDelivery { id: DeliveryId(1_000_000 + id), subject, receiver, app: None, stored_bytes: 0 };
            tree.dispatcher.send(DeliveryQueued(unknown, None)).await.unwrap();
        }
        let id =
            complete_with_webhook(&fixture, &tree.start_shard().unwrap().transactions, FakeResolver::UNANSWERED).await;
        resolver.answer_received.send_replace(Some(true));
        assert_eq!(wait_for_outcome(&fixture, id).await, DeliveryOutcome::Delivered);
        assert_eq!(resolver.origins_sent_to(), [FakeResolver::UNANSWERED]);
        tree.stop();
        fixture.end().await;
    });
}

#[test]
fn a_webhook_that_an_ended_process_had_begun_is_unknown_and_is_not_sent() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        assert_eq!(fixture.tree.drain(TIMEOUT).await, 0);
        let id = complete_with_webhook(&fixture, &fixture.transactions, &receiver.url("")).await;
        let due = fixture.store.due_deliveries(None, None, 10).await.unwrap();
        assert!(fixture.store.claim_delivery(due[0].id, due[0].subject).await.unwrap());
        let (next, _escalations) = fixture.start_again().await;
        assert_eq!(wait_for_outcome(&fixture, id).await, DeliveryOutcome::Unknown);
        assert!(receiver.received().is_empty());
        next.stop();
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
        let id =
            complete_with_webhook(&fixture, &panicking.start_shard().unwrap().transactions, "http://127.0.0.1:9").await;
        assert_eq!(wait_for_outcome(&fixture, id).await, DeliveryOutcome::Unknown);
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
        ids.push(complete_with_webhook(fixture, &transactions, origin).await);
    }
    (tree, ids)
}

/// Completes a transaction whose webhook goes to this origin.
async fn complete_with_webhook(fixture: &Fixture, transactions: &Transactions, origin: &str) -> TxnId {
    let id = transactions.new_id(&fixture.client);
    let opening = fixture.opening(id, Some(&format!("{origin}/hook")));
    assert!(matches!(transactions.open(opening).await, Ok(OpenOutcome::Opened { .. })));
    assert_eq!(transactions.complete(id, completion(verified(1))).await, Ok(CompleteReply::Accepted));
    id
}

async fn wait_for_outcome(fixture: &Fixture, id: TxnId) -> DeliveryOutcome {
    let outcome = eventually("the attempt has its outcome", TIMEOUT, || async {
        fixture.store.load_delivery(id.into()).await.unwrap().unwrap().attempt.map(|attempt| attempt.outcome)
    });
    outcome.await
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
