//! Expiry and retention. Whether a store sweeps expired records or lets them expire makes no difference to callers.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::delivery::Attempt;
use sakshi_domain::event::{EventCounts, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::retention::ClientRetention;
use sakshi_domain::transaction::CredentialIdentity;

use super::TestStore;
use super::fixture::{
    EVENT_DURATION, REPLAY_WINDOW, RESULT_TTL, RETENTION, WINDOW, audited_balance, build_completion,
    build_declined_completion, build_event, build_guest_scan, build_idempotent_answer, build_opening,
    build_opening_with_hook, client_with, idempotency_scope, load_counts, open_and_complete, open_guest_scan,
    open_pending, patch_event, receiver, register_guest, store_event,
};
use super::guests::ALL;
use crate::{
    CompleteOutcome, CompleteTransaction, ExpireOutcome, OpenOutcome, Page, PageRequest, PatchEventOutcome,
    PresentedCredential, Swept,
};

/// Sweeps until nothing is left to remove.
pub(crate) async fn sweep_all(test: &impl TestStore) {
    while test.store().sweep(test.now(), 3).await.unwrap() != Swept::default() {}
}

/// Completes a transaction that has no webhook.
pub(crate) async fn complete_without_webhook(test: &impl TestStore, client: &ClientId) -> TxnId {
    let open = build_opening_with_hook(test, client, None);
    let id = open.pending.id;
    test.store().open_transaction(open).await.unwrap();
    test.store().complete_transaction(build_completion(id, 1)).await.unwrap();
    id
}

pub(crate) async fn a_result_can_be_fetched_until_it_expires(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let id = complete_without_webhook(test, &client).await;
    test.advance(RESULT_TTL - Duration::from_millis(1));
    sweep_all(test).await;
    assert!(test.store().load_transaction(id).await.unwrap().is_some());
    test.advance(Duration::from_millis(1));
    for _ in 0..2 {
        assert_eq!(test.store().load_transaction(id).await, Ok(None));
        assert_eq!(test.store().complete_transaction(build_completion(id, 1)).await, Ok(CompleteOutcome::NotFound));
        sweep_all(test).await;
    }
}

pub(crate) async fn an_expired_transaction_can_be_read_during_the_grace_period(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let id = open_pending(test, &client).await.id;
    test.advance(WINDOW + RETENTION.expired - Duration::from_millis(1));
    sweep_all(test).await;
    assert!(test.store().load_transaction(id).await.unwrap().is_some());
    test.advance(Duration::from_millis(1));
    sweep_all(test).await;
    assert_eq!(test.store().load_transaction(id).await, Ok(None));
    assert_eq!(test.store().complete_transaction(build_completion(id, 1)).await, Ok(CompleteOutcome::NotFound));
}

pub(crate) async fn a_transaction_with_an_unfinished_delivery_is_not_swept(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let (queued, queued_id) = open_and_complete(test, &client).await;
    let (claimed, claimed_id) = open_and_complete(test, &client).await;
    assert!(test.store().claim_delivery(claimed_id, claimed.id.into()).await.unwrap());
    test.advance(RESULT_TTL * 10);
    sweep_all(test).await;
    assert!(test.store().load_delivery(claimed.id.into()).await.unwrap().is_some());
    assert_eq!(test.store().load_transaction(claimed.id).await, Ok(None), "the result expires nevertheless");
    let attempt = Attempt::from_status(200, 1);
    test.store().settle_delivery(claimed_id, claimed.id.into(), attempt).await.unwrap();
    sweep_all(test).await;
    assert_eq!(test.store().load_delivery(claimed.id.into()).await, Ok(None));
    let due = test.store().first_due_deliveries(10).await.unwrap();
    assert_eq!(due.iter().map(|due| (due.id, due.subject)).collect::<Vec<_>>(), [(queued_id, queued.id.into())]);
    assert_eq!(Some(receiver(test.store(), &due[0]).await), queued.terms.webhook_url);
}

pub(crate) async fn a_sweep_is_bounded(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(complete_without_webhook(test, &client).await);
        ids.push(open_pending(test, &client).await.id);
    }
    test.advance(RESULT_TTL);
    let mut rounds = 0;
    loop {
        let Swept { transactions, .. } = test.store().sweep(test.now(), 3).await.unwrap();
        assert!(transactions <= 3, "{transactions}");
        if transactions == 0 {
            break;
        }
        rounds += 1;
        assert!(rounds <= ids.len(), "a swept record is swept again");
    }
    for id in ids {
        assert_eq!(test.store().load_transaction(id).await, Ok(None));
    }
}

