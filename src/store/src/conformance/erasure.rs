//! Erasure: what it removes, what stays, and that it can be repeated.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::delivery::Subject;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::transaction::Outcome;

use super::TestStore;
use super::fixture::{
    RESULT_TTL, audited_balance, build_completion, build_event, build_guest_scan, build_idempotent_answer,
    build_opening, client_with, idempotency_scope, load_counts, open_and_complete, open_guest_scan, register_guest,
    store_event,
};
use super::flow_fixture::{self, ShortReport, accept_report, create_client_app, load_flow, locker_flow, open_flow};
use super::guests::ALL;
use super::refusals::build_refused_request;
use crate::vault::test_vault;
use crate::{CompleteOutcome, Erased, OpenOutcome, OpenTransaction};

/// Erases a subject twice; the second time must find nothing.
async fn erase(test: &impl TestStore, subject: &ErasureSubject) -> Erased {
    let erased = test.store().erase(subject.clone()).await.unwrap();
    assert_eq!(test.store().erase(subject.clone()).await, Ok(Erased::default()), "a repetition erases nothing");
    erased
}

pub(crate) async fn erasing_a_transaction_removes_its_webhook_and_response_but_no_ledger_entry(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let (other, _) = open_and_complete(test, &client).await;
    let open = OpenTransaction {
        idempotency: Some(build_idempotent_answer(test, &client, 1, 1)),
        ..build_opening(test, &client)
    };
    let id = open.pending.id;
    test.store().open_transaction(open).await.unwrap();
    test.store().complete_transaction(build_completion(id, 2)).await.unwrap();
    let queued = test.store().first_due_deliveries(10).await.unwrap();
    let delivery = queued.iter().find(|queued| queued.subject == Subject::Transaction(id)).unwrap().id;
    let statement = test.store().statement(client.clone(), ALL).await.unwrap();

    let erased = erase(test, &ErasureSubject::Transaction(id)).await;
    assert_eq!(erased, Erased { transactions: 1, answers: 1, ..Erased::default() });
    assert_eq!(test.store().load_transaction(id).await, Ok(None));
    assert_eq!(test.store().load_delivery(Subject::Transaction(id)).await, Ok(None));
    assert_eq!(test.store().claim_delivery(delivery, Subject::Transaction(id)).await, Ok(false));
    assert_eq!(test.store().load_idempotent_answer(idempotency_scope(&client, 1)).await, Ok(None));
    let remaining = test.store().first_due_deliveries(10).await.unwrap();
    assert_eq!(remaining.iter().map(|queued| queued.subject).collect::<Vec<_>>(), [Subject::Transaction(other.id)]);
    assert_eq!(test.store().backlog().await.unwrap().deliveries, 1);
    assert_eq!(audited_balance(test, &client).await, 3);
    assert_eq!(test.store().statement(client, ALL).await, Ok(statement));
}

pub(crate) async fn an_erased_pending_transaction_cannot_be_completed(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let event = store_event(test, build_event(test, &client, 5)).await;
    let (guest, remaining) = (open_guest_scan(test, &event).await, open_guest_scan(test, &event).await);
    let erased = erase(test, &ErasureSubject::Transaction(guest)).await;
    assert_eq!(erased, Erased { transactions: 1, ..Erased::default() });
    assert_eq!(test.store().complete_transaction(build_completion(guest, 1)).await, Ok(CompleteOutcome::NotFound));
    let counts_after = load_counts(test, &event).await;
    assert_eq!(
        (counts_after.registrations, counts_after.scans, counts_after.abandoned),
        (0, 2, 1),
        "the erased scan counts as abandoned"
    );
    test.store().complete_transaction(build_completion(remaining, 1)).await.unwrap();
    assert_eq!(load_counts(test, &event).await.registrations, 1);
}

