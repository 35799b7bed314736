//! The register of consents: each request and its decision, kept for its own time.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::consent::{Consent, ConsentAnswer};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::flow::consent_given::ConsentDigest;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::time::Timestamp;

use super::TestStore;
use super::fixture::{RETENTION, client_with, completing, created, declining, event, opened, registered, scanned};
use crate::consents::{AskedConsents, ConsentPlace, KeptConsent};
use crate::{CompleteOutcome, CompleteTransaction};

const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Returns the entries of people asked between these times, read in pages of `limit` entries.
async fn register(
    test: &impl TestStore,
    client: &ClientId,
    (from, to): (Timestamp, Timestamp),
    limit: u32,
) -> Vec<KeptConsent> {
    let (mut entries, mut after) = (Vec::new(), Some(ConsentPlace::default()));
    while let Some(place) = after {
        let asked = AskedConsents { client: client.clone(), from, to, after: place, limit };
        let page = test.store().consents(asked).await.unwrap();
        assert!(page.entries.len() <= limit as usize);
        entries.extend(page.entries.into_iter().map(|(_, kept)| kept));
        after = page.next;
    }
    entries
}

async fn whole(test: &impl TestStore, client: &ClientId) -> Vec<KeptConsent> {
    register(test, client, (Timestamp::from_millis(0), test.now() + WEEK), 100).await
}

fn declared(id: usize, at: Timestamp) -> Consent {
    Consent::declared(
        "pan",
        format!("planted-check-{id}"),
        AppId::generate(),
        vec!["pan".into()],
        ConsentDigest([7; 32]),
        at,
    )
}

pub(crate) async fn a_verification_that_is_answered_is_in_the_register_once(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let (passes, declines, waits) =
        (opened(test, &client).await, opened(test, &client).await, opened(test, &client).await);
    test.advance(Duration::from_secs(60));
    for _ in 0..2 {
        test.store().complete_transaction(completing(passes.id, 1)).await.unwrap();
        let declining = CompleteTransaction { code: Some("301".into()), ..declining(declines.id, 2) };
        test.store().complete_transaction(declining).await.unwrap();
    }
    let entries = whole(test, &client).await;
    assert_eq!(
        entries.iter().map(|kept| kept.consent.id.clone()).collect::<Vec<_>>(),
        [passes.id.to_string(), declines.id.to_string()]
    );
    let [given, not_given] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(given.consent, Consent::of_verification(&passes, true, None));
    assert_eq!(not_given.consent, Consent::of_verification(&declines, false, Some("301".into())));
    assert_eq!((given.consent.answer, not_given.consent.answer), (ConsentAnswer::Given, ConsentAnswer::NotGiven));
    assert!(given.answered_at >= passes.opened_at + Duration::from_secs(60), "{given:?}");
    assert_eq!(whole(test, &client_with(test, 1).await).await, [], "another client has its own");
    drop(waits);
}

pub(crate) async fn a_guest_without_a_place_has_shared_all_the_same(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let event = created(test, event(test, &client, 1)).await;
    let late = scanned(test, &event).await;
    registered(test, &event).await;
    let outcome = test.store().complete_transaction(completing(late, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { .. }));
    let entries = whole(test, &client).await;
    let told: Vec<_> =
        entries.iter().map(|kept| (kept.consent.event, kept.consent.answer, kept.consent.code.as_deref())).collect();
    assert_eq!(
        told,
        [(Some(event.id), ConsentAnswer::Given, None), (Some(event.id), ConsentAnswer::Given, Some("event_full"))]
    );
}

pub(crate) async fn the_register_is_read_in_parts_by_the_time_of_the_question(test: &impl TestStore) {
    let (client, begun) = (client_with(test, 1).await, test.now());
    let mut all = Vec::new();
    for number in 0..9_usize {
        // Three in a week, three weeks.
        test.advance(if number % 3 == 0 { WEEK } else { Duration::from_secs(1) });
        let entry = declared(number, test.now());
        test.store().keep_consent(client.clone(), entry.clone()).await.unwrap();
        all.push(entry);
    }
    let ids = |entries: Vec<KeptConsent>| entries.into_iter().map(|kept| kept.consent.id).collect::<Vec<_>>();
    let expected: Vec<String> = all.iter().map(|entry| entry.id.clone()).collect();
    for limit in [1, 2, 4, 100] {
        assert_eq!(ids(register(test, &client, (begun, test.now() + WEEK), limit).await), expected, "{limit} at once");
    }
    let some = (all[2].opened_at, all[5].opened_at);
    assert_eq!(ids(register(test, &client, some, 2).await), expected[2..5]);
    assert_eq!(register(test, &client, (test.now() + WEEK, test.now()), 2).await, []);
}

pub(crate) async fn the_register_stays_as_it_is_until_its_own_time_is_over(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let passes = opened(test, &client).await;
    test.store().complete_transaction(completing(passes.id, 1)).await.unwrap();
    let before = whole(test, &client).await;
    assert_eq!(before.len(), 1);
    test.store().erase(ErasureSubject::Client(client.clone())).await.unwrap();
    assert_eq!(whole(test, &client).await, before, "an erasure leaves it alone");
    test.advance(RETENTION.consents);
    test.store().sweep(test.now(), 100).await.unwrap();
    assert_eq!(whole(test, &client).await, before);
    test.advance(WEEK);
    test.store().sweep(test.now(), 100).await.unwrap();
    assert_eq!(whole(test, &client).await, []);
}

pub(crate) async fn consents_that_race_for_a_new_week_are_all_kept(test: &impl TestStore) {
    let (client, at) = (client_with(test, 1).await, test.now());
    let kept = join_all((0..20).map(|number| test.store().keep_consent(client.clone(), declared(number, at)))).await;
    kept.into_iter().for_each(Result::unwrap);
    let mut ids: Vec<_> = whole(test, &client).await.into_iter().map(|kept| kept.consent.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20, "{ids:?}");
}

pub(crate) async fn a_period_of_which_little_is_asked_for_is_read_all_the_same(test: &impl TestStore) {
    let (client, begun) = (client_with(test, 1).await, test.now());
    let end = begun + Duration::from_secs(1_000);
    for number in 0..600 {
        let at = if number == 599 { end } else { begun };
        test.store().keep_consent(client.clone(), declared(number, at)).await.unwrap();
    }
    let found = register(test, &client, (end, end + WEEK), 10).await;
    assert_eq!(found.iter().map(|kept| kept.consent.id.as_str()).collect::<Vec<_>>(), ["planted-check-599"]);
}
