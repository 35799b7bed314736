//! Guests of an event: admitted, registered, refused, counted.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::event::{CreditBudget, Event, EventCounts, EventPatch, EventRefusal};
use sakshi_domain::ids::{AppId, EventId, TxnId};
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity, Failure, Outcome};

use super::TestStore;
use super::fixture::{
    EVENT_DURATION, HOOK, WINDOW, audited_balance, client_with, completing, counts, created, declining, event, patched,
    places, receiver, registered, scan, scanned, sealed, url,
};
use crate::vault::test_vault;
use crate::{
    CompleteOutcome, CompleteTransaction, OpenOutcome, OpenTransaction, Page, PageRequest, PresentedCredential, Rows,
};
use crate::{CompletedRecord, Registration, TransactionRecord};

pub(crate) const ALL: PageRequest = PageRequest { page: 1, page_size: 1_000 };

pub(crate) async fn a_scan_costs_a_credit_and_takes_no_place(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let event = created(test, event(test, &client, 1)).await;
    let first = scan(test, &event);
    for _ in 0..3 {
        assert_eq!(test.store().open_transaction(first.clone()).await, Ok(OpenOutcome::Opened { balance: 4 }));
    }
    scanned(test, &event).await;
    let loaded = test.store().load_transaction(first.pending.id).await;
    assert_eq!(loaded, Ok(Some(TransactionRecord::Pending((*first.pending).clone()))));
    assert_eq!(
        counts(test, &event).await,
        EventCounts { registrations: 0, scans: 2, abandoned: 0, pending: 2, ..EventCounts::default() }
    );
    assert_eq!(audited_balance(test, &client).await, 3);
}

pub(crate) async fn a_scan_is_refused_as_not_found_then_disabled_then_expired_then_full_then_unpaid(
    test: &impl TestStore,
) {
    let client = client_with(test, 1).await;
    let event = created(test, event(test, &client, 1)).await;
    registered(test, &event).await;
    let asked = || test.store().open_transaction(scan(test, &event));
    let refused = |refusal| Ok(OpenOutcome::EventRefused(refusal));

    assert_eq!(asked().await, refused(EventRefusal::Full), "and not for the lack of credits");
    test.advance(EVENT_DURATION);
    assert_eq!(asked().await, refused(EventRefusal::Expired));
    patched(test, &event, EventPatch { is_active: Some(false), ..EventPatch::default() }).await;
    assert_eq!(asked().await, refused(EventRefusal::Disabled));

    let other = client_with(test, 1).await;
    let strangers: [fn(&mut OpenTransaction, &sakshi_domain::ids::ClientId); 3] = [
        |open, other| Arc::make_mut(&mut open.pending).event = Some(EventId::generate(other.partition(), 3)),
        |open, other| Arc::make_mut(&mut open.pending).client = other.clone(),
        |open, _| Arc::make_mut(&mut open.pending).app = AppId::generate(),
    ];
    for estrange in strangers {
        let mut open = scan(test, &event);
        estrange(&mut open, &other);
        assert_eq!(test.store().open_transaction(open).await, Ok(OpenOutcome::EventNotFound));
    }

    let end = Some(test.now() + EVENT_DURATION);
    let revived =
        EventPatch { is_active: Some(true), expires_at: end, max_guests: Some(places(2)), ..EventPatch::default() };
    patched(test, &event, revived).await;
    assert_eq!(asked().await, Ok(OpenOutcome::InsufficientCredits));
    assert_eq!(
        counts(test, &event).await,
        EventCounts { registrations: 1, scans: 1, ..EventCounts::default() },
        "what is refused leaves no trace"
    );
    assert_eq!(audited_balance(test, &client).await + audited_balance(test, &other).await, 1);
}

