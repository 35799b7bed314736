//! Guests of an event: scans, registrations, refusals and counts.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::event::{CreditBudget, Event, EventCounts, EventPatch, EventRefusal};
use sakshi_domain::ids::{AppId, EventId, TxnId};
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity, Failure, Outcome};

use super::TestStore;
use super::fixture::{
    EVENT_DURATION, HOOK, WINDOW, audited_balance, build_completion, build_declined_completion, build_event,
    build_guest_scan, client_with, load_counts, max_guests, open_guest_scan, patch_event, receiver, register_guest,
    sealed, store_event, url,
};
use crate::vault::test_vault;
use crate::{
    CompleteOutcome, CompleteTransaction, OpenOutcome, OpenTransaction, Page, PageRequest, PresentedCredential, Rows,
};
use crate::{CompletedRecord, Registration, TransactionRecord};

/// A page with every row.
pub(crate) const ALL: PageRequest = PageRequest { page: 1, page_size: 1_000 };

pub(crate) async fn a_scan_costs_a_credit_and_takes_no_place(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let event = store_event(test, build_event(test, &client, 1)).await;
    let first = build_guest_scan(test, &event);
    for _ in 0..3 {
        assert_eq!(test.store().open_transaction(first.clone()).await, Ok(OpenOutcome::Opened { balance: 4 }));
    }
    open_guest_scan(test, &event).await;
    let loaded = test.store().load_transaction(first.pending.id).await;
    assert_eq!(loaded, Ok(Some(TransactionRecord::Pending((*first.pending).clone()))));
    assert_eq!(
        load_counts(test, &event).await,
        EventCounts { registrations: 0, scans: 2, abandoned: 0, pending: 2, ..EventCounts::default() }
    );
    assert_eq!(audited_balance(test, &client).await, 3);
}

pub(crate) async fn the_refusals_of_a_scan_have_a_fixed_precedence(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let event = store_event(test, build_event(test, &client, 1)).await;
    register_guest(test, &event).await;
    let open = || test.store().open_transaction(build_guest_scan(test, &event));
    let refused = |refusal| Ok(OpenOutcome::EventRefused(refusal));

    assert_eq!(open().await, refused(EventRefusal::Full), "a full event takes precedence over missing credits");
    test.advance(EVENT_DURATION);
    assert_eq!(open().await, refused(EventRefusal::Expired));
    patch_event(test, &event, EventPatch { is_active: Some(false), ..EventPatch::default() }).await;
    assert_eq!(open().await, refused(EventRefusal::Disabled));

    let other = client_with(test, 1).await;
    let make_foreign: [fn(&mut OpenTransaction, &sakshi_domain::ids::ClientId); 3] = [
        |open, other| Arc::make_mut(&mut open.pending).event = Some(EventId::generate(other.partition(), 3)),
        |open, other| Arc::make_mut(&mut open.pending).client = other.clone(),
        |open, _| Arc::make_mut(&mut open.pending).app = AppId::generate(),
    ];
    for change in make_foreign {
        let mut open = build_guest_scan(test, &event);
        change(&mut open, &other);
        assert_eq!(test.store().open_transaction(open).await, Ok(OpenOutcome::EventNotFound));
    }

    let end = Some(test.now() + EVENT_DURATION);
    let reactivate =
        EventPatch { is_active: Some(true), expires_at: end, max_guests: Some(max_guests(2)), ..EventPatch::default() };
    patch_event(test, &event, reactivate).await;
    assert_eq!(open().await, Ok(OpenOutcome::InsufficientCredits));
    assert_eq!(
        load_counts(test, &event).await,
        EventCounts { registrations: 1, scans: 1, ..EventCounts::default() },
        "refused scans are not counted"
    );
    assert_eq!(audited_balance(test, &client).await + audited_balance(test, &other).await, 1);
}

