//! The people of an event: duplicate registrations and check-ins.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::{CheckIn, CheckInId, Event, EventPatch, EventRefusal, EventSecret, OnDuplicate, Trait};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;

use super::TestStore;
use super::fixture::{
    build_completion, build_event, client_with, load_counts, open_guest_scan, patch_event, register_guest, store_event,
};
use super::guests::ALL;
use crate::vault::test_vault;
use crate::{CheckInOutcome, CompleteOutcome, CompleteTransaction, Guest, GuestDetails};

/// Creates an event without a webhook that handles duplicates in this way.
async fn create_event(test: &impl TestStore, on_duplicate: OnDuplicate) -> Event {
    let client = client_with(test, 50).await;
    let mut event = build_event(test, &client, 30);
    (event.terms.on_duplicate, event.terms.webhook_url) = (on_duplicate, None);
    store_event(test, event).await
}

/// Builds the completion of a guest with these traits.
fn build_completion_with_traits(id: TxnId, traits: &[u8]) -> CompleteTransaction {
    let traits = traits.iter().map(|number| Trait([*number; 32])).collect();
    CompleteTransaction { guest: GuestDetails { name: Some("Asha Rao".into()), traits }, ..build_completion(id, 1) }
}

/// Opens and completes the transaction of a guest with these traits. Returns its id, and the reason of a refusal.
async fn admit_with_traits(test: &impl TestStore, event: &Event, traits: &[u8]) -> (TxnId, Option<EventRefusal>) {
    let id = open_guest_scan(test, event).await;
    match test.store().complete_transaction(build_completion_with_traits(id, traits)).await.unwrap() {
        CompleteOutcome::Completed { record, repeated: false, .. } => (id, record.refused),
        other => panic!("{other:?}"),
    }
}

/// Returns the registered guests of an event.
async fn list_guests(test: &impl TestStore, event: &Event) -> Vec<Guest> {
    test.store().list_guests(event.id, ALL.into()).await.unwrap().items
}

pub(crate) async fn a_person_with_a_known_trait_is_marked_as_a_duplicate(test: &impl TestStore) {
    let event = create_event(test, OnDuplicate::Flag).await;
    let (asha, _) = admit_with_traits(test, &event, &[1, 2, 3]).await;
    let (meena, _) = admit_with_traits(test, &event, &[4, 5]).await;
    let (returning, refused) = admit_with_traits(test, &event, &[9, 2]).await;
    assert_eq!(refused, None);
    // New traits of a returning person are stored as well.
    let (with_new_trait, _) = admit_with_traits(test, &event, &[9]).await;
    let (_, _) = admit_with_traits(test, &event, &[]).await;
    let marks: Vec<_> = list_guests(test, &event)
        .await
        .into_iter()
        .map(|guest| (guest.number, guest.txn, guest.duplicate_of))
        .collect();
    let expected =
        [(1, asha, None), (2, meena, None), (3, returning, Some(asha)), (4, with_new_trait, Some(returning))];
    assert_eq!(marks[..4], expected);
    assert_eq!(marks[4].2, None, "a guest without traits is no duplicate");
    let counted = load_counts(test, &event).await;
    assert_eq!((counted.registrations, counted.duplicates), (5, 2));
}

pub(crate) async fn duplicates_are_refused_or_ignored_as_the_event_says(test: &impl TestStore) {
    let strict = create_event(test, OnDuplicate::Refuse).await;
    assert_eq!(admit_with_traits(test, &strict, &[1, 2]).await.1, None);
    let (duplicate, refused) = admit_with_traits(test, &strict, &[2, 7]).await;
    assert_eq!(refused, Some(EventRefusal::Duplicate));
    assert_eq!(admit_with_traits(test, &strict, &[7]).await.1, None, "the traits of a refused guest are not stored");
    let repeated = test.store().complete_transaction(build_completion_with_traits(duplicate, &[2, 7])).await.unwrap();
    let CompleteOutcome::Completed { record, repeated: true, .. } = repeated else { panic!("{repeated:?}") };
    assert_eq!((record.refused, record.registration), (Some(EventRefusal::Duplicate), None));
    let counted = load_counts(test, &strict).await;
    assert_eq!((counted.registrations, counted.duplicates, counted.pending), (2, 0, 0));

    let open = create_event(test, OnDuplicate::Allow).await;
    for _ in 0..2 {
        assert_eq!(admit_with_traits(test, &open, &[1, 2]).await.1, None);
    }
    assert!(list_guests(test, &open).await.iter().all(|guest| guest.duplicate_of.is_none()));
    // A change applies to later guests only.
    patch_event(test, &open, EventPatch { on_duplicate: Some(OnDuplicate::Refuse), ..EventPatch::default() }).await;
    assert_eq!(admit_with_traits(test, &open, &[1]).await.1, None);
    assert_eq!(admit_with_traits(test, &open, &[1]).await.1, Some(EventRefusal::Duplicate));
}