pub(crate) async fn idempotency_records_and_credentials_expire(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let mut open = build_opening(test, &client);
    Arc::make_mut(&mut open.pending).terms.webhook_url = None;
    open.idempotency = Some(build_idempotent_answer(test, &client, 1, 1));
    let id = open.pending.id;
    test.store().open_transaction(open).await.unwrap();
    let presenting = |id| CompleteTransaction {
        credential: Some(PresentedCredential { digest: CredentialIdentity([4; 32]), holder_bound: false }),
        ..build_completion(id, 1)
    };
    test.store().complete_transaction(presenting(id)).await.unwrap();
    test.advance(REPLAY_WINDOW - Duration::from_millis(1));
    sweep_all(test).await;
    let second = open_pending(test, &client).await.id;
    assert_eq!(test.store().complete_transaction(presenting(second)).await, Ok(CompleteOutcome::CredentialReplayed));
    test.advance(Duration::from_millis(1));
    sweep_all(test).await;
    let outcome = test.store().complete_transaction(presenting(second)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }), "{outcome:?}");
    test.advance(RESULT_TTL - REPLAY_WINDOW - Duration::from_millis(1));
    sweep_all(test).await;
    assert!(test.store().load_idempotent_answer(idempotency_scope(&client, 1)).await.unwrap().is_some());
    test.advance(Duration::from_millis(1));
    sweep_all(test).await;
    assert_eq!(test.store().load_idempotent_answer(idempotency_scope(&client, 1)).await, Ok(None));
}

pub(crate) async fn sweeping_does_not_change_the_ledger(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    complete_without_webhook(test, &client).await;
    open_pending(test, &client).await;
    test.advance(RESULT_TTL * 2);
    sweep_all(test).await;
    assert_eq!(audited_balance(test, &client).await, 3);
}

pub(crate) async fn abandoned_scans_are_counted_before_and_after_they_are_swept(test: &impl TestStore) {
    check_abandoned_scan_counts(test).await;
}

/// Checks the counts of abandoned scans. Returns the number of transactions that each sweep removed.
pub(crate) async fn check_abandoned_scan_counts(test: &impl TestStore) -> [u64; 3] {
    let sweep = |limit| async move { test.store().sweep(test.now(), limit).await.unwrap().transactions };
    let client = client_with(test, 20).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    let declined = open_guest_scan(test, &event).await;
    for _ in 0..3 {
        open_guest_scan(test, &event).await;
    }
    let minute = Duration::from_secs(60);
    test.advance(minute);
    open_guest_scan(test, &event).await;
    test.store().complete_transaction(build_declined_completion(declined, 1)).await.unwrap();
    let abandoned = || async { load_counts(test, &event).await.abandoned };
    test.advance(WINDOW - minute - Duration::from_millis(1));
    assert_eq!(abandoned().await, 0);
    test.advance(Duration::from_millis(1));
    assert_eq!(abandoned().await, 3, "the windows have passed");
    open_guest_scan(test, &event).await;
    assert_eq!(abandoned().await, 3, "the next scan does not count them again");
    test.advance(minute);
    assert_eq!(abandoned().await, 4);
    // A scan that is opened after its window.
    let mut late = build_guest_scan(test, &event);
    Arc::make_mut(&mut late.pending).expires_at = test.now() - WINDOW;
    assert!(matches!(test.store().open_transaction(late).await, Ok(OpenOutcome::Opened { .. })));
    assert_eq!(abandoned().await, 5);
    test.advance(RETENTION.expired);
    let first = sweep(2).await;
    assert_eq!(abandoned().await, 5, "swept scans stay counted");
    let second = sweep(100).await;
    assert_eq!(abandoned().await, 5, "swept scans stay counted");
    test.advance(WINDOW);
    assert_eq!(abandoned().await, 6);
    test.advance(RESULT_TTL);
    let third = sweep(100).await;
    assert_eq!(
        load_counts(test, &event).await,
        EventCounts { registrations: 0, scans: 7, abandoned: 6, pending: 0, ..EventCounts::default() }
    );
    [first, second, third]
}

