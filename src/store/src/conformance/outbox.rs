//! The outbox: at most one attempt of each delivery.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, Receiver};
use sakshi_domain::ids::{ClientId, TxnId};

use super::TestStore;
use super::fixture::{RESULT_TTL, build_completion, build_opening_with_hook, client_with, open_and_complete};
use crate::{Backlog, TransactionRecord};

/// Duration of an attempt, in milliseconds.
const DURATION_MS: u32 = 42;

pub(crate) async fn a_delivery_is_claimed_at_most_once(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    for _ in 0..10 {
        let (pending, id) = open_and_complete(test, &client).await;
        let claims = join_all((0..16).map(|_| test.store().claim_delivery(id, pending.id.into()))).await;
        assert_eq!(claims.into_iter().filter(|claim| *claim == Ok(true)).count(), 1);
        let stored = test.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
        assert_eq!((stored.claimed_at, stored.attempt), (Some(test.now()), None));
        test.store().settle_delivery(id, pending.id.into(), Attempt::from_status(200, DURATION_MS)).await.unwrap();
        assert_eq!(test.store().claim_delivery(id, pending.id.into()).await, Ok(false));
    }
    assert_eq!(test.store().first_due_deliveries(100).await, Ok(vec![]));
    assert_eq!(
        test.store().claim_delivery(DeliveryId(u64::MAX), TxnId::generate(client.partition(), 0).into()).await,
        Ok(false)
    );
}

pub(crate) async fn due_deliveries_are_ordered_and_can_be_filtered_by_receiver(test: &impl TestStore) {
    let client = client_with(test, 9).await;
    let (mut queued, mut txns) = (Vec::new(), Vec::new());
    for number in 0..9 {
        let open =
            build_opening_with_hook(test, &client, Some(&format!("https://host{}.example/{number}", number % 3)));
        let id = open.pending.id;
        test.store().open_transaction(open).await.unwrap();
        test.store().complete_transaction(build_completion(id, 1)).await.unwrap();
        queued.push(test.store().load_delivery(id.into()).await.unwrap().unwrap().id);
        txns.push(id);
    }
    let due = |after, origin: Option<&str>, limit| {
        let receiver = origin.map(|origin| Receiver { client: client.clone(), origin: origin.to_owned() });
        let due = test.store().due_deliveries(after, receiver, limit);
        async { due.await.unwrap().into_iter().map(|delivery| delivery.id).collect::<Vec<_>>() }
    };
    assert!(queued.is_sorted());
    assert_eq!(due(None, None, 100).await, queued);
    assert_eq!(due(Some(queued[3]), None, 2).await, queued[4..6]);
    assert_eq!(due(None, Some("https://host1.example"), 100).await, [queued[1], queued[4], queued[7]]);
    assert_eq!(due(Some(queued[1]), Some("https://host1.example"), 1).await, [queued[4]]);
    assert_eq!(due(None, Some("https://host1.example:444"), 100).await, []);
    let other_receiver = Receiver { client: ClientId::generate(), origin: "https://host1.example".into() };
    assert_eq!(test.store().due_deliveries(None, Some(other_receiver), 100).await, Ok(vec![]));
    assert!(test.store().claim_delivery(queued[4], txns[4].into()).await.unwrap());
    test.store().settle_delivery(queued[4], txns[4].into(), Attempt::from_status(200, DURATION_MS)).await.unwrap();
    assert_eq!(due(None, Some("https://host1.example"), 100).await, [queued[1], queued[7]]);
}

pub(crate) async fn the_backlog_counts_unfinished_deliveries_and_has_the_oldest_time(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    assert_eq!(test.store().backlog().await, Ok(Backlog::default()));
    let start = test.now();
    let (first, id) = open_and_complete(test, &client).await;
    test.advance(Duration::from_secs(5));
    open_and_complete(test, &client).await;
    assert_eq!(test.store().backlog().await, Ok(Backlog { deliveries: 2, oldest: Some(start) }));
    assert!(test.store().claim_delivery(id, first.id.into()).await.unwrap());
    assert_eq!(
        test.store().backlog().await,
        Ok(Backlog { deliveries: 2, oldest: Some(start) }),
        "the attempt is in flight"
    );
    test.store().settle_delivery(id, first.id.into(), Attempt::from_status(200, DURATION_MS)).await.unwrap();
    assert_eq!(
        test.store().backlog().await,
        Ok(Backlog { deliveries: 1, oldest: Some(start + Duration::from_secs(5)) })
    );
}

