//! Creating, reading, listing and changing events.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use futures_util::future::{join, join_all};
use sakshi_domain::event::{Event, EventCounts, EventPatch, EventRefusal, EventText};
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_domain::tenancy::ClientPatch;

use super::TestStore;
use super::fixture::{
    EVENT_DURATION, build_completion, build_event, build_guest_scan, build_idempotent_answer, client_with,
    idempotency_scope, load_counts, max_guests, open_guest_scan, open_pending, patch_event, register_guest,
    store_event, url,
};
use crate::{CreateEvent, CreateOutcome, OpenOutcome, Page, PageRequest, PatchEventOutcome, event_tag};

pub(crate) async fn an_event_is_created_once_and_read_unchanged(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    assert_eq!(test.store().load_event(event.id).await, Ok(Some(event.clone())));
    open_guest_scan(test, &event).await;
    store_event(test, event.clone()).await;
    assert_eq!(load_counts(test, &event).await.scans, 1, "repeating the creation does not change the counts");
    assert_eq!(test.store().load_event(EventId::generate(client.partition(), 3)).await, Ok(None));
}

pub(crate) async fn an_event_requires_an_existing_client(test: &impl TestStore) {
    let event = build_event(test, &ClientId::generate(), 10);
    let outcome =
        test.store().create_event(CreateEvent { event: event.clone(), events_max: None, idempotency: None }).await;
    assert_eq!(outcome, Ok(CreateOutcome::ClientNotFound));
    assert_eq!(test.store().load_event(event.id).await, Ok(None));
}

pub(crate) async fn an_idempotency_key_creates_one_event(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let app = AppId::generate();
    let creation = |request| {
        let mut event = build_event(test, &client, 10);
        event.app = app.clone();
        CreateEvent { event, events_max: None, idempotency: Some(build_idempotent_answer(test, &client, 1, request)) }
    };
    let first = creation(1);
    let both = join_all([first.clone(), first].map(|create| test.store().create_event(create))).await;
    assert_eq!(both, [Ok(CreateOutcome::Created), Ok(CreateOutcome::Created)]);
    let replayed = CreateOutcome::Replayed(build_idempotent_answer(test, &client, 1, 1).answer);
    assert_eq!(test.store().create_event(creation(1)).await, Ok(replayed));
    assert_eq!(test.store().create_event(creation(2)).await, Ok(CreateOutcome::KeyReused));
    assert_eq!(
        test.store().load_idempotent_answer(idempotency_scope(&client, 1)).await,
        Ok(Some(build_idempotent_answer(test, &client, 1, 1)))
    );
    assert_eq!(test.store().list_events(app, PageRequest { page: 1, page_size: 10 }).await.unwrap().total, 1);
}

pub(crate) async fn the_events_of_an_app_are_listed_by_creation_with_their_counts(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    let app = AppId::generate();
    let mut expected = Vec::new();
    for number in 0..5 {
        let mut event = build_event(test, &client, 10);
        event.app = app.clone();
        expected.push(store_event(test, event).await.id);
        // The first two events are created at the same time.
        test.advance(Duration::from_secs(number));
    }
    store_event(test, build_event(test, &client, 10)).await;
    let all = test.store().list_events(app.clone(), PageRequest { page: 1, page_size: 100 }).await.unwrap().items;
    open_guest_scan(test, &all[3]).await;
    register_guest(test, &all[3]).await;
    let mut listed = Vec::new();
    for page in 1..=4 {
        let Page { items, total } =
            test.store().list_events(app.clone(), PageRequest { page, page_size: 2 }).await.unwrap();
        assert_eq!(total, 5);
        listed.extend(items);
    }
    assert_eq!(listed.iter().map(|event| event.id).collect::<Vec<_>>(), expected);
    assert_eq!(
        listed[3].counts,
        EventCounts { registrations: 1, scans: 2, abandoned: 0, pending: 1, ..EventCounts::default() }
    );
    let last = PageRequest { page: u32::MAX, page_size: u32::MAX };
    assert_eq!(test.store().list_events(app, last).await, Ok(Page { items: vec![], total: 5 }));
    let events_of_another_app =
        test.store().list_events(AppId::generate(), PageRequest { page: 1, page_size: 2 }).await;
    assert_eq!(events_of_another_app, Ok(Page { items: vec![], total: 0 }));
}

