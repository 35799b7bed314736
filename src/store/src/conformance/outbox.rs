//! The outbox: at most one attempt at each delivery.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, Receiver};
use sakshi_domain::ids::{ClientId, TxnId};

use super::TestStore;
use super::fixture::{RESULT_TTL, client_with, completed, completing, opening_with_hook};
use crate::{Backlog, TransactionRecord};

/// Duration of an attempt, in milliseconds.
const MS: u32 = 42;

pub(crate) async fn a_delivery_is_claimed_at_most_once(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    for _ in 0..10 {
        let (pending, id) = completed(test, &client).await;
        let claims = join_all((0..16).map(|_| test.store().claim_delivery(id, pending.id.into()))).await;
        assert_eq!(claims.into_iter().filter(|taken| *taken == Ok(true)).count(), 1);
        let kept = test.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
        assert_eq!((kept.claimed_at, kept.attempt), (Some(test.now()), None));
        test.store().settle_delivery(id, pending.id.into(), Attempt::answered(200, MS)).await.unwrap();
        assert_eq!(test.store().claim_delivery(id, pending.id.into()).await, Ok(false));
    }
    assert_eq!(test.store().due_deliveries(None, None, 100).await, Ok(vec![]));
    assert_eq!(
        test.store().claim_delivery(DeliveryId(u64::MAX), TxnId::generate(client.partition(), 0).into()).await,
        Ok(false)
    );
}

pub(crate) async fn due_deliveries_come_in_order_after_a_position_and_of_one_receiver(test: &impl TestStore) {
    let client = client_with(test, 9).await;
    let (mut queued, mut txns) = (Vec::new(), Vec::new());
    for n in 0..9 {
        let open = opening_with_hook(test, &client, Some(&format!("https://host{}.example/{n}", n % 3)));
        let id = open.pending.id;
        test.store().open_transaction(open).await.unwrap();
        test.store().complete_transaction(completing(id, 1)).await.unwrap();
        queued.push(test.store().load_delivery(id.into()).await.unwrap().unwrap().id);
        txns.push(id);
    }
    let due = |after, origin: Option<&str>, limit| {
        let receiver = origin.map(|origin| Receiver { client: client.clone(), origin: origin.to_owned() });
        let found = test.store().due_deliveries(after, receiver, limit);
        async { found.await.unwrap().into_iter().map(|delivery| delivery.id).collect::<Vec<_>>() }
    };
    assert!(queued.is_sorted());
    assert_eq!(due(None, None, 100).await, queued);
    assert_eq!(due(Some(queued[3]), None, 2).await, queued[4..6]);
    assert_eq!(due(None, Some("https://host1.example"), 100).await, [queued[1], queued[4], queued[7]]);
    assert_eq!(due(Some(queued[1]), Some("https://host1.example"), 1).await, [queued[4]]);
    assert_eq!(due(None, Some("https://host1.example:444"), 100).await, []);
    let of_another = Receiver { client: ClientId::generate(), origin: "https://host1.example".into() };
    assert_eq!(test.store().due_deliveries(None, Some(of_another), 100).await, Ok(vec![]));
    assert!(test.store().claim_delivery(queued[4], txns[4].into()).await.unwrap());
    test.store().settle_delivery(queued[4], txns[4].into(), Attempt::answered(200, MS)).await.unwrap();
    assert_eq!(due(None, Some("https://host1.example"), 100).await, [queued[1], queued[7]]);
}

pub(crate) async fn the_backlog_counts_what_has_not_ended_and_knows_the_oldest(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    assert_eq!(test.store().backlog().await, Ok(Backlog::default()));
    let begun = test.now();
    let (first, id) = completed(test, &client).await;
    test.advance(Duration::from_secs(5));
    completed(test, &client).await;
    assert_eq!(test.store().backlog().await, Ok(Backlog { deliveries: 2, oldest: Some(begun) }));
    assert!(test.store().claim_delivery(id, first.id.into()).await.unwrap());
    assert_eq!(
        test.store().backlog().await,
        Ok(Backlog { deliveries: 2, oldest: Some(begun) }),
        "its attempt is under way"
    );
    test.store().settle_delivery(id, first.id.into(), Attempt::answered(200, MS)).await.unwrap();
    assert_eq!(
        test.store().backlog().await,
        Ok(Backlog { deliveries: 1, oldest: Some(begun + Duration::from_secs(5)) })
    );
}

