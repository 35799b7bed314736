//! Sweeps: which records they remove, and how many.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::delivery::Attempt;
use sakshi_domain::event::EventPatch;
use sakshi_domain::transaction::CredentialIdentity;

use super::test_store;
use crate::conformance::fixture::{
    EVENT_DURATION, REPLAY_WINDOW, RESULT_TTL, RETENTION, WINDOW, audited_balance, build_completion, build_event,
    build_guest_scan, build_idempotent_answer, build_opening, client_with, idempotency_scope, open_and_complete,
    open_pending, patch_event, receiver, register_guest, store_event,
};
use crate::conformance::flow_fixture::{self, ShortReport, accept_report, create_client_app, locker_flow};
use crate::conformance::guests::ALL;
use crate::conformance::upkeep::{check_abandoned_scan_counts, complete_without_webhook};
use crate::conformance::{TestStore, run};
use crate::{CompleteOutcome, CompleteTransaction, OpenOutcome, Page, PatchEventOutcome, PresentedCredential, Swept};

#[test]
fn a_result_is_swept_once_after_its_expiry() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 1).await;
        let id = complete_without_webhook(test, &client).await;
        test.advance(RESULT_TTL - Duration::from_millis(1));
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept::default()));
        assert!(test.store().load_transaction(id).await.unwrap().is_some());
        test.advance(Duration::from_millis(1));
        assert_eq!(test.store().load_transaction(id).await, Ok(None), "an expired record is hidden before it is swept");
        assert_eq!(test.store().complete_transaction(build_completion(id, 1)).await, Ok(CompleteOutcome::NotFound));
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept::default()));
    });
}

#[test]
fn a_sweep_removes_only_records_that_have_expired_at_the_given_time() {
    run(async {
        let test = &test_store();
        let (client, created) = (client_with(test, 1).await, test.now());
        let id = complete_without_webhook(test, &client).await;
        test.advance(RESULT_TTL);
        let just_before = test.now() - Duration::from_millis(1);
        assert_eq!(test.store().last_sweep().await, Ok(Some(created)));
        assert_eq!(test.store().sweep(just_before, 10).await, Ok(Swept::default()));
        test.store().check().await.unwrap();
        assert_eq!(test.store().last_sweep().await, Ok(Some(just_before)), "a health check is no sweep");
        let far_ahead = test.now() + RESULT_TTL;
        assert_eq!(test.store().sweep(far_ahead, 10).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        assert_eq!(test.store().last_sweep().await, Ok(Some(test.now())), "limited by the store's clock");
        assert_eq!(test.store().load_transaction(id).await, Ok(None));
    });
}

#[test]
fn an_expired_transaction_is_swept_once_after_the_grace_period() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 1).await;
        let id = open_pending(test, &client).await.id;
        test.advance(WINDOW + RETENTION.expired - Duration::from_millis(1));
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept::default()));
        assert!(test.store().load_transaction(id).await.unwrap().is_some());
        test.advance(Duration::from_millis(1));
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        assert_eq!(test.store().load_transaction(id).await, Ok(None));
    });
}

#[test]
fn a_transaction_is_swept_only_after_its_delivery_has_ended() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 2).await;
        let (queued, queued_id) = open_and_complete(test, &client).await;
        let (claimed, claimed_id) = open_and_complete(test, &client).await;
        assert!(test.store().claim_delivery(claimed_id, claimed.id.into()).await.unwrap());
        test.advance(RESULT_TTL * 10);
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept::default()));
        assert!(test.store().load_delivery(claimed.id.into()).await.unwrap().is_some());
        let attempt = Attempt::from_status(200, 1);
        test.store().settle_delivery(claimed_id, claimed.id.into(), attempt).await.unwrap();
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        assert_eq!(test.store().load_delivery(claimed.id.into()).await, Ok(None));
        let due = test.store().first_due_deliveries(10).await.unwrap();
        assert_eq!(due.iter().map(|due| (due.id, due.subject)).collect::<Vec<_>>(), [(queued_id, queued.id.into())]);
        assert_eq!(Some(receiver(test.store(), &due[0]).await), queued.terms.webhook_url);
    });
}

#[test]
fn a_sweep_removes_records_up_to_its_limit() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 10).await;
        for _ in 0..4 {
            complete_without_webhook(test, &client).await;
            open_pending(test, &client).await;
        }
        test.advance(RESULT_TTL);
        let mut rounds = Vec::new();
        for _ in 0..4 {
            rounds.push(test.store().sweep(test.now(), 3).await.unwrap().transactions);
        }
        assert_eq!(rounds, [3, 3, 2, 0]);
    });
}

#[test]
fn idempotency_records_and_credentials_are_swept_after_their_expiry() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 1).await;
        let mut open = build_opening(test, &client);
        Arc::make_mut(&mut open.pending).terms.webhook_url = None;
        open.idempotency = Some(build_idempotent_answer(test, &client, 1, 1));
        let id = open.pending.id;
        test.store().open_transaction(open).await.unwrap();
        let complete = CompleteTransaction {
            credential: Some(PresentedCredential { digest: CredentialIdentity([4; 32]), holder_bound: false }),
            ..build_completion(id, 1)
        };
        test.store().complete_transaction(complete).await.unwrap();
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept::default()));
        test.advance(REPLAY_WINDOW);
        assert_eq!(test.store().sweep(test.now(), 10).await, Ok(Swept { credentials: 1, ..Swept::default() }));
        assert!(test.store().load_idempotent_answer(idempotency_scope(&client, 1)).await.unwrap().is_some());
        test.advance(RESULT_TTL - REPLAY_WINDOW);
        assert_eq!(
            test.store().sweep(test.now(), 10).await,
            Ok(Swept { transactions: 1, idempotency: 1, ..Swept::default() })
        );
    });
}

