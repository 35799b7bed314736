//! What a sweep removes, how much at a time, and what it leaves.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::event::{EventCounts, EventPatch};
use sakshi_domain::transaction::CredentialIdentity;

use super::universe;
use crate::conformance::fixture::{
    EVENT, REPLAY_WINDOW, RESULT_TTL, RETENTION, WINDOW, audited_balance, client_with, completed, completing, counts, created, declining,
    event, kept, opened, opening, opening_with_hook, patched, registered, scan, scanned, scope,
};
use crate::conformance::guests::ALL;
use crate::conformance::{World, run};
use crate::{CompleteOutcome, CompleteTransaction, OpenOutcome, Page, PatchEventOutcome, PresentedCredential, Swept};

async fn completed_without_hook(world: &impl World, client: &sakshi_domain::ids::ClientId) -> sakshi_domain::ids::TxnId {
    let open = opening_with_hook(world, client, None);
    let id = open.pending.id;
    world.store().open_transaction(open).await.unwrap();
    world.store().complete_transaction(completing(id, 1)).await.unwrap();
    id
}

#[test]
fn a_result_is_swept_once_after_its_time() {
    run(async {
        let world = &universe();
        let client = client_with(world, 1).await;
        let id = completed_without_hook(world, &client).await;
        world.advance(RESULT_TTL - Duration::from_millis(1));
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept::default()));
        assert!(world.store().load_transaction(id).await.unwrap().is_some());
        world.advance(Duration::from_millis(1));
        assert_eq!(world.store().load_transaction(id).await, Ok(None), "it is gone for readers before it is swept");
        assert_eq!(world.store().complete_transaction(completing(id, 1)).await, Ok(CompleteOutcome::NotFound));
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept::default()));
    });
}

#[test]
fn an_expired_transaction_is_swept_once_after_the_grace() {
    run(async {
        let world = &universe();
        let client = client_with(world, 1).await;
        let id = opened(world, &client).await.id;
        world.advance(WINDOW + RETENTION.expired - Duration::from_millis(1));
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept::default()));
        assert!(world.store().load_transaction(id).await.unwrap().is_some());
        world.advance(Duration::from_millis(1));
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        assert_eq!(world.store().load_transaction(id).await, Ok(None));
    });
}

#[test]
fn a_transaction_is_swept_only_after_its_delivery_has_ended() {
    run(async {
        let world = &universe();
        let client = client_with(world, 2).await;
        let (queued, queued_id) = completed(world, &client).await;
        let (claimed, claimed_id) = completed(world, &client).await;
        assert!(world.store().claim_delivery(claimed_id, claimed.id.into()).await.unwrap());
        world.advance(RESULT_TTL * 10);
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept::default()));
        assert!(world.store().load_delivery(claimed.id.into()).await.unwrap().is_some());
        let attempt = Attempt { outcome: DeliveryOutcome::Delivered, status: Some(200), duration_ms: 1 };
        world.store().settle_delivery(claimed_id, claimed.id.into(), attempt).await.unwrap();
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        assert_eq!(world.store().load_delivery(claimed.id.into()).await, Ok(None));
        let due = world.store().due_deliveries(None, None, 10).await.unwrap();
        assert_eq!(due.iter().map(|due| (due.id, due.subject)).collect::<Vec<_>>(), [(queued_id, queued.id.into())]);
        assert_eq!(Some(&due[0].url), queued.terms.webhook_url.as_ref());
    });
}

#[test]
fn a_sweep_removes_exactly_as_many_as_it_may() {
    run(async {
        let world = &universe();
        let client = client_with(world, 10).await;
        for _ in 0..4 {
            completed_without_hook(world, &client).await;
            opened(world, &client).await;
        }
        world.advance(RESULT_TTL);
        let mut rounds = Vec::new();
        for _ in 0..4 {
            rounds.push(world.store().sweep(RETENTION, 3).await.unwrap().transactions);
        }
        assert_eq!(rounds, [3, 3, 2, 0]);
    });
}

#[test]
fn idempotency_records_and_credentials_are_swept_after_their_time() {
    run(async {
        let world = &universe();
        let client = client_with(world, 1).await;
        let mut open = opening(world, &client);
        Arc::make_mut(&mut open.pending).terms.webhook_url = None;
        open.idempotency = Some(kept(world, &client, 1, 1));
        let id = open.pending.id;
        world.store().open_transaction(open).await.unwrap();
        let complete = CompleteTransaction {
            credential: Some(PresentedCredential { digest: CredentialIdentity([4; 32]), holder_bound: false }),
            ..completing(id, 1)
        };
        world.store().complete_transaction(complete).await.unwrap();
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept::default()));
        world.advance(REPLAY_WINDOW);
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept { credentials: 1, ..Swept::default() }));
        assert!(world.store().load_idempotent_answer(scope(&client, 1)).await.unwrap().is_some());
        world.advance(RESULT_TTL - REPLAY_WINDOW);
        assert_eq!(world.store().sweep(RETENTION, 10).await, Ok(Swept { transactions: 1, idempotency: 1, ..Swept::default() }));
    });
}