pub(crate) async fn a_scan_whose_window_has_ended_counts_as_abandoned_once(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    let first = open_guest_scan(test, &event).await;
    let assert_abandoned = async |expected| assert_eq!(load_counts(test, &event).await.abandoned, expected);
    for _ in 0..2 {
        assert!(
            matches!(test.store().expire_transaction(first).await, Ok(ExpireOutcome::Expired(_))),
            "immediately after its scan"
        );
        assert_abandoned(1).await;
    }
    let second = open_guest_scan(test, &event).await;
    test.advance(Duration::from_secs(1));
    test.store().expire_transaction(second).await.unwrap();
    assert_abandoned(2).await;
    open_guest_scan(test, &event).await;
    test.advance(WINDOW - Duration::from_millis(1));
    sweep_all(test).await;
    assert_abandoned(2).await;
    test.advance(Duration::from_millis(1));
    assert_abandoned(3).await;
    test.advance(RETENTION.expired);
    sweep_all(test).await;
    assert_abandoned(3).await;
}

pub(crate) async fn an_expired_event_is_removed_with_its_registrations_but_not_deliveries(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    register_guest(test, &event).await;
    let without_webhook =
        patch_event(test, &event, EventPatch { webhook_url: Some(None), ..EventPatch::default() }).await;
    register_guest(test, &without_webhook).await;
    test.advance(EVENT_DURATION + RETENTION.events - Duration::from_millis(1));
    sweep_all(test).await;
    let listed = test.store().list_registrations(event.id, ALL.into()).await.unwrap();
    assert_eq!((listed.items.len(), listed.total), (2, 2), "registrations outlive their transactions");
    test.advance(Duration::from_millis(1));
    sweep_all(test).await;
    let due = test.store().first_due_deliveries(10).await.unwrap().remove(0);
    assert_eq!(Some(receiver(test.store(), &due).await), event.terms.webhook_url, "a queued delivery keeps its URL");
    assert!(test.store().claim_delivery(due.id, due.subject).await.unwrap());
    let attempt = Attempt::from_status(200, 1);
    test.store().settle_delivery(due.id, due.subject, attempt).await.unwrap();
    sweep_all(test).await;
    assert_eq!(test.store().load_event(event.id).await, Ok(None));
    assert_eq!(test.store().list_registrations(event.id, ALL.into()).await, Ok(Page { items: vec![], total: 0 }));
    assert_eq!(test.store().list_events(event.app.clone(), ALL).await, Ok(Page { items: vec![], total: 0 }));
    assert_eq!(test.store().open_transaction(build_guest_scan(test, &event)).await, Ok(OpenOutcome::EventNotFound));
    assert_eq!(audited_balance(test, &client).await, 18);
}

pub(crate) async fn an_event_of_a_client_with_a_shorter_retention_expires_earlier(test: &impl TestStore) {
    const DAYS: u32 = 3;
    let client = client_with(test, 2).await;
    let short = ClientRetention { registration_ttl_days: NonZeroU32::new(DAYS), ..ClientRetention::default() };
    let long = ClientRetention { registration_ttl_days: NonZeroU32::new(10_000), ..short };
    let create_with = |retention| {
        let mut event = build_event(test, &client, 5);
        (event.terms.retention, event.terms.webhook_url) = (retention, None);
        store_event(test, event)
    };
    let (early, usual) = (create_with(short).await, create_with(long).await);
    register_guest(test, &early).await;
    // A change of the event's end restarts the retention from the new end.
    let later = EventPatch { expires_at: Some(test.now() + EVENT_DURATION * 2), ..EventPatch::default() };
    patch_event(test, &early, later).await;
    let time = Duration::from_secs(u64::from(DAYS) * 24 * 3_600);
    assert!(time < RETENTION.events);
    test.advance(EVENT_DURATION * 2 + time - Duration::from_millis(1));
    sweep_all(test).await;
    assert!(test.store().load_event(early.id).await.unwrap().is_some());
    test.advance(Duration::from_millis(1));
    sweep_all(test).await;
    assert_eq!(test.store().load_event(early.id).await, Ok(None));
    assert_eq!(test.store().list_registrations(early.id, ALL.into()).await.unwrap().total, 0);
    assert!(test.store().load_event(usual.id).await.unwrap().is_some());
    test.advance(RETENTION.events);
    sweep_all(test).await;
    assert_eq!(test.store().load_event(usual.id).await, Ok(None), "the settings limit the retention of every client");
}