pub(crate) async fn a_patch_of_an_event_changes_only_the_named_fields(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    register_guest(test, &event).await;
    let later = event.terms.expires_at + EVENT_DURATION;
    let patch =
        EventPatch { expires_at: Some(later), name: Some(EventText::parse("Ball").unwrap()), ..EventPatch::default() };
    let changed = patch_event(test, &event, patch).await;
    assert_eq!(
        (changed.terms.expires_at, changed.terms.name.as_str(), changed.counts.registrations),
        (later, "Ball", 1)
    );
    assert_eq!(
        (changed.terms.max_guests, changed.terms.webhook_url.as_ref()),
        (max_guests(10), event.terms.webhook_url.as_ref())
    );
    let patch = EventPatch {
        webhook_url: Some(Some(url("https://new.example/"))),
        is_active: Some(false),
        ..EventPatch::default()
    };
    let changed = patch_event(test, &event, patch).await;
    assert_eq!(test.store().load_event(event.id).await, Ok(Some(changed.clone())));
    assert_eq!(
        (changed.terms.webhook_url, changed.terms.is_active, changed.terms.name.as_str()),
        (Some(url("https://new.example/")), false, "Ball")
    );
    let without = patch_event(test, &event, EventPatch { webhook_url: Some(None), ..EventPatch::default() }).await;
    assert_eq!(without.terms.webhook_url, None);
}

pub(crate) async fn racing_patches_of_an_event_are_all_applied(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let event = store_event(test, build_event(test, &client, 1)).await;
    let raises = [2, 3, 4].map(|count| {
        patch_event(test, &event, EventPatch { max_guests: Some(max_guests(count)), ..EventPatch::default() })
    });
    let name = EventText::parse("Fair").unwrap();
    let named = patch_event(test, &event, EventPatch { name: Some(name.clone()), ..EventPatch::default() });
    let (raised, _) = join(join_all(raises), named).await;
    // A retried patch returns the event with the patches that others have applied since.
    let is_applied = |expected, event: &Event| {
        event.terms.max_guests == expected
            || (test.loses_answers() && (2..=4).any(|count| event.terms.max_guests == max_guests(count)))
    };
    assert!((2..).zip(&raised).all(|(count, event)| is_applied(max_guests(count), event)), "{raised:?}");
    assert_eq!(test.store().load_event(event.id).await.unwrap().unwrap().terms.name, name);
}

pub(crate) async fn one_of_several_patches_of_the_same_version_is_applied(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let event = store_event(test, build_event(test, &client, 5)).await;
    let tag = event_tag(&test.store().load_event(event.id).await.unwrap().unwrap().terms);
    let change = |count| {
        let patch = EventPatch {
            max_guests: Some(max_guests(count)),
            only_if: Some(vec![tag.clone()]),
            ..EventPatch::default()
        };
        test.store().patch_event(event.id, event.app.clone(), patch)
    };
    let outcomes: Vec<_> = join_all([6, 7, 8].map(change)).await.into_iter().map(Result::unwrap).collect();
    let applied: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| if let PatchEventOutcome::Patched(event) = outcome { Some(event) } else { None })
        .collect();
    assert_eq!(
        (applied.len(), outcomes.iter().filter(|outcome| **outcome == PatchEventOutcome::PreconditionFailed).count()),
        (1, 2),
        "{outcomes:?}"
    );
    register_guest(test, &event).await;
    let current = test.store().load_event(event.id).await.unwrap().unwrap();
    assert_eq!(current.terms, applied[0].terms);
    let patch =
        EventPatch { only_if: Some(vec!["other".to_owned(), event_tag(&current.terms)]), ..EventPatch::default() };
    assert_eq!(patch_event(test, &event, patch).await.terms, current.terms, "a guest does not change the tag");
}