pub(crate) async fn an_erased_guest_keeps_only_the_place(test: &impl TestStore) {
    let client = client_with(test, 9).await;
    let mut event = build_event(test, &client, 9);
    event.terms.webhook_url = None;
    let event = store_event(test, event).await;
    let mut guests = Vec::new();
    for _ in 0..3 {
        guests.push(register_guest(test, &event).await);
    }
    let before = test.store().list_registrations(event.id, ALL.into()).await.unwrap().items;
    let erased = erase(test, &ErasureSubject::Transaction(guests[1])).await;
    assert_eq!(erased, Erased { transactions: 1, registrations: 1, ..Erased::default() });
    // The transactions of the other guests expire long before the event.
    test.advance(RESULT_TTL + Duration::from_secs(1));
    while test.store().sweep(test.now(), 100).await.unwrap().transactions > 0 {}
    let erased = erase(test, &ErasureSubject::Transaction(guests[2])).await;
    assert_eq!(erased, Erased { registrations: 1, ..Erased::default() });
    let after = test.store().list_registrations(event.id, ALL.into()).await.unwrap();
    assert_eq!((after.total, after.items.len()), (3, 3));
    assert_eq!(after.items[0], before[0]);
    for (now, then) in after.items.iter().zip(&before).skip(1) {
        assert_eq!((now.guest.txn, now.guest.verified_at), (then.guest.txn, then.guest.verified_at));
        let outcome =
            serde_json::from_slice(&test_vault(&[7]).open(now.guest.txn.as_bytes(), &now.outcome).unwrap()).unwrap();
        assert_eq!(Outcome::Verified(Arc::default()), outcome);
    }
    assert_eq!(load_counts(test, &event).await.registrations, 3);
    assert_eq!(
        erase(test, &ErasureSubject::Transaction(TxnId::generate(client.partition(), 1))).await,
        Erased::default()
    );
}

pub(crate) async fn erasing_an_event_erases_its_guests_and_their_transactions(test: &impl TestStore) {
    let client = client_with(test, 50).await;
    let (erased_event, other_event) = (
        store_event(test, build_event(test, &client, 30)).await,
        store_event(test, build_event(test, &client, 5)).await,
    );
    for _ in 0..20 {
        register_guest(test, &erased_event).await;
    }
    let (pending, other) = (open_guest_scan(test, &erased_event).await, register_guest(test, &other_event).await);
    let erased = erase(test, &ErasureSubject::Event(erased_event.id)).await;
    assert_eq!(erased, Erased { transactions: 21, registrations: 20, events: 1, ..Erased::default() });
    assert_eq!(test.store().load_event(erased_event.id).await, Ok(None));
    assert_eq!(test.store().list_events(erased_event.app.clone(), ALL).await.unwrap().total, 0);
    assert_eq!(test.store().list_registrations(erased_event.id, ALL.into()).await.unwrap().total, 0);
    assert_eq!(test.store().complete_transaction(build_completion(pending, 1)).await, Ok(CompleteOutcome::NotFound));
    assert_eq!(
        test.store().open_transaction(build_guest_scan(test, &erased_event)).await,
        Ok(OpenOutcome::EventNotFound)
    );
    assert!(test.store().load_transaction(other).await.unwrap().is_some());
    assert_eq!(load_counts(test, &other_event).await.registrations, 1);
    assert_eq!(audited_balance(test, &client).await, 28);
}

/// Creates a completed and a pending transaction, an event with a guest, and a refused request of an app.
async fn use_app(test: &impl TestStore, client: &ClientId, app: &AppId) -> [TxnId; 3] {
    let open_for_app = || {
        let mut open = build_opening(test, client);
        Arc::make_mut(&mut open.pending).app = app.clone();
        open
    };
    let (completed, pending) = (open_for_app(), open_for_app());
    let ids = [completed.pending.id, pending.pending.id];
    for open in [completed, pending] {
        test.store().open_transaction(open).await.unwrap();
    }
    test.store().complete_transaction(build_completion(ids[0], 1)).await.unwrap();
    let mut event = build_event(test, client, 5);
    event.app = app.clone();
    let guest = register_guest(test, &store_event(test, event).await).await;
    test.store().keep_refusal(app.clone(), build_refused_request(test, 1)).await.unwrap();
    [ids[0], ids[1], guest]
}