#[test]
fn abandoned_scans_stay_counted_after_their_rows_are_swept() {
    run(async { assert_eq!(check_abandoned_scan_counts(&test_store()).await, [2, 3, 2]) });
}

#[test]
fn an_event_is_swept_with_its_registrations_but_not_its_deliveries() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 20).await;
        let event = store_event(test, build_event(test, &client, 10)).await;
        register_guest(test, &event).await;
        let quiet = patch_event(test, &event, EventPatch { webhook_url: Some(None), ..EventPatch::default() }).await;
        register_guest(test, &quiet).await;
        test.advance(RESULT_TTL);
        assert_eq!(test.store().sweep(test.now(), 100).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        let listed = test.store().list_registrations(event.id, ALL.into()).await.unwrap();
        assert_eq!((listed.items.len(), listed.total), (2, 2), "registrations outlive their transactions");
        test.advance(EVENT_DURATION + RETENTION.events - RESULT_TTL - Duration::from_millis(1));
        assert_eq!(
            test.store().sweep(test.now(), 100).await,
            Ok(Swept::default()),
            "the time of the event has not passed"
        );
        test.advance(Duration::from_millis(1));
        assert_eq!(test.store().sweep(test.now(), 100).await, Ok(Swept { events: 7, ..Swept::default() }));
        let due = test.store().first_due_deliveries(10).await.unwrap().remove(0);
        assert_eq!(
            Some(receiver(test.store(), &due).await),
            event.terms.webhook_url,
            "an unfinished delivery outlives its event"
        );
        assert!(test.store().claim_delivery(due.id, due.subject).await.unwrap());
        let attempt = Attempt::from_status(200, 1);
        test.store().settle_delivery(due.id, due.subject, attempt).await.unwrap();
        assert_eq!(test.store().sweep(test.now(), 100).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        assert_eq!(test.store().load_event(event.id).await, Ok(None));
        assert_eq!(test.store().list_registrations(event.id, ALL.into()).await, Ok(Page { items: vec![], total: 0 }));
        assert_eq!(test.store().list_events(event.app.clone(), ALL).await, Ok(Page { items: vec![], total: 0 }));
        assert_eq!(test.store().open_transaction(build_guest_scan(test, &event)).await, Ok(OpenOutcome::EventNotFound));
        assert_eq!(audited_balance(test, &client).await, 18);
    });
}

#[test]
fn a_sweep_removes_a_bounded_number_of_registrations() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 20).await;
        let mut old = build_event(test, &client, 10);
        old.terms.webhook_url = None;
        let old = store_event(test, old).await;
        for _ in 0..7 {
            register_guest(test, &old).await;
        }
        for _ in 0..2 {
            store_event(test, build_event(test, &client, 10)).await;
        }
        let mut longer = build_event(test, &client, 10);
        longer.terms.expires_at = old.terms.expires_at + Duration::from_millis(1);
        let longer = store_event(test, longer).await;
        test.advance(EVENT_DURATION + RETENTION.events - Duration::from_millis(1));
        assert_eq!(test.store().sweep(test.now(), 100).await.unwrap().events, 0);
        test.advance(Duration::from_millis(1));
        assert_eq!(
            test.store().sweep(test.now(), 3).await.unwrap().events,
            9,
            "three guests, their claims and their traits"
        );
        assert_eq!(test.store().load_event(old.id).await, Ok(None), "a partly swept event is hidden");
        let patch = test.store().patch_event(old.id, old.app.clone(), EventPatch::default()).await;
        assert_eq!(patch, Ok(PatchEventOutcome::NotFound));
        let mut rounds = Vec::new();
        for _ in 0..4 {
            rounds.push(test.store().sweep(test.now(), 3).await.unwrap().events);
        }
        assert_eq!(rounds, [9, 6, 0, 0], "the remaining four guests, and three events");
        assert!(test.store().load_event(longer.id).await.unwrap().is_some());
    });
}

#[test]
fn a_sweep_removes_a_bounded_number_of_reports_and_flows() {
    run(async {
        let test = &test_store();
        let client_app = create_client_app(test).await;
        for _ in 0..4 {
            let flow = flow_fixture::open_flow(test, locker_flow(test, &client_app)).await;
            assert_eq!(
                accept_report(test, &flow, ShortReport::Locker { status: "Fetched", content: 1 }).await,
                None,
                "no URL is registered"
            );
        }
        test.advance(RESULT_TTL);
        let mut rounds = Vec::new();
        for _ in 0..3 {
            rounds.push(test.store().sweep(test.now(), 3).await.unwrap().flows);
        }
        assert_eq!(rounds, [9, 3, 0], "four flows, reports and webhook names, at most three of each at once");
    });
}