pub(crate) async fn one_of_many_concurrent_registrations_of_a_person_is_the_first(test: &impl TestStore) {
    for (on_duplicate, registered) in [(OnDuplicate::Flag, 8), (OnDuplicate::Refuse, 1)] {
        let event = create_event(test, on_duplicate).await;
        let ids = join_all((0..8).map(|_| open_guest_scan(test, &event))).await;
        join_all(ids.iter().map(|id| test.store().complete_transaction(build_completion_with_traits(*id, &[1, 2, 3]))))
            .await;
        let listed = list_guests(test, &event).await;
        assert_eq!(listed.len(), registered);
        assert_eq!(listed[0].duplicate_of, None);
        assert!(listed[1..].iter().all(|guest| guest.duplicate_of == Some(listed[0].txn)), "{listed:?}");
        assert_eq!(load_counts(test, &event).await.duplicates as usize, registered - 1);
    }
}

pub(crate) async fn a_person_is_not_recognised_at_another_event(test: &impl TestStore) {
    let client = client_with(test, 50).await;
    for number in 1..=2 {
        let mut event = build_event(test, &client, 30);
        event.terms.secret = EventSecret::fixed(number);
        let event = store_event(test, event).await;
        admit_with_traits(test, &event, &[1]).await;
        assert_eq!(list_guests(test, &event).await[0].duplicate_of, None);
    }
}

pub(crate) async fn a_guest_is_checked_in_once_by_concurrent_gates(test: &impl TestStore) {
    let event = create_event(test, OnDuplicate::Flag).await;
    let (first, second) = (register_guest(test, &event).await, register_guest(test, &event).await);
    // Two check-ins at each gate, in the same millisecond.
    let check_in = |id: i64| CheckIn { id: CheckInId::new(id), at: test.now(), gate: format!("gate {}", id / 2) };
    let outcomes = join_all((0..6).map(|id| test.store().check_in(event.id, 2, check_in(id)))).await;
    let checked_in: Vec<&Guest> = outcomes
        .iter()
        .filter_map(|outcome| if let Ok(CheckInOutcome::CheckedIn(guest)) = outcome { Some(guest) } else { None })
        .collect();
    let [guest] = checked_in[..] else { panic!("{outcomes:?}") };
    assert_eq!((guest.number, guest.txn), (2, second));
    assert!(
        outcomes.iter().filter(|outcome| **outcome == Ok(CheckInOutcome::AlreadyCheckedIn(guest.clone()))).count() == 5,
        "{outcomes:?}"
    );
    let known = CheckIn { at: test.now() + Duration::from_secs(9), ..guest.check_in.clone().unwrap() };
    let retry = test.store().check_in(event.id, 2, known).await;
    assert_eq!(retry, Ok(CheckInOutcome::Repeated(guest.clone())), "a retry after a lost response");
    let early = CheckIn { at: registered_at(test, &event, 1).await - Duration::from_secs(60), ..check_in(7) };
    let Ok(CheckInOutcome::CheckedIn(early)) = test.store().check_in(event.id, 1, early).await else { panic!() };
    assert_eq!(
        (early.txn, early.check_in.map(|check_in| check_in.at)),
        (first, Some(early.verified_at)),
        "no check-in is earlier than the registration"
    );
    for (event_id, number) in [(event.id, 0), (event.id, 3), (EventId::generate(event.client.partition(), 1), 1)] {
        assert_eq!(test.store().check_in(event_id, number, check_in(1)).await, Ok(CheckInOutcome::NotFound));
    }
    let listed = list_guests(test, &event).await;
    assert_eq!((listed[0].txn, &listed[1]), (first, guest));
    assert_eq!(test.store().load_registration(event.id, 2).await.unwrap().unwrap().guest, *guest);
    assert_eq!(load_counts(test, &event).await.checked_in, 2);
}

/// Returns the time at which the guest with this number was registered.
async fn registered_at(test: &impl TestStore, event: &Event, number: usize) -> Timestamp {
    list_guests(test, event).await[number - 1].verified_at
}

pub(crate) async fn erasing_a_guest_removes_the_duplicate_marks_that_name_the_guest(test: &impl TestStore) {
    let event = create_event(test, OnDuplicate::Flag).await;
    let (first, _) = admit_with_traits(test, &event, &[1]).await;
    let (second, _) = admit_with_traits(test, &event, &[1, 2]).await;
    let (_, _) = admit_with_traits(test, &event, &[2]).await;
    let (_, _) = admit_with_traits(test, &event, &[1]).await;
    let marks = |guests: Vec<Guest>| guests.into_iter().map(|guest| guest.duplicate_of).collect::<Vec<_>>();
    assert_eq!(marks(list_guests(test, &event).await), [None, Some(first), Some(second), Some(first)]);
    test.store().erase(ErasureSubject::Transaction(second)).await.unwrap();
    assert_eq!(marks(list_guests(test, &event).await), [None, None, None, Some(first)]);
    assert_eq!(load_counts(test, &event).await.duplicates, 1);
    test.store().erase(ErasureSubject::Transaction(first)).await.unwrap();
    assert_eq!(marks(list_guests(test, &event).await), [None; 4]);
    let counted = load_counts(test, &event).await;
    assert_eq!((counted.registrations, counted.duplicates), (4, 0));
}

