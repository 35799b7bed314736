//! What goes when its time has passed, and what stays. A store may remove records as it sweeps or
//! let them expire; what can be seen is the same.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::event::{EventCounts, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::transaction::CredentialIdentity;

use super::World;
use super::fixture::{
    EVENT, REPLAY_WINDOW, RESULT_TTL, RETENTION, WINDOW, audited_balance, client_with, completed, completing, counts, created, declining,
    event, kept, opened, opening, opening_with_hook, patched, registered, scan, scanned, scope,
};
use super::guests::ALL;
use crate::{CompleteOutcome, CompleteTransaction, OpenOutcome, Page, PageRequest, PatchEventOutcome, PresentedCredential, Swept};

/// Sweeps until there is nothing left to remove.
async fn swept(world: &impl World) {
    while world.store().sweep(RETENTION, 3).await.unwrap() != Swept::default() {}
}

async fn completed_without_hook(world: &impl World, client: &ClientId) -> TxnId {
    let open = opening_with_hook(world, client, None);
    let id = open.pending.id;
    world.store().open_transaction(open).await.unwrap();
    world.store().complete_transaction(completing(id, 1)).await.unwrap();
    id
}

pub(crate) async fn a_result_can_be_fetched_for_its_time_and_no_longer(world: &impl World) {
    let client = client_with(world, 1).await;
    let id = completed_without_hook(world, &client).await;
    world.advance(RESULT_TTL - Duration::from_millis(1));
    swept(world).await;
    assert!(world.store().load_transaction(id).await.unwrap().is_some());
    world.advance(Duration::from_millis(1));
    for _ in 0..2 {
        assert_eq!(world.store().load_transaction(id).await, Ok(None));
        assert_eq!(world.store().complete_transaction(completing(id, 1)).await, Ok(CompleteOutcome::NotFound));
        swept(world).await;
    }
}

pub(crate) async fn an_expired_transaction_can_be_read_until_its_grace_has_passed(world: &impl World) {
    let client = client_with(world, 1).await;
    let id = opened(world, &client).await.id;
    world.advance(WINDOW + RETENTION.expired - Duration::from_millis(1));
    swept(world).await;
    assert!(world.store().load_transaction(id).await.unwrap().is_some());
    world.advance(Duration::from_millis(1));
    swept(world).await;
    assert_eq!(world.store().load_transaction(id).await, Ok(None));
    assert_eq!(world.store().complete_transaction(completing(id, 1)).await, Ok(CompleteOutcome::NotFound));
}

pub(crate) async fn a_transaction_whose_delivery_has_not_ended_is_never_swept(world: &impl World) {
    let client = client_with(world, 2).await;
    let (queued, queued_id) = completed(world, &client).await;
    let (claimed, claimed_id) = completed(world, &client).await;
    assert!(world.store().claim_delivery(claimed_id, claimed.id.into()).await.unwrap());
    world.advance(RESULT_TTL * 10);
    swept(world).await;
    assert!(world.store().load_delivery(claimed.id.into()).await.unwrap().is_some());
    assert_eq!(world.store().load_transaction(claimed.id).await, Ok(None), "its result has had its time all the same");
    let attempt = Attempt { outcome: DeliveryOutcome::Delivered, status: Some(200), duration_ms: 1 };
    world.store().settle_delivery(claimed_id, claimed.id.into(), attempt).await.unwrap();
    swept(world).await;
    assert_eq!(world.store().load_delivery(claimed.id.into()).await, Ok(None));
    let due = world.store().due_deliveries(None, None, 10).await.unwrap();
    assert_eq!(due.iter().map(|due| (due.id, due.subject)).collect::<Vec<_>>(), [(queued_id, queued.id.into())]);
    assert_eq!(Some(&due[0].url), queued.terms.webhook_url.as_ref());
}

