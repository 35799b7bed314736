//! The register of consents: every request with its decision, for the retention of the register.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::consent::{Consent, ConsentAnswer};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::flow::consent_given::ConsentDigest;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::time::Timestamp;

use super::TestStore;
use super::fixture::{
    RETENTION, build_completion, build_declined_completion, build_event, client_with, open_guest_scan, open_pending,
    register_guest, store_event,
};
use crate::consents::{ConsentPosition, ConsentQuery, StoredConsent};
use crate::{CompleteOutcome, CompleteTransaction};

const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Returns the entries of people who were asked between these times, read in pages of `limit` entries.
async fn read_register(
    test: &impl TestStore,
    client: &ClientId,
    (from, to): (Timestamp, Timestamp),
    limit: u32,
) -> Vec<StoredConsent> {
    let (mut entries, mut after) = (Vec::new(), Some(ConsentPosition::default()));
    while let Some(place) = after {
        let query = ConsentQuery { client: client.clone(), from, to, after: place, limit };
        let page = test.store().consents(query).await.unwrap();
        assert!(page.entries.len() <= limit as usize);
        entries.extend(page.entries.into_iter().map(|(_, entry)| entry));
        after = page.next;
    }
    entries
}

/// Returns all entries of a client's register of consents.
pub(crate) async fn read_whole_register(test: &impl TestStore, client: &ClientId) -> Vec<StoredConsent> {
    read_register(test, client, (Timestamp::from_millis(0), test.now() + WEEK), 100).await
}

/// Builds a consent that the client declares, identified by a number.
pub(crate) fn declared_consent(id: usize, at: Timestamp) -> Consent {
    Consent::declared(
        "pan",
        format!("planted-check-{id}"),
        AppId::generate(),
        vec!["pan".into()],
        ConsentDigest([7; 32]),
        at,
    )
}

pub(crate) async fn an_answered_verification_is_in_the_register_once(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let (passing, declining, _pending) =
        (open_pending(test, &client).await, open_pending(test, &client).await, open_pending(test, &client).await);
    test.advance(Duration::from_secs(60));
    for _ in 0..2 {
        test.store().complete_transaction(build_completion(passing.id, 1)).await.unwrap();
        let declined_answer =
            CompleteTransaction { code: Some("301".into()), ..build_declined_completion(declining.id, 2) };
        test.store().complete_transaction(declined_answer).await.unwrap();
    }
    let entries = read_whole_register(test, &client).await;
    assert_eq!(
        entries.iter().map(|entry| entry.consent.id.clone()).collect::<Vec<_>>(),
        [passing.id.to_string(), declining.id.to_string()]
    );
    let [given, not_given] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(given.consent, Consent::of_verification(&passing, true, None));
    assert_eq!(not_given.consent, Consent::of_verification(&declining, false, Some("301".into())));
    assert_eq!((given.consent.answer, not_given.consent.answer), (ConsentAnswer::Given, ConsentAnswer::NotGiven));
    assert!(given.answered_at >= passing.opened_at + Duration::from_secs(60), "{given:?}");
    assert_eq!(
        read_whole_register(test, &client_with(test, 1).await).await,
        [],
        "the register of another client is empty"
    );
}

pub(crate) async fn a_guest_who_is_refused_a_place_has_given_consent(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let event = store_event(test, build_event(test, &client, 1)).await;
    let late = open_guest_scan(test, &event).await;
    register_guest(test, &event).await;
    let outcome = test.store().complete_transaction(build_completion(late, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { .. }));
    let entries = read_whole_register(test, &client).await;
    let decisions: Vec<_> = entries
        .iter()
        .map(|entry| (entry.consent.event, entry.consent.answer, entry.consent.code.as_deref()))
        .collect();
    assert_eq!(
        decisions,
        [(Some(event.id), ConsentAnswer::Given, None), (Some(event.id), ConsentAnswer::Given, Some("event_full"))]
    );
}

pub(crate) async fn the_register_is_read_in_pages_by_the_time_of_asking(test: &impl TestStore) {
    let (client, start) = (client_with(test, 1).await, test.now());
    let mut all = Vec::new();
    for number in 0..9_usize {
        // Three entries in each of three weeks.
        test.advance(if number % 3 == 0 { WEEK } else { Duration::from_secs(1) });
        let entry = declared_consent(number, test.now());
        test.store().keep_consent(client.clone(), entry.clone()).await.unwrap();
        all.push(entry);
    }
    let ids = |entries: Vec<StoredConsent>| entries.into_iter().map(|entry| entry.consent.id).collect::<Vec<_>>();
    let expected: Vec<String> = all.iter().map(|entry| entry.id.clone()).collect();
    for limit in [1, 2, 4, 100] {
        assert_eq!(
            ids(read_register(test, &client, (start, test.now() + WEEK), limit).await),
            expected,
            "{limit} per page"
        );
    }
    let period = (all[2].opened_at, all[5].opened_at);
    assert_eq!(ids(read_register(test, &client, period, 2).await), expected[2..5]);
    assert_eq!(read_register(test, &client, (test.now() + WEEK, test.now()), 2).await, []);
}

pub(crate) async fn the_register_survives_erasure_until_its_retention_ends(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let passing = open_pending(test, &client).await;
    test.store().complete_transaction(build_completion(passing.id, 1)).await.unwrap();
    let before = read_whole_register(test, &client).await;
    assert_eq!(before.len(), 1);
    test.store().erase(ErasureSubject::Client(client.clone())).await.unwrap();
    assert_eq!(read_whole_register(test, &client).await, before, "an erasure does not change it");
    test.advance(RETENTION.consents);
    test.store().sweep(test.now(), 100).await.unwrap();
    assert_eq!(read_whole_register(test, &client).await, before);
    test.advance(WEEK);
    test.store().sweep(test.now(), 100).await.unwrap();
    assert_eq!(read_whole_register(test, &client).await, []);
}

pub(crate) async fn concurrent_first_consents_of_a_week_are_all_stored(test: &impl TestStore) {
    let (client, at) = (client_with(test, 1).await, test.now());
    let results =
        join_all((0..20).map(|number| test.store().keep_consent(client.clone(), declared_consent(number, at)))).await;
    results.into_iter().for_each(Result::unwrap);
    let mut ids: Vec<_> = read_whole_register(test, &client).await.into_iter().map(|entry| entry.consent.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20, "{ids:?}");
}

pub(crate) async fn a_query_finds_the_only_match_among_many_entries_of_its_week(test: &impl TestStore) {
    let (client, start) = (client_with(test, 1).await, test.now());
    let end = start + Duration::from_secs(1_000);
    for number in 0..600 {
        let at = if number == 599 { end } else { start };
        test.store().keep_consent(client.clone(), declared_consent(number, at)).await.unwrap();
    }
    let entries = read_register(test, &client, (end, end + WEEK), 10).await;
    assert_eq!(entries.iter().map(|entry| entry.consent.id.as_str()).collect::<Vec<_>>(), ["planted-check-599"]);
}