pub(crate) async fn a_person_is_recognised_after_the_first_registration_is_erased(test: &impl TestStore) {
    let event = create_event(test, OnDuplicate::Flag).await;
    let (first, _) = admit_with_traits(test, &event, &[1, 2]).await;
    let (second, _) = admit_with_traits(test, &event, &[3, 1]).await;
    let last_mark = async || list_guests(test, &event).await.pop().and_then(|guest| guest.duplicate_of);
    assert_eq!(last_mark().await, Some(first));
    test.store().erase(ErasureSubject::Transaction(first)).await.unwrap();
    admit_with_traits(test, &event, &[2]).await;
    assert_eq!(last_mark().await, None, "only the erased guest had this trait");
    let (third, _) = admit_with_traits(test, &event, &[1]).await;
    assert_eq!(last_mark().await, Some(second));
    test.store().erase(ErasureSubject::Transaction(second)).await.unwrap();
    assert_eq!(last_mark().await, None);
    admit_with_traits(test, &event, &[3]).await;
    assert_eq!(last_mark().await, None, "the traits of the second guest are erased too");
    admit_with_traits(test, &event, &[1, 4]).await;
    assert_eq!(last_mark().await, Some(third));
    assert_eq!(load_counts(test, &event).await.duplicates, 1);
    patch_event(test, &event, EventPatch { on_duplicate: Some(OnDuplicate::Refuse), ..EventPatch::default() }).await;
    test.store().erase(ErasureSubject::Transaction(third)).await.unwrap();
    assert_eq!(admit_with_traits(test, &event, &[1]).await.1, Some(EventRefusal::Duplicate));
}

pub(crate) async fn concurrent_registrations_after_an_erasure_are_all_duplicates(test: &impl TestStore) {
    let event = create_event(test, OnDuplicate::Flag).await;
    let (first, _) = admit_with_traits(test, &event, &[1]).await;
    admit_with_traits(test, &event, &[1]).await;
    test.store().erase(ErasureSubject::Transaction(first)).await.unwrap();
    let ids = join_all((0..6).map(|_| open_guest_scan(test, &event))).await;
    join_all(ids.iter().map(|id| test.store().complete_transaction(build_completion_with_traits(*id, &[1, 2])))).await;
    let listed = list_guests(test, &event).await;
    assert_eq!((listed.len(), listed[1].duplicate_of), (8, None));
    assert!(listed[2..].iter().all(|guest| guest.duplicate_of.is_some()), "{listed:?}");
    assert_eq!(load_counts(test, &event).await.duplicates, 6);
}

pub(crate) async fn an_erased_guest_has_no_name_and_no_traits_but_stays_checked_in(test: &impl TestStore) {
    let event = create_event(test, OnDuplicate::Refuse).await;
    let (erased, _) = admit_with_traits(test, &event, &[1, 2, 3]).await;
    let (other, _) = admit_with_traits(test, &event, &[4]).await;
    test.store()
        .check_in(event.id, 1, CheckIn { id: CheckInId::new(1), at: test.now(), gate: "A".into() })
        .await
        .unwrap();
    let before = list_guests(test, &event).await;
    let open = |guest: &Guest| test_vault(&[7]).open(guest.txn.as_bytes(), &guest.name).unwrap().to_vec();
    assert_eq!([open(&before[0]), open(&before[1])], [b"Asha Rao"; 2]);
    test.store().erase(ErasureSubject::Transaction(erased)).await.unwrap();
    let after = list_guests(test, &event).await;
    assert_eq!((after[0].txn, &after[0].check_in, after[1].txn), (erased, &before[0].check_in, other));
    assert_eq!([open(&after[0]), open(&after[1])], [b"".to_vec(), b"Asha Rao".to_vec()]);
    for number in 1..=3 {
        assert_eq!(admit_with_traits(test, &event, &[number]).await.1, None, "trait {number} is erased");
    }
    assert_eq!(admit_with_traits(test, &event, &[4]).await.1, Some(EventRefusal::Duplicate));
    assert!(matches!(
        test.store().check_in(event.id, 1, CheckIn { id: CheckInId::new(2), at: test.now(), gate: "B".into() }).await,
        Ok(CheckInOutcome::AlreadyCheckedIn(_))
    ));
}