pub(crate) async fn a_sweep_is_bounded(world: &impl World) {
    let client = client_with(world, 10).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(completed_without_hook(world, &client).await);
        ids.push(opened(world, &client).await.id);
    }
    world.advance(RESULT_TTL);
    let mut rounds = 0;
    loop {
        let Swept { transactions, .. } = world.store().sweep(RETENTION, 3).await.unwrap();
        assert!(transactions <= 3, "{transactions}");
        if transactions == 0 {
            break;
        }
        rounds += 1;
        assert!(rounds <= ids.len(), "what was swept is swept again");
    }
    for id in ids {
        assert_eq!(world.store().load_transaction(id).await, Ok(None));
    }
}

pub(crate) async fn idempotency_records_and_credentials_are_forgotten_after_their_time(world: &impl World) {
    let client = client_with(world, 3).await;
    let mut open = opening(world, &client);
    Arc::make_mut(&mut open.pending).terms.webhook_url = None;
    open.idempotency = Some(kept(world, &client, 1, 1));
    let id = open.pending.id;
    world.store().open_transaction(open).await.unwrap();
    let presenting = |id| CompleteTransaction {
        credential: Some(PresentedCredential { digest: CredentialIdentity([4; 32]), holder_bound: false }),
        ..completing(id, 1)
    };
    world.store().complete_transaction(presenting(id)).await.unwrap();
    world.advance(REPLAY_WINDOW - Duration::from_millis(1));
    swept(world).await;
    let second = opened(world, &client).await.id;
    assert_eq!(world.store().complete_transaction(presenting(second)).await, Ok(CompleteOutcome::CredentialReplayed));
    world.advance(Duration::from_millis(1));
    swept(world).await;
    let outcome = world.store().complete_transaction(presenting(second)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }), "{outcome:?}");
    world.advance(RESULT_TTL - REPLAY_WINDOW - Duration::from_millis(1));
    swept(world).await;
    assert!(world.store().load_idempotent_answer(scope(&client, 1)).await.unwrap().is_some());
    world.advance(Duration::from_millis(1));
    swept(world).await;
    assert_eq!(world.store().load_idempotent_answer(scope(&client, 1)).await, Ok(None));
}

pub(crate) async fn sweeping_leaves_the_ledger_as_it_is(world: &impl World) {
    let client = client_with(world, 5).await;
    completed_without_hook(world, &client).await;
    opened(world, &client).await;
    world.advance(RESULT_TTL * 2);
    swept(world).await;
    assert_eq!(audited_balance(world, &client).await, 3);
}

pub(crate) async fn abandoned_scans_are_counted_at_any_moment_and_after_they_are_swept(world: &impl World) {
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
    for most in [2, 100] {
        world.store().sweep(RETENTION, most).await.unwrap();
        assert_eq!(abandoned().await, 5, "however many of them are gone");
    }
    world.advance(WINDOW);
    assert_eq!(abandoned().await, 6);
    world.advance(RESULT_TTL);
    swept(world).await;
    assert_eq!(counts(world, &event).await, EventCounts { registrations: 0, scans: 7, abandoned: 6 });
}

pub(crate) async fn an_event_goes_with_its_registrations_after_its_time_and_its_deliveries_do_not(world: &impl World) {
    let client = client_with(world, 20).await;
    let event = created(world, event(world, &client, 10)).await;
    registered(world, &event).await;
    let quiet = patched(world, &event, EventPatch { webhook_url: Some(None), ..EventPatch::default() }).await;
    registered(world, &quiet).await;
    world.advance(EVENT + RETENTION.events - Duration::from_millis(1));
    swept(world).await;
    let listed = world.store().list_registrations(event.id, ALL.into()).await.unwrap();
    assert_eq!((listed.items.len(), listed.total), (2, 2), "registrations outlive their transactions");
    world.advance(Duration::from_millis(1));
    swept(world).await;
    let due = world.store().due_deliveries(None, None, 10).await.unwrap().remove(0);
    assert_eq!(Some(due.url), event.terms.webhook_url, "where it goes does not depend on the event");
    assert!(world.store().claim_delivery(due.id, due.subject).await.unwrap());
    let attempt = Attempt { outcome: DeliveryOutcome::Delivered, status: Some(200), duration_ms: 1 };
    world.store().settle_delivery(due.id, due.subject, attempt).await.unwrap();
    swept(world).await;
    assert_eq!(world.store().load_event(event.id).await, Ok(None));
    assert_eq!(world.store().list_registrations(event.id, ALL.into()).await, Ok(Page { items: vec![], total: 0 }));
    assert_eq!(world.store().list_events(event.app.clone(), ALL).await, Ok(Page { items: vec![], total: 0 }));
    assert_eq!(world.store().open_transaction(scan(world, &event)).await, Ok(OpenOutcome::EventNotFound));
    assert_eq!(audited_balance(world, &client).await, 18);
}