pub(crate) async fn a_guest_who_passes_is_registered_and_reported_to_the_current_url(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    let open = build_guest_scan(test, &event);
    let (id, pending) = (open.pending.id, (*open.pending).clone());
    test.store().open_transaction(open).await.unwrap();
    let change_url = |text: &str| {
        patch_event(test, &event, EventPatch { webhook_url: Some(Some(url(text))), ..EventPatch::default() })
    };
    change_url("https://second.example/in").await;
    test.advance(Duration::from_secs(9));
    let outcome = test.store().complete_transaction(build_completion(id, 1)).await.unwrap();
    let CompleteOutcome::Completed { record, queued: Some(delivery), repeated: false } = outcome else {
        panic!("{outcome:?}")
    };
    let expected = CompletedRecord {
        opened: pending,
        verified_at: test.now(),
        passed: true,
        refused: None,
        registration: Some(1),
        answer: AnswerDigest([1; 32]),
        outcome: sealed("outcome 1"),
        address: None,
        is_polled: false,
    };
    // The address is sealed with a new nonce each time.
    let expected = CompletedRecord { address: record.address.clone(), ..expected };
    assert_eq!(record, expected);
    assert_eq!(
        (delivery.subject, receiver(test.store(), &delivery).await),
        (id.into(), url("https://second.example/in"))
    );
    change_url("https://third.example/in").await;
    assert_eq!(
        test.store().first_due_deliveries(10).await,
        Ok(vec![delivery.clone()]),
        "a queued delivery keeps its URL"
    );
    assert_eq!(receiver(test.store(), &delivery).await, url("https://second.example/in"));
    let of_one_receiver = test.store().due_deliveries(None, Some(delivery.receiver.clone()), 10).await;
    assert_eq!(of_one_receiver, Ok(vec![delivery]));
    assert_eq!(test.store().load_transaction(id).await, Ok(Some(TransactionRecord::Completed(expected.clone()))));
    let listed = test.store().list_registrations(event.id, ALL.into()).await.unwrap();
    let [Registration { guest, outcome }] = &listed.items[..] else { panic!("{listed:?}") };
    assert_eq!((guest.number, guest.txn, guest.verified_at, outcome), (1, id, expected.verified_at, &expected.outcome));
    assert_eq!((&guest.check_in, guest.duplicate_of, listed.total), (&None, None, 1));
    match test.store().complete_transaction(build_completion(id, 1)).await.unwrap() {
        CompleteOutcome::Completed { record, queued: None, repeated: true } => assert_eq!(record, expected),
        other => panic!("{other:?}"),
    }
    assert_eq!(load_counts(test, &event).await, EventCounts { registrations: 1, scans: 1, ..EventCounts::default() });
}

/// Opens a guest's transaction that has its own webhook URL.
async fn open_scan_with_own_url(test: &impl TestStore, event: &Event) -> TxnId {
    let mut open = build_guest_scan(test, event);
    Arc::make_mut(&mut open.pending).terms.webhook_url = Some(url(HOOK));
    let id = open.pending.id;
    test.store().open_transaction(open).await.unwrap();
    id
}