pub(crate) async fn a_guest_who_passes_is_registered_and_reported_to_the_url_of_the_moment(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let event = created(test, event(test, &client, 10)).await;
    let open = scan(test, &event);
    let (id, pending) = (open.pending.id, (*open.pending).clone());
    test.store().open_transaction(open).await.unwrap();
    let moved =
        |text: &str| patched(test, &event, EventPatch { webhook_url: Some(Some(url(text))), ..EventPatch::default() });
    moved("https://second.example/in").await;
    test.advance(Duration::from_secs(9));
    let outcome = test.store().complete_transaction(completing(id, 1)).await.unwrap();
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
    // It is sealed with a new nonce each time.
    let expected = CompletedRecord { address: record.address.clone(), ..expected };
    assert_eq!(record, expected);
    assert_eq!(
        (delivery.subject, receiver(test.store(), &delivery).await),
        (id.into(), url("https://second.example/in"))
    );
    moved("https://third.example/in").await;
    assert_eq!(test.store().due_deliveries(None, None, 10).await, Ok(vec![delivery.clone()]), "queued is frozen");
    assert_eq!(receiver(test.store(), &delivery).await, url("https://second.example/in"));
    let of_receiver = test.store().due_deliveries(None, Some(delivery.receiver.clone()), 10).await;
    assert_eq!(of_receiver, Ok(vec![delivery]));
    assert_eq!(test.store().load_transaction(id).await, Ok(Some(TransactionRecord::Completed(expected.clone()))));
    let listed = test.store().list_registrations(event.id, ALL.into()).await.unwrap();
    let [Registration { guest, outcome }] = &listed.items[..] else { panic!("{listed:?}") };
    assert_eq!((guest.number, guest.txn, guest.verified_at, outcome), (1, id, expected.verified_at, &expected.outcome));
    assert_eq!((&guest.check_in, guest.duplicate_of, listed.total), (&None, None, 1));
    match test.store().complete_transaction(completing(id, 1)).await.unwrap() {
        CompleteOutcome::Completed { record, queued: None, repeated: true } => assert_eq!(record, expected),
        other => panic!("{other:?}"),
    }
    assert_eq!(counts(test, &event).await, EventCounts { registrations: 1, scans: 1, ..EventCounts::default() });
}

async fn scanned_with_its_own_url(test: &impl TestStore, event: &Event) -> TxnId {
    let mut open = scan(test, event);
    Arc::make_mut(&mut open.pending).terms.webhook_url = Some(url(HOOK));
    let id = open.pending.id;
    test.store().open_transaction(open).await.unwrap();
    id
}