pub(crate) async fn a_delivery_can_be_attempted_after_its_result_has_expired(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, id) = open_and_complete(test, &client).await;
    test.advance(RESULT_TTL * 3);
    test.store().sweep(test.now(), 100).await.unwrap();
    assert_eq!(test.store().load_transaction(pending.id).await, Ok(None));
    let (record, _) = test.store().load_transaction_with_app(pending.id, pending.app.clone()).await.unwrap().unwrap();
    assert!(matches!(record, TransactionRecord::Completed(record) if record.opened.id == pending.id));
    let due = test.store().first_due_deliveries(10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [id]);
    assert!(test.store().claim_delivery(id, pending.id.into()).await.unwrap());
    test.store().settle_delivery(id, pending.id.into(), Attempt::from_status(200, DURATION_MS)).await.unwrap();
    test.store().sweep(test.now(), 100).await.unwrap();
    assert_eq!(test.store().load_transaction_with_app(pending.id, pending.app.clone()).await, Ok(None));
}

pub(crate) async fn the_first_outcome_of_an_attempt_stands(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, id) = open_and_complete(test, &client).await;
    assert!(test.store().claim_delivery(id, pending.id.into()).await.unwrap());
    let first = Attempt::from_status(503, DURATION_MS);
    test.store().settle_delivery(id, pending.id.into(), first).await.unwrap();
    test.store().settle_delivery(id, pending.id.into(), Attempt::from_status(200, DURATION_MS)).await.unwrap();
    let stored = test.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
    assert_eq!(stored.attempt, Some(first));
    assert_eq!(test.store().abandon_attempts().await, Ok(0));
    assert_eq!(test.store().claim_delivery(id, pending.id.into()).await, Ok(false));
}

pub(crate) async fn an_unclaimed_delivery_cannot_be_settled(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, id) = open_and_complete(test, &client).await;
    test.store().settle_delivery(id, pending.id.into(), Attempt::from_status(200, DURATION_MS)).await.unwrap();
    assert_eq!(test.store().load_delivery(pending.id.into()).await.unwrap().unwrap().attempt, None);
    assert!(test.store().claim_delivery(id, pending.id.into()).await.unwrap());
}

pub(crate) async fn abandoned_attempts_are_unknown_and_never_due_again(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let (claimed, claimed_id) = open_and_complete(test, &client).await;
    let (waiting, waiting_id) = open_and_complete(test, &client).await;
    let (settled, settled_id) = open_and_complete(test, &client).await;
    assert!(test.store().claim_delivery(claimed_id, claimed.id.into()).await.unwrap());
    assert!(test.store().claim_delivery(settled_id, settled.id.into()).await.unwrap());
    let delivered = Attempt::from_status(204, DURATION_MS);
    test.store().settle_delivery(settled_id, settled.id.into(), delivered).await.unwrap();
    test.advance(Duration::from_secs(1));
    assert_eq!(test.store().abandon_attempts().await, Ok(1));
    let outcome = |txn: TxnId| {
        let loaded = test.store().load_delivery(txn.into());
        async { loaded.await.unwrap().unwrap().attempt.map(|attempt| attempt.outcome) }
    };
    assert_eq!(outcome(claimed.id).await, Some(DeliveryOutcome::Unknown));
    assert_eq!(outcome(waiting.id).await, None);
    assert_eq!(outcome(settled.id).await, Some(DeliveryOutcome::Delivered));
    assert_eq!(test.store().claim_delivery(claimed_id, claimed.id.into()).await, Ok(false));
    assert!(test.store().claim_delivery(waiting_id, waiting.id.into()).await.unwrap());
}

pub(crate) async fn an_abandoned_attempt_can_still_get_its_real_outcome(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, id) = open_and_complete(test, &client).await;
    assert!(test.store().claim_delivery(id, pending.id.into()).await.unwrap());
    assert_eq!(test.store().abandon_attempts().await, Ok(1));
    for status in [200, 500] {
        test.store().settle_delivery(id, pending.id.into(), Attempt::from_status(status, DURATION_MS)).await.unwrap();
        let stored = test.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
        assert_eq!(stored.attempt, Some(Attempt::from_status(200, DURATION_MS)));
    }
    assert_eq!(test.store().abandon_attempts().await, Ok(0));
}