pub(crate) async fn the_url_of_a_guest_has_priority_over_the_url_of_the_event(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    // A failed verification also queues a webhook to the transaction's own URL.
    for build_answer in [build_completion, build_declined_completion] {
        let id = open_scan_with_own_url(test, &event).await;
        let outcome = test.store().complete_transaction(build_answer(id, 1)).await.unwrap();
        let CompleteOutcome::Completed { queued: Some(delivery), .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(receiver(test.store(), &delivery).await, url(HOOK));
    }
    patch_event(test, &event, EventPatch { webhook_url: Some(None), ..EventPatch::default() }).await;
    let silent = open_guest_scan(test, &event).await;
    let outcome = test.store().complete_transaction(build_completion(silent, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { queued: None, .. }));
    assert_eq!(test.store().first_due_deliveries(10).await.unwrap().len(), 2);
    assert_eq!(load_counts(test, &event).await.registrations, 2);
}

pub(crate) async fn a_guest_who_does_not_pass_takes_no_place_and_is_not_reported(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let event = store_event(test, build_event(test, &client, 1)).await;
    let id = open_guest_scan(test, &event).await;
    for repeated in [false, true] {
        match test.store().complete_transaction(build_declined_completion(id, 1)).await.unwrap() {
            CompleteOutcome::Completed { record, queued: None, repeated: now } => {
                assert_eq!(
                    (record.passed, record.refused, record.outcome, now),
                    (false, None, sealed("declined"), repeated)
                );
            }
            other => panic!("{other:?}"),
        }
    }
    test.advance(EVENT_DURATION);
    assert_eq!(load_counts(test, &event).await, EventCounts { registrations: 0, scans: 1, ..EventCounts::default() });
    assert_eq!(test.store().list_registrations(event.id, ALL.into()).await, Ok(Page { items: vec![], total: 0 }));
    assert_eq!(test.store().first_due_deliveries(10).await, Ok(vec![]));
}

/// Completes a transaction whose guest must be refused a place.
async fn assert_refused(test: &impl TestStore, id: TxnId, refusal: EventRefusal) {
    for repeated in [false, true] {
        match test.store().complete_transaction(build_completion(id, 1)).await.unwrap() {
            CompleteOutcome::Completed { record, queued: None, repeated: now } => {
                assert_eq!((record.passed, record.refused, now), (false, Some(refusal), repeated));
                let outcome: Outcome =
                    serde_json::from_slice(&test_vault(&[7]).open(id.as_bytes(), &record.outcome).unwrap()).unwrap();
                assert_eq!(outcome, Outcome::NotVerified(Failure::event_refused(refusal)));
                assert_eq!(test.store().load_transaction(id).await, Ok(Some(record.into())));
            }
            other => panic!("{other:?}"),
        }
    }
    match test.store().complete_transaction(build_completion(id, 2)).await.unwrap() {
        CompleteOutcome::AlreadyCompleted(record) => assert_eq!(record.refused, Some(refusal)),
        other => panic!("{other:?}"),
    }
    assert_eq!(test.store().load_delivery(id.into()).await, Ok(None));
}

pub(crate) async fn a_guest_who_finds_no_place_at_completion_is_refused(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    let event = store_event(test, build_event(test, &client, 1)).await;
    test.advance(EVENT_DURATION - Duration::from_secs(60));
    let full = open_scan_with_own_url(test, &event).await;
    let (disabled, disabled_and_expired, expired) =
        (open_guest_scan(test, &event).await, open_guest_scan(test, &event).await, open_guest_scan(test, &event).await);
    register_guest(test, &event).await;
    assert_refused(test, full, EventRefusal::Full).await;
    let active =
        |is_active| patch_event(test, &event, EventPatch { is_active: Some(is_active), ..EventPatch::default() });
    active(false).await;
    assert_refused(test, disabled, EventRefusal::Disabled).await;
    test.advance(Duration::from_secs(60));
    assert_refused(test, disabled_and_expired, EventRefusal::Disabled).await;
    active(true).await;
    assert_refused(test, expired, EventRefusal::Expired).await;
    assert_eq!(load_counts(test, &event).await, EventCounts { registrations: 1, scans: 5, ..EventCounts::default() });
    assert_eq!(test.store().list_registrations(event.id, ALL.into()).await.unwrap().items.len(), 1);
}

pub(crate) async fn ten_of_forty_guests_racing_for_ten_places_are_registered(test: &impl TestStore) {
    let client = client_with(test, 100).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    let ids = join_all((0..40).map(|_| open_guest_scan(test, &event))).await;
    // Each guest's answer arrives twice.
    let answers =
        ids.iter().flat_map(|id| [*id, *id]).map(|id| test.store().complete_transaction(build_completion(id, 1)));
    let (mut places_taken, mut full, mut webhooks) = (0, 0, 0);
    for outcome in join_all(answers).await {
        let CompleteOutcome::Completed { record, queued, repeated } = outcome.unwrap() else {
            panic!("all answers are in time")
        };
        assert_eq!(record.passed, record.refused.is_none());
        webhooks += u32::from(queued.is_some());
        places_taken += u32::from(!repeated && record.passed);
        full += u32::from(!repeated && record.refused == Some(EventRefusal::Full));
    }
    assert_eq!((places_taken, full, webhooks), (10, 30, 10));
    assert_eq!(test.store().first_due_deliveries(100).await.unwrap().len(), 10);
    assert_eq!(load_counts(test, &event).await, EventCounts { registrations: 10, scans: 40, ..EventCounts::default() });
    assert_eq!(audited_balance(test, &client).await, 60);

    let open = || test.store().open_transaction(build_guest_scan(test, &event));
    assert_eq!(open().await, Ok(OpenOutcome::EventRefused(EventRefusal::Full)));
    patch_event(test, &event, EventPatch { max_guests: Some(max_guests(12)), ..EventPatch::default() }).await;
    register_guest(test, &event).await;
    patch_event(test, &event, EventPatch { is_active: Some(false), ..EventPatch::default() }).await;
    assert_eq!(open().await, Ok(OpenOutcome::EventRefused(EventRefusal::Disabled)));
    assert_eq!(load_counts(test, &event).await.registrations, 11);
}

pub(crate) async fn a_credential_used_elsewhere_takes_no_place(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let event = store_event(test, build_event(test, &client, 5)).await;
    let presenting = |id| CompleteTransaction {
        credential: Some(PresentedCredential { digest: CredentialIdentity([9; 32]), holder_bound: false }),
        ..build_completion(id, 1)
    };
    let (first, second) = (open_guest_scan(test, &event).await, open_guest_scan(test, &event).await);
    test.store().complete_transaction(presenting(first)).await.unwrap();
    assert_eq!(test.store().complete_transaction(presenting(second)).await, Ok(CompleteOutcome::CredentialReplayed));
    assert_eq!(load_counts(test, &event).await.registrations, 1);
}

pub(crate) async fn pending_scans_are_limited_and_end_with_their_windows(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    let open_scan = |most| {
        let open = OpenTransaction { pending_max: Some(most), ..build_guest_scan(test, &event) };
        async move { (open.pending.id, test.store().open_transaction(open).await.unwrap()) }
    };
    let opened = join_all((0..8).map(|_| open_scan(3))).await;
    let (waiting, refused): (Vec<_>, Vec<_>) =
        opened.into_iter().partition(|(_, outcome)| matches!(outcome, OpenOutcome::Opened { .. }));
    assert_eq!(waiting.len(), 3);
    assert!(refused.iter().all(|(_, outcome)| *outcome == OpenOutcome::ScansPending), "{refused:?}");
    assert_eq!(test.store().balance(client.clone()).await, Ok(Some(17)), "a refused scan costs nothing");
    test.store().complete_transaction(build_completion(waiting[0].0, 1)).await.unwrap();
    assert!(matches!(open_scan(3).await.1, OpenOutcome::Opened { .. }), "a completed scan is no longer pending");
    assert_eq!(open_scan(3).await.1, OpenOutcome::ScansPending);
    test.advance(WINDOW);
    assert!(matches!(open_scan(1).await.1, OpenOutcome::Opened { .. }), "the windows of the other scans have passed");
    assert_eq!(
        load_counts(test, &event).await,
        EventCounts { registrations: 1, scans: 5, abandoned: 3, pending: 1, ..EventCounts::default() }
    );
}

pub(crate) async fn concurrent_scans_spend_at_most_the_budget(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let mut limited = build_event(test, &client, 10);
    limited.terms.credit_budget = CreditBudget::new(3).ok();
    let event = store_event(test, limited).await;
    let open_scan = || async { test.store().open_transaction(build_guest_scan(test, &event)).await.unwrap() };
    let outcomes = join_all((0..8).map(|_| open_scan())).await;
    let opened = outcomes.iter().filter(|outcome| matches!(outcome, OpenOutcome::Opened { .. })).count();
    let refused = outcomes.iter().filter(|outcome| **outcome == OpenOutcome::BudgetSpent).count();
    assert_eq!((opened, refused, test.store().balance(client.clone()).await), (3, 5, Ok(Some(17))));
    let raised = EventPatch { credit_budget: Some(CreditBudget::new(4).ok()), ..EventPatch::default() };
    test.store().patch_event(event.id, event.app.clone(), raised).await.unwrap();
    assert!(matches!(open_scan().await, OpenOutcome::Opened { .. }));
    assert_eq!(open_scan().await, OpenOutcome::BudgetSpent);
    let unlimited = EventPatch { credit_budget: Some(None), ..EventPatch::default() };
    test.store().patch_event(event.id, event.app.clone(), unlimited).await.unwrap();
    assert!(matches!(open_scan().await, OpenOutcome::Opened { .. }));
}

pub(crate) async fn registrations_are_listed_in_order_and_pages_are_stable(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let (event, other) = (
        store_event(test, build_event(test, &client, 10)).await,
        store_event(test, build_event(test, &client, 10)).await,
    );
    let ids = join_all((0..7).map(|_| open_guest_scan(test, &event))).await;
    let page = |page| test.store().list_registrations(event.id, PageRequest { page, page_size: 2 }.into());
    let mut first_page = None;
    // The guests are registered in the reverse order of their scans.
    for id in ids.iter().rev() {
        test.store().complete_transaction(build_completion(*id, 1)).await.unwrap();
        register_guest(test, &other).await;
        let first = page(1).await.unwrap().items;
        if first.len() == 2 {
            assert_eq!(*first_page.get_or_insert(first.clone()), first);
        }
    }
    let mut listed = Vec::new();
    for number in 1..=5 {
        let Page { items, total } = page(number).await.unwrap();
        assert_eq!(total, 7);
        listed.extend(items.into_iter().map(|registration| registration.guest.txn));
    }
    assert!(listed.iter().eq(ids.iter().rev()), "{listed:?}");
    // A page stops at the byte limit, but has at least one row.
    let rows = |offset, max_bytes| test.store().list_registrations(event.id, Rows { offset, limit: 6, max_bytes });
    let size = rows(0, 1).await.unwrap().items[0].outcome.to_bytes().len();
    for (offset, bytes, expected) in
        [(0, 0, 1), (0, 1, 1), (0, size * 3 / 2, 2), (5, 3 * size, 2), (0, usize::MAX, 6), (7, 1, 0)]
    {
        let Page { items, total } = rows(offset, bytes).await.unwrap();
        let expected_ids = ids.iter().rev().skip(usize::try_from(offset).unwrap()).take(items.len());
        assert!(
            items.len() == expected && total == 7 && items.iter().map(|row| &row.guest.txn).eq(expected_ids),
            "{offset} {bytes}: {}",
            items.len()
        );
    }
    let empty = test.store().list_registrations(EventId::generate(client.partition(), 3), ALL.into()).await;
    assert_eq!(empty, Ok(Page { items: vec![], total: 0 }));
}