pub(crate) async fn erasing_an_app_does_not_affect_other_apps(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    flow_fixture::register_webhooks(test, &client_app).await;
    let client = client_with(test, 20).await;
    let (app, other) = (AppId::generate(), AppId::generate());
    for id in [&app, &other] {
        let mut record = super::fixture::build_app(test, &client);
        record.app_id = id.clone();
        test.store().create_app(record).await.unwrap();
    }
    let (erased_ids, other_ids) = (use_app(test, &client, &app).await, use_app(test, &client, &other).await);
    let erased = erase(test, &ErasureSubject::App(app.clone())).await;
    assert_eq!(erased, Erased { transactions: 3, registrations: 1, events: 1, refusals: 1, ..Erased::default() });
    for id in erased_ids {
        assert_eq!(test.store().load_transaction(id).await, Ok(None));
    }
    for id in other_ids {
        assert!(test.store().load_transaction(id).await.unwrap().is_some());
    }
    assert_eq!(test.store().refusals(app.clone()).await, Ok(vec![]));
    assert_eq!(test.store().refusals(other.clone()).await.unwrap().len(), 1);
    assert_eq!(test.store().list_events(other, ALL).await.unwrap().total, 1);
    assert!(test.store().load_app(app).await.unwrap().is_some(), "the app itself stays");
    assert_eq!(audited_balance(test, &client).await, 14);

    let flow = open_flow(test, locker_flow(test, &client_app)).await;
    assert_eq!(erase(test, &ErasureSubject::Flow(flow.id)).await, Erased { flows: 1, ..Erased::default() });
    assert_eq!(load_flow(test, &flow).await, None);
    let flow = open_flow(test, locker_flow(test, &client_app)).await;
    let queued = accept_report(test, &flow, ShortReport::Locker { status: "Fetched", content: 1 }).await.unwrap();
    assert_eq!(erase(test, &ErasureSubject::App(client_app.app)).await, Erased { flows: 1, ..Erased::default() });
    assert_eq!(load_flow(test, &flow).await, None);
    assert_eq!(test.store().claim_delivery(queued.id, queued.subject).await, Ok(false));
    let Subject::Flow { flow, webhook } = queued.subject else { panic!("{queued:?}") };
    assert_eq!(test.store().load_webhook(flow, webhook).await, Ok(None));
}

pub(crate) async fn erasing_a_client_erases_the_data_of_all_its_apps(test: &impl TestStore) {
    let (client, other) = (client_with(test, 20).await, client_with(test, 20).await);
    let mut apps = Vec::new();
    for owner in [&client, &client, &other] {
        let app = super::fixture::build_app(test, owner);
        test.store().create_app(app.clone()).await.unwrap();
        use_app(test, owner, &app.app_id).await;
        apps.push(app.app_id);
    }
    let erased = erase(test, &ErasureSubject::Client(client.clone())).await;
    assert_eq!(erased, Erased { transactions: 6, registrations: 2, events: 2, refusals: 2, ..Erased::default() });
    assert_eq!(test.store().list_events(apps[2].clone(), ALL).await.unwrap().total, 1);
    assert_eq!(test.store().list_apps(client.clone()).await.unwrap().len(), 2, "the apps themselves stay");
    assert_eq!((audited_balance(test, &client).await, audited_balance(test, &other).await), (14, 17));
}

pub(crate) async fn erasing_an_owner_erases_reports_that_outlive_their_flows(test: &impl TestStore) {
    for erases_client in [false, true] {
        let client_app = create_client_app(test).await;
        flow_fixture::register_webhooks(test, &client_app).await;
        let flow = open_flow(test, locker_flow(test, &client_app)).await;
        let queued = accept_report(test, &flow, ShortReport::Locker { status: "Fetched", content: 1 }).await.unwrap();
        test.advance(RESULT_TTL * 3);
        assert_eq!(load_flow(test, &flow).await, None);
        let owner =
            if erases_client { ErasureSubject::Client(client_app.client) } else { ErasureSubject::App(client_app.app) };
        assert_eq!(erase(test, &owner).await, Erased { flows: 1, ..Erased::default() });
        assert_eq!(test.store().load_delivery(queued.subject).await, Ok(None));
        assert_eq!(test.store().claim_delivery(queued.id, queued.subject).await, Ok(false));
        assert_eq!(test.store().backlog().await.unwrap().deliveries, 0);
    }
}