pub(crate) async fn a_partly_removed_event_is_hidden(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let mut old = build_event(test, &client, 10);
    old.terms.webhook_url = None;
    let old = store_event(test, old).await;
    for _ in 0..7 {
        register_guest(test, &old).await;
    }
    let mut longer = build_event(test, &client, 10);
    (longer.app, longer.terms.expires_at) = (old.app.clone(), old.terms.expires_at + Duration::from_millis(1));
    let longer = store_event(test, longer).await;
    test.advance(EVENT_DURATION + RETENTION.events - Duration::from_millis(1));
    for _ in 0..10 {
        test.store().sweep(test.now(), 3).await.unwrap();
    }
    assert_eq!(load_counts(test, &old).await.registrations, 7);
    test.advance(Duration::from_millis(1));
    for _ in 0..5 {
        test.store().sweep(test.now(), 3).await.unwrap();
        assert_eq!(test.store().load_event(old.id).await, Ok(None));
        let patch = test.store().patch_event(old.id, old.app.clone(), EventPatch::default()).await;
        assert_eq!(patch, Ok(PatchEventOutcome::NotFound));
        assert_eq!(test.store().list_registrations(old.id, ALL.into()).await, Ok(Page { items: vec![], total: 0 }));
        let listed = test.store().list_events(old.app.clone(), ALL).await.unwrap();
        assert_eq!((listed.total, listed.items), (1, vec![longer.clone()]));
    }
}

pub(crate) async fn pages_of_a_long_list_of_events_are_complete_after_removals(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (app, remaining) = create_long_event_list(test, &client).await;
    assert_pages(test, &app, &remaining).await;
    let mut newest = build_event(test, &client, 1);
    newest.app = app.clone();
    let newest = store_event(test, newest).await.id;
    assert_pages(test, &app, &[remaining, vec![newest]].concat()).await;
}

/// Creates hundreds of events of an app and lets some expire. Returns the app and the remaining events.
pub(crate) async fn create_long_event_list(test: &impl TestStore, client: &ClientId) -> (AppId, Vec<EventId>) {
    let app = AppId::generate();
    let mut events = Vec::new();
    for number in 0..600 {
        let mut event = build_event(test, client, 1);
        event.app = app.clone();
        // The first half of the list expires, and a third of the second half.
        let remains = number > 300 && number % 3 > 0;
        event.terms.expires_at = event.terms.expires_at + Duration::from_millis(u64::from(remains));
        events.push((store_event(test, event).await.id, remains));
    }
    assert_pages(test, &app, &events.iter().map(|(id, _)| *id).collect::<Vec<_>>()).await;
    test.advance(EVENT_DURATION + RETENTION.events);
    sweep_all(test).await;
    (app, events.into_iter().filter(|(_, remains)| *remains).map(|(id, _)| id).collect())
}

/// Asserts that the pages of the list have these events in this order, and their total number.
pub(crate) async fn assert_pages(test: &impl TestStore, app: &AppId, expected: &[EventId]) {
    let page_size = 7;
    for (index, ids) in expected.chunks(page_size).enumerate() {
        let page =
            PageRequest { page: u32::try_from(index).unwrap() + 1, page_size: u32::try_from(page_size).unwrap() };
        let listed = test.store().list_events(app.clone(), page).await.unwrap();
        let listed_ids: Vec<EventId> = listed.items.iter().map(|event| event.id).collect();
        assert_eq!((listed_ids.as_slice(), listed.total), (ids, expected.len() as u64), "page {}", page.page);
    }
}

pub(crate) async fn a_working_store_passes_the_write_check(test: &impl TestStore) {
    assert_eq!(test.store().check().await, Ok(()));
}