pub(crate) async fn a_patch_that_contradicts_the_event_changes_nothing(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    register_guest(test, &event).await;
    register_guest(test, &event).await;
    let before = test.store().load_event(event.id).await.unwrap();
    let patch = EventPatch {
        max_guests: Some(max_guests(1)),
        expires_at: Some(test.now()),
        is_active: Some(false),
        ..EventPatch::default()
    };
    match test.store().patch_event(event.id, event.app.clone(), patch).await.unwrap() {
        PatchEventOutcome::Refused(invalid) => {
            let fields: Vec<_> = invalid.fields().iter().map(|problem| problem.field.as_str()).collect();
            assert_eq!(fields, ["max_guests", "expires_at"]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(test.store().load_event(event.id).await.unwrap(), before);
    patch_event(test, &event, EventPatch { max_guests: Some(max_guests(2)), ..EventPatch::default() }).await;
    let scan_when_full = test.store().open_transaction(build_guest_scan(test, &event)).await;
    assert_eq!(scan_when_full, Ok(OpenOutcome::EventRefused(EventRefusal::Full)));
}

pub(crate) async fn an_event_of_another_app_cannot_be_changed(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    let disable = EventPatch { is_active: Some(false), ..EventPatch::default() };
    let outcome = test.store().patch_event(event.id, AppId::generate(), disable.clone()).await;
    assert_eq!(outcome, Ok(PatchEventOutcome::NotFound));
    let unknown = test.store().patch_event(EventId::generate(client.partition(), 3), event.app.clone(), disable).await;
    assert_eq!(unknown, Ok(PatchEventOutcome::NotFound));
    assert_eq!(test.store().load_event(event.id).await, Ok(Some(event)));
}

pub(crate) async fn transactions_without_an_event_change_no_event(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    let plain = open_pending(test, &client).await;
    let answer = build_completion(plain.id, 1);
    match test.store().complete_transaction(answer.clone()).await.unwrap() {
        crate::CompleteOutcome::Completed { record, queued: Some(_), repeated: false } => {
            assert_eq!((record.passed, record.refused, record.outcome), (true, None, answer.outcome));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(load_counts(test, &event).await, EventCounts::default());
}

pub(crate) async fn the_number_of_events_of_an_app_is_limited(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let app = AppId::generate();
    let create = |app: &AppId, most| {
        let mut event = build_event(test, &client, 10);
        event.app = app.clone();
        test.store().create_event(CreateEvent { event, events_max: Some(most), idempotency: None })
    };
    for _ in 0..2 {
        assert_eq!(create(&app, 2).await, Ok(CreateOutcome::Created));
    }
    assert_eq!(create(&app, 2).await, Ok(CreateOutcome::LimitReached));
    assert_eq!(test.store().list_events(app.clone(), PageRequest { page: 1, page_size: 10 }).await.unwrap().total, 2);
    assert_eq!(create(&app, 3).await, Ok(CreateOutcome::Created));
    assert_eq!(create(&AppId::generate(), 0).await, Ok(CreateOutcome::LimitReached));
    assert_eq!(create(&AppId::generate(), 1).await, Ok(CreateOutcome::Created), "another app has its own limit");
}

pub(crate) async fn a_suspended_client_takes_no_new_guests_but_pending_ones_can_finish(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    let event = store_event(test, build_event(test, &client, 10)).await;
    let pending = open_guest_scan(test, &event).await;
    let suspend = |suspended| {
        let patch = ClientPatch { suspended: Some(suspended), ..ClientPatch::default() };
        test.store().patch_client(client.clone(), patch, test.now())
    };
    suspend(true).await.unwrap();
    let refused = test.store().open_transaction(build_guest_scan(test, &event)).await;
    assert_eq!(refused, Ok(OpenOutcome::EventRefused(EventRefusal::Disabled)));
    assert_eq!(test.store().balance(client.clone()).await, Ok(Some(9)), "only the pending guest was paid for");
    let page = PageRequest { page: 1, page_size: 10 };
    let loaded = test.store().load_event(event.id).await.unwrap().unwrap();
    let listed = test.store().list_events(event.app.clone(), page).await.unwrap().items;
    assert!(!loaded.terms.is_active && !listed[0].terms.is_active);
    test.store().complete_transaction(build_completion(pending, 1)).await.unwrap();
    assert_eq!(load_counts(test, &event).await.registrations, 1);
    // A patch during the suspension does not store the inactive state.
    patch_event(
        test,
        &event,
        EventPatch { name: Some(EventText::parse("Closing day").unwrap()), ..EventPatch::default() },
    )
    .await;
    suspend(false).await.unwrap();
    assert!(test.store().load_event(event.id).await.unwrap().unwrap().terms.is_active);
    open_guest_scan(test, &event).await;
}