pub(crate) async fn nobody_sees_half_of_an_event(world: &impl World) {
    let client = client_with(world, 20).await;
    let mut old = event(world, &client, 10);
    old.terms.webhook_url = None;
    let old = created(world, old).await;
    for _ in 0..7 {
        registered(world, &old).await;
    }
    let mut longer = event(world, &client, 10);
    (longer.app, longer.terms.expires_at) = (old.app.clone(), old.terms.expires_at + Duration::from_millis(1));
    let longer = created(world, longer).await;
    world.advance(EVENT + RETENTION.events - Duration::from_millis(1));
    for _ in 0..10 {
        world.store().sweep(RETENTION, 3).await.unwrap();
    }
    assert_eq!(counts(world, &old).await.registrations, 7);
    world.advance(Duration::from_millis(1));
    for _ in 0..5 {
        world.store().sweep(RETENTION, 3).await.unwrap();
        assert_eq!(world.store().load_event(old.id).await, Ok(None));
        let patch = world.store().patch_event(old.id, old.app.clone(), EventPatch::default()).await;
        assert_eq!(patch, Ok(PatchEventOutcome::NotFound));
        assert_eq!(world.store().list_registrations(old.id, ALL.into()).await, Ok(Page { items: vec![], total: 0 }));
        let listed = world.store().list_events(old.app.clone(), ALL).await.unwrap();
        assert_eq!((listed.total, listed.items), (1, vec![longer.clone()]));
    }
}

pub(crate) async fn every_page_of_a_long_list_of_events_is_found_before_and_after_some_have_gone(world: &impl World) {
    let client = client_with(world, 1).await;
    let (app, left) = long_list(world, &client).await;
    pages_have(world, &app, &left).await;
    let mut newest = event(world, &client, 1);
    newest.app = app.clone();
    let newest = created(world, newest).await.id;
    pages_have(world, &app, &[left, vec![newest]].concat()).await;
}

/// An app with hundreds of events, of which some have gone; those that are left.
pub(crate) async fn long_list(world: &impl World, client: &ClientId) -> (AppId, Vec<EventId>) {
    let app = AppId::generate();
    let mut events = Vec::new();
    for number in 0..600 {
        let mut event = event(world, client, 1);
        event.app = app.clone();
        // Of the first block of a list that counts by blocks nothing is left, of the others two thirds.
        let longer = number > 300 && number % 3 > 0;
        event.terms.expires_at = event.terms.expires_at + Duration::from_millis(u64::from(longer));
        events.push((created(world, event).await.id, longer));
    }
    pages_have(world, &app, &events.iter().map(|(id, _)| *id).collect::<Vec<_>>()).await;
    world.advance(EVENT + RETENTION.events);
    swept(world).await;
    (app, events.into_iter().filter(|(_, longer)| *longer).map(|(id, _)| id).collect())
}

/// Pages of the list show these, in this order, and their number.
pub(crate) async fn pages_have(world: &impl World, app: &AppId, expected: &[EventId]) {
    let page_size = 7;
    for (place, ids) in expected.chunks(page_size).enumerate() {
        let page = PageRequest { page: u32::try_from(place).unwrap() + 1, page_size: u32::try_from(page_size).unwrap() };
        let listed = world.store().list_events(app.clone(), page).await.unwrap();
        let found: Vec<EventId> = listed.items.iter().map(|event| event.id).collect();
        assert_eq!((found.as_slice(), listed.total), (ids, expected.len() as u64), "page {}", page.page);
    }
}

pub(crate) async fn a_working_store_says_that_a_write_would_succeed(world: &impl World) {
    assert_eq!(world.store().check().await, Ok(()));
}