#[test]
fn abandoned_scans_stay_counted_after_their_rows_are_swept() {
    run(async {
        let world = &universe();
        let client = client_with(world, 20).await;
        let event = created(world, event(world, &client, 10)).await;
        let answered = scanned(world, &event).await;
        for _ in 0..3 {
            scanned(world, &event).await;
        }
        let minute = Duration::from_secs(60);
        world.advance(minute);
        scanned(world, &event).await;
        world.store().complete_transaction(declining(answered, 1)).await.unwrap();
        let abandoned = || async { counts(world, &event).await.abandoned };
        world.advance(WINDOW - minute - Duration::from_millis(1));
        assert_eq!(abandoned().await, 0);
        world.advance(Duration::from_millis(1));
        assert_eq!(abandoned().await, 3, "by the passing of time alone");
        scanned(world, &event).await;
        assert_eq!(abandoned().await, 3, "and no more by the next scan");
        world.advance(minute);
        assert_eq!(abandoned().await, 4);
        // A scan that waited so long for its turn that its window has passed.
        let mut late = scan(world, &event);
        Arc::make_mut(&mut late.pending).expires_at = world.now() - WINDOW;
        assert!(matches!(world.store().open_transaction(late).await, Ok(OpenOutcome::Opened { .. })));
        assert_eq!(abandoned().await, 5);
        world.advance(RETENTION.expired);
        assert_eq!(world.store().sweep(RETENTION, 2).await.unwrap().transactions, 2);
        assert_eq!(abandoned().await, 5, "however many of them are gone");
        assert_eq!(world.store().sweep(RETENTION, 100).await.unwrap().transactions, 3);
        assert_eq!(abandoned().await, 5);
        world.advance(WINDOW);
        assert_eq!(abandoned().await, 6);
        world.advance(RESULT_TTL);
        assert_eq!(world.store().sweep(RETENTION, 100).await.unwrap().transactions, 2);
        assert_eq!(counts(world, &event).await, EventCounts { registrations: 0, scans: 7, abandoned: 6 });
    });
}

#[test]
fn an_event_is_swept_with_its_registrations_and_never_before_its_transactions() {
    run(async {
        let world = &universe();
        let client = client_with(world, 20).await;
        let event = created(world, event(world, &client, 10)).await;
        registered(world, &event).await;
        let quiet = patched(world, &event, EventPatch { webhook_url: Some(None), ..EventPatch::default() }).await;
        registered(world, &quiet).await;
        world.advance(RESULT_TTL);
        assert_eq!(world.store().sweep(RETENTION, 100).await, Ok(Swept { transactions: 1, ..Swept::default() }));
        let listed = world.store().list_registrations(event.id, ALL.into()).await.unwrap();
        assert_eq!((listed.items.len(), listed.total), (2, 2), "registrations outlive their transactions");
        world.advance(RETENTION.events);
        assert_eq!(world.store().sweep(RETENTION, 100).await, Ok(Swept::default()), "a delivery has not ended");
        let due = world.store().due_deliveries(None, None, 10).await.unwrap().remove(0);
        assert_eq!(Some(due.url), event.terms.webhook_url);
        assert!(world.store().claim_delivery(due.id, due.subject).await.unwrap());
        let attempt = Attempt { outcome: DeliveryOutcome::Delivered, status: Some(200), duration_ms: 1 };
        world.store().settle_delivery(due.id, due.subject, attempt).await.unwrap();
        assert_eq!(world.store().sweep(RETENTION, 100).await, Ok(Swept { transactions: 1, events: 3, ..Swept::default() }));
        assert_eq!(world.store().load_event(event.id).await, Ok(None));
        assert_eq!(world.store().list_registrations(event.id, ALL.into()).await, Ok(Page { items: vec![], total: 0 }));
        assert_eq!(world.store().list_events(event.app.clone(), ALL).await, Ok(Page { items: vec![], total: 0 }));
        assert_eq!(world.store().open_transaction(scan(world, &event)).await, Ok(OpenOutcome::EventNotFound));
        assert_eq!(audited_balance(world, &client).await, 18);
    });
}

#[test]
fn the_registrations_of_an_event_are_swept_a_bounded_number_at_a_time() {
    run(async {
        let world = &universe();
        let client = client_with(world, 20).await;
        let mut old = event(world, &client, 10);
        old.terms.webhook_url = None;
        let old = created(world, old).await;
        for _ in 0..7 {
            registered(world, &old).await;
        }
        let mut longer = event(world, &client, 10);
        longer.terms.expires_at = old.terms.expires_at + Duration::from_millis(1);
        let longer = created(world, longer).await;
        world.advance(EVENT + RETENTION.events - Duration::from_millis(1));
        assert_eq!(world.store().sweep(RETENTION, 100).await.unwrap().events, 0);
        world.advance(Duration::from_millis(1));
        assert_eq!(world.store().sweep(RETENTION, 3).await.unwrap().events, 3);
        assert_eq!(world.store().load_event(old.id).await, Ok(None), "nobody sees half of an event");
        let patch = world.store().patch_event(old.id, old.app.clone(), EventPatch::default()).await;
        assert_eq!(patch, Ok(PatchEventOutcome::NotFound));
        let mut rounds = Vec::new();
        for _ in 0..3 {
            rounds.push(world.store().sweep(RETENTION, 3).await.unwrap().events);
        }
        assert_eq!(rounds, [3, 2, 0]);
        assert!(world.store().load_event(longer.id).await.unwrap().is_some());
    });
}