pub(crate) async fn a_delivery_that_waits_longer_than_its_result_can_be_polled_is_still_made(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, id) = completed(test, &client).await;
    test.advance(RESULT_TTL * 3);
    test.store().sweep(test.now(), 100).await.unwrap();
    assert_eq!(test.store().load_transaction(pending.id).await, Ok(None));
    let (record, _) = test.store().load_transaction_with_app(pending.id, pending.app.clone()).await.unwrap().unwrap();
    assert!(matches!(record, TransactionRecord::Completed(record) if record.opened.id == pending.id));
    let due = test.store().due_deliveries(None, None, 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [id]);
    assert!(test.store().claim_delivery(id, pending.id.into()).await.unwrap());
    test.store().settle_delivery(id, pending.id.into(), Attempt::answered(200, MS)).await.unwrap();
    test.store().sweep(test.now(), 100).await.unwrap();
    assert_eq!(test.store().load_transaction_with_app(pending.id, pending.app.clone()).await, Ok(None));
}

pub(crate) async fn the_first_record_of_an_attempt_stands(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, id) = completed(test, &client).await;
    assert!(test.store().claim_delivery(id, pending.id.into()).await.unwrap());
    let first = Attempt::answered(503, MS);
    test.store().settle_delivery(id, pending.id.into(), first).await.unwrap();
    test.store().settle_delivery(id, pending.id.into(), Attempt::answered(200, MS)).await.unwrap();
    let kept = test.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
    assert_eq!(kept.attempt, Some(first));
    assert_eq!(test.store().abandon_attempts().await, Ok(0));
    assert_eq!(test.store().claim_delivery(id, pending.id.into()).await, Ok(false));
}

pub(crate) async fn a_delivery_that_was_not_claimed_cannot_be_settled(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, id) = completed(test, &client).await;
    test.store().settle_delivery(id, pending.id.into(), Attempt::answered(200, MS)).await.unwrap();
    assert_eq!(test.store().load_delivery(pending.id.into()).await.unwrap().unwrap().attempt, None);
    assert!(test.store().claim_delivery(id, pending.id.into()).await.unwrap());
}

pub(crate) async fn abandoned_attempts_are_unknown_and_never_due_again(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let (begun, begun_id) = completed(test, &client).await;
    let (waiting, waiting_id) = completed(test, &client).await;
    let (ended, ended_id) = completed(test, &client).await;
    assert!(test.store().claim_delivery(begun_id, begun.id.into()).await.unwrap());
    assert!(test.store().claim_delivery(ended_id, ended.id.into()).await.unwrap());
    let delivered = Attempt::answered(204, MS);
    test.store().settle_delivery(ended_id, ended.id.into(), delivered).await.unwrap();
    test.advance(Duration::from_secs(1));
    assert_eq!(test.store().abandon_attempts().await, Ok(1));
    let outcome = |txn: TxnId| {
        let found = test.store().load_delivery(txn.into());
        async { found.await.unwrap().unwrap().attempt.map(|attempt| attempt.outcome) }
    };
    assert_eq!(outcome(begun.id).await, Some(DeliveryOutcome::Unknown));
    assert_eq!(outcome(waiting.id).await, None);
    assert_eq!(outcome(ended.id).await, Some(DeliveryOutcome::Delivered));
    assert_eq!(test.store().claim_delivery(begun_id, begun.id.into()).await, Ok(false));
    assert!(test.store().claim_delivery(waiting_id, waiting.id.into()).await.unwrap());
}

pub(crate) async fn who_made_an_attempt_that_was_given_up_may_still_say_how_it_ended(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, id) = completed(test, &client).await;
    assert!(test.store().claim_delivery(id, pending.id.into()).await.unwrap());
    assert_eq!(test.store().abandon_attempts().await, Ok(1));
    for status in [200, 500] {
        test.store().settle_delivery(id, pending.id.into(), Attempt::answered(status, MS)).await.unwrap();
        let kept = test.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
        assert_eq!(kept.attempt, Some(Attempt::answered(200, MS)));
    }
    assert_eq!(test.store().abandon_attempts().await, Ok(0));
}
