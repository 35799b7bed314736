//! The cache of signed intents for pages.

use std::rc::Rc;
use std::time::Duration;

use sakshi_domain::clock::Clock as _;
use sakshi_domain::limits::{PAGE_INTENT_REUSED_MAX, PAGE_INTENTS_KEPT_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use sakshi_pages::intents::{PageIntent, PageIntents};
use sakshi_service::Service;

use crate::pages_fixture::PagesFixture;

/// Signs an intent for a transaction and puts it into the cache.
async fn sign_and_cache(intents: &PageIntents, service: &Service, pending: &Pending, now: Timestamp) -> Rc<PageIntent> {
    let signed = service.authority.sign_intent(pending, now).await.unwrap();
    intents.cache(pending.id, signed.jwt, now).unwrap()
}

#[actix_rt::test]
async fn a_signed_intent_is_reused_for_a_limited_time() {
    let fixture = PagesFixture::new().await;
    let (pending, service) = (fixture.open(|_| {}).await, &fixture.shared.service);
    let intents = PageIntents::default();
    let signed = sign_and_cache(&intents, service, &pending, fixture.clock.now()).await;
    fixture.clock.advance(PAGE_INTENT_REUSED_MAX - Duration::from_millis(1));
    assert_eq!(intents.find_reusable(pending.id, fixture.clock.now()).unwrap().jwt, signed.jwt);
    fixture.clock.advance(Duration::from_millis(1));
    assert!(intents.find_reusable(pending.id, fixture.clock.now()).is_none());
}

#[actix_rt::test]
async fn an_intent_near_its_end_is_reused_for_a_quarter_of_its_time() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    fixture.clock.advance(pending.expires_at.since(fixture.clock.now()) - Duration::from_secs(20));
    let intents = PageIntents::default();
    let now = fixture.clock.now();
    sign_and_cache(&intents, &fixture.shared.service, &pending, now).await;
    assert!(intents.find_reusable(pending.id, now + Duration::from_secs(4)).is_some());
    assert!(intents.find_reusable(pending.id, now + Duration::from_secs(6)).is_none());
}

#[actix_rt::test]
async fn a_worker_keeps_only_the_newest_intents() {
    let fixture = PagesFixture::new().await;
    let first = fixture.open(|_| {}).await;
    let intents = PageIntents::default();
    let mut ids = Vec::new();
    for number in 0..=PAGE_INTENTS_KEPT_MAX {
        let id = fixture.shared.service.transactions.new_id(&first.client);
        let now = fixture.clock.now() + Duration::from_millis(number as u64);
        let pending = if number == 0 { first.clone() } else { Pending { id, ..first.clone() } };
        sign_and_cache(&intents, &fixture.shared.service, &pending, now).await;
        ids.push(pending.id);
    }
    let now = fixture.clock.now();
    assert_eq!(ids.iter().filter(|id| intents.find_reusable(**id, now).is_some()).count(), PAGE_INTENTS_KEPT_MAX);
    assert!(intents.find_reusable(first.id, fixture.clock.now()).is_none());
}