pub(crate) async fn a_guest_is_reported_to_its_own_url_first_and_without_any_to_none(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let event = created(test, event(test, &client, 10)).await;
    // As for any transaction, a failed verification also queues a webhook to its own URL.
    for answer in [completing, declining] {
        let id = scanned_with_its_own_url(test, &event).await;
        let outcome = test.store().complete_transaction(answer(id, 1)).await.unwrap();
        let CompleteOutcome::Completed { queued: Some(delivery), .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(receiver(test.store(), &delivery).await, url(HOOK));
    }
    patched(test, &event, EventPatch { webhook_url: Some(None), ..EventPatch::default() }).await;
    let silent = scanned(test, &event).await;
    let outcome = test.store().complete_transaction(completing(silent, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { queued: None, .. }));
    assert_eq!(test.store().due_deliveries(None, None, 10).await.unwrap().len(), 2);
    assert_eq!(counts(test, &event).await.registrations, 2);
}

pub(crate) async fn a_guest_who_does_not_pass_takes_no_place_and_is_not_reported(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let event = created(test, event(test, &client, 1)).await;
    let id = scanned(test, &event).await;
    for repeated in [false, true] {
        match test.store().complete_transaction(declining(id, 1)).await.unwrap() {
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
    assert_eq!(counts(test, &event).await, EventCounts { registrations: 0, scans: 1, ..EventCounts::default() });
    assert_eq!(test.store().list_registrations(event.id, ALL.into()).await, Ok(Page { items: vec![], total: 0 }));
    assert_eq!(test.store().due_deliveries(None, None, 10).await, Ok(vec![]));
}

async fn refused(test: &impl TestStore, id: TxnId, refusal: EventRefusal) {
    for repeated in [false, true] {
        match test.store().complete_transaction(completing(id, 1)).await.unwrap() {
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
    match test.store().complete_transaction(completing(id, 2)).await.unwrap() {
        CompleteOutcome::AlreadyCompleted(record) => assert_eq!(record.refused, Some(refusal)),
        other => panic!("{other:?}"),
    }
    assert_eq!(test.store().load_delivery(id.into()).await, Ok(None));
}

pub(crate) async fn a_guest_whose_answer_finds_no_place_ends_as_refused(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    let event = created(test, event(test, &client, 1)).await;
    test.advance(EVENT_DURATION - Duration::from_secs(60));
    let full = scanned_with_its_own_url(test, &event).await;
    let (disabled, both, expired) =
        (scanned(test, &event).await, scanned(test, &event).await, scanned(test, &event).await);
    registered(test, &event).await;
    refused(test, full, EventRefusal::Full).await;
    let active = |is_active| patched(test, &event, EventPatch { is_active: Some(is_active), ..EventPatch::default() });
    active(false).await;
    refused(test, disabled, EventRefusal::Disabled).await;
    test.advance(Duration::from_secs(60));
    refused(test, both, EventRefusal::Disabled).await;
    active(true).await;
    refused(test, expired, EventRefusal::Expired).await;
    assert_eq!(counts(test, &event).await, EventCounts { registrations: 1, scans: 5, ..EventCounts::default() });
    assert_eq!(test.store().list_registrations(event.id, ALL.into()).await.unwrap().items.len(), 1);
}

pub(crate) async fn forty_guests_racing_for_ten_places_are_ten_registered_and_thirty_refused(test: &impl TestStore) {
    let client = client_with(test, 100).await;
    let event = created(test, event(test, &client, 10)).await;
    let ids = join_all((0..40).map(|_| scanned(test, &event))).await;
    // Each guest's answer is delivered twice.
    let answers = ids.iter().flat_map(|id| [*id, *id]).map(|id| test.store().complete_transaction(completing(id, 1)));
    let (mut places_taken, mut full, mut webhooks) = (0, 0, 0);
    for outcome in join_all(answers).await {
        let CompleteOutcome::Completed { record, queued, repeated } = outcome.unwrap() else {
            panic!("all were in time")
        };
        assert_eq!(record.passed, record.refused.is_none());
        webhooks += u32::from(queued.is_some());
        places_taken += u32::from(!repeated && record.passed);
        full += u32::from(!repeated && record.refused == Some(EventRefusal::Full));
    }
    assert_eq!((places_taken, full, webhooks), (10, 30, 10));
    assert_eq!(test.store().due_deliveries(None, None, 100).await.unwrap().len(), 10);
    assert_eq!(counts(test, &event).await, EventCounts { registrations: 10, scans: 40, ..EventCounts::default() });
    assert_eq!(audited_balance(test, &client).await, 60);

    let asked = || test.store().open_transaction(scan(test, &event));
    assert_eq!(asked().await, Ok(OpenOutcome::EventRefused(EventRefusal::Full)));
    patched(test, &event, EventPatch { max_guests: Some(places(12)), ..EventPatch::default() }).await;
    registered(test, &event).await;
    patched(test, &event, EventPatch { is_active: Some(false), ..EventPatch::default() }).await;
    assert_eq!(asked().await, Ok(OpenOutcome::EventRefused(EventRefusal::Disabled)));
    assert_eq!(counts(test, &event).await.registrations, 11);
}

pub(crate) async fn a_credential_used_elsewhere_takes_no_place(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let event = created(test, event(test, &client, 5)).await;
    let presenting = |id| CompleteTransaction {
        credential: Some(PresentedCredential { digest: CredentialIdentity([9; 32]), holder_bound: false }),
        ..completing(id, 1)
    };
    let (first, second) = (scanned(test, &event).await, scanned(test, &event).await);
    test.store().complete_transaction(presenting(first)).await.unwrap();
    assert_eq!(test.store().complete_transaction(presenting(second)).await, Ok(CompleteOutcome::CredentialReplayed));
    assert_eq!(counts(test, &event).await.registrations, 1);
}

pub(crate) async fn no_more_scans_wait_than_may_and_those_whose_window_has_passed_wait_no_more(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let event = created(test, event(test, &client, 10)).await;
    let scan_of = |most| {
        let open = OpenTransaction { pending_max: Some(most), ..scan(test, &event) };
        async move { (open.pending.id, test.store().open_transaction(open).await.unwrap()) }
    };
    let opened = join_all((0..8).map(|_| scan_of(3))).await;
    let (waiting, refused): (Vec<_>, Vec<_>) =
        opened.into_iter().partition(|(_, outcome)| matches!(outcome, OpenOutcome::Opened { .. }));
    assert_eq!(waiting.len(), 3);
    assert!(refused.iter().all(|(_, outcome)| *outcome == OpenOutcome::ScansPending), "{refused:?}");
    assert_eq!(test.store().balance(client.clone()).await, Ok(Some(17)), "a refused scan costs nothing");
    test.store().complete_transaction(completing(waiting[0].0, 1)).await.unwrap();
    assert!(matches!(scan_of(3).await.1, OpenOutcome::Opened { .. }), "one has ended");
    assert_eq!(scan_of(3).await.1, OpenOutcome::ScansPending);
    test.advance(WINDOW);
    assert!(matches!(scan_of(1).await.1, OpenOutcome::Opened { .. }), "the windows of the others have passed");
    assert_eq!(
        counts(test, &event).await,
        EventCounts { registrations: 1, scans: 5, abandoned: 3, pending: 1, ..EventCounts::default() }
    );
}

pub(crate) async fn guests_spend_no_more_than_the_budget_however_many_scan_at_once(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let mut limited = event(test, &client, 10);
    limited.terms.credit_budget = CreditBudget::new(3).ok();
    let event = created(test, limited).await;
    let scan_of = || async { test.store().open_transaction(scan(test, &event)).await.unwrap() };
    let outcomes = join_all((0..8).map(|_| scan_of())).await;
    let opened = outcomes.iter().filter(|outcome| matches!(outcome, OpenOutcome::Opened { .. })).count();
    let refused = outcomes.iter().filter(|outcome| **outcome == OpenOutcome::BudgetSpent).count();
    assert_eq!((opened, refused, test.store().balance(client.clone()).await), (3, 5, Ok(Some(17))));
    let raised = EventPatch { credit_budget: Some(CreditBudget::new(4).ok()), ..EventPatch::default() };
    test.store().patch_event(event.id, event.app.clone(), raised).await.unwrap();
    assert!(matches!(scan_of().await, OpenOutcome::Opened { .. }));
    assert_eq!(scan_of().await, OpenOutcome::BudgetSpent);
    let unlimited = EventPatch { credit_budget: Some(None), ..EventPatch::default() };
    test.store().patch_event(event.id, event.app.clone(), unlimited).await.unwrap();
    assert!(matches!(scan_of().await, OpenOutcome::Opened { .. }));
}

pub(crate) async fn registrations_are_listed_in_order_and_pages_are_stable(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let (event, other) = (created(test, event(test, &client, 10)).await, created(test, event(test, &client, 10)).await);
    let ids = join_all((0..7).map(|_| scanned(test, &event))).await;
    let page = |page| test.store().list_registrations(event.id, PageRequest { page, page_size: 2 }.into());
    let mut first_page = None;
    // They are registered in another order than they came in.
    for id in ids.iter().rev() {
        test.store().complete_transaction(completing(*id, 1)).await.unwrap();
        registered(test, &other).await;
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
    // Rows stop at the byte limit, but at least one is returned.
    let some = |offset, max_bytes| test.store().list_registrations(event.id, Rows { offset, limit: 6, max_bytes });
    let size = some(0, 1).await.unwrap().items[0].outcome.to_bytes().len();
    for (after, bytes, expected) in
        [(0, 0, 1), (0, 1, 1), (0, size * 3 / 2, 2), (5, 3 * size, 2), (0, usize::MAX, 6), (7, 1, 0)]
    {
        let Page { items, total } = some(after, bytes).await.unwrap();
        let there = ids.iter().rev().skip(usize::try_from(after).unwrap()).take(items.len());
        assert!(
            items.len() == expected && total == 7 && items.iter().map(|one| &one.guest.txn).eq(there),
            "{after} {bytes}: {}",
            items.len()
        );
    }
    let nobody = test.store().list_registrations(EventId::generate(client.partition(), 3), ALL.into()).await;
    assert_eq!(nobody, Ok(Page { items: vec![], total: 0 }));
}
