//! Guarantees of event actors to readers and watchers of an event.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::event::{Event, EventPatch, EventRefusal, EventStatus, MaxGuests};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_kit::records;
use sakshi_kit::waiting::TIMEOUT;
use sakshi_store::{CreateEvent, CreateOutcome, OpenOutcome, PatchEventOutcome};

use super::counter::CounterOf;
use super::{Fixture, run, verified, wait_until};
use crate::CompleteReply;

/// Time from the creation of the tests' events to their end.
const LIFE: Duration = Duration::from_secs(7_200);

impl Fixture {
    async fn create_event(&self, max_guests: u64) -> EventId {
        let id = self.events.new_id(&self.client);
        let mut event = records::event(id, self.client.clone(), self.app.clone(), self.clock.now(), LIFE);
        event.terms.max_guests = MaxGuests::new(max_guests).unwrap();
        let outcome =
            self.store.create_event(CreateEvent { event, events_max: None, idempotency: None }).await.unwrap();
        assert_eq!(outcome, CreateOutcome::Created);
        id
    }

    /// Opens the transaction of a guest who scanned the event's code.
    async fn scan(&self, event: EventId) -> (TxnId, OpenOutcome) {
        let id = self.transactions.new_id(&self.client);
        let mut opening = self.opening(id, None);
        Arc::make_mut(&mut opening.pending).event = Some(event);
        (id, self.transactions.open(opening).await.unwrap())
    }

    async fn get_event(&self, id: EventId) -> Event {
        match self.events.get(id).await.unwrap() {
            Some(event) => (*event).clone(),
            None => panic!("the event is gone"),
        }
    }

    fn live_events(&self) -> i64 {
        let shards = self.tree.view().children.into_iter().filter(|node| node.kind == "event_registry");
        assert_eq!(shards.map(|node| node.live).sum::<i64>(), self.tree.live_events());
        self.tree.live_events()
    }
}

#[test]
fn a_guest_after_the_last_place_is_refused_on_every_delivery() {
    run(async {
        let fixture = Fixture::new().await;
        let event = fixture.create_event(1).await;
        let ((first, _), (second, _)) = (fixture.scan(event).await, fixture.scan(event).await);
        assert_eq!(fixture.complete(first, verified(1)).await, CompleteReply::Accepted);
        for _ in 0..2 {
            assert_eq!(fixture.complete(second, verified(2)).await, CompleteReply::EventRefused(EventRefusal::Full));
            wait_until("the actors have ended", || fixture.tree.live_transactions() == 0).await;
        }
        assert_eq!(fixture.scan(event).await.1, OpenOutcome::EventRefused(EventRefusal::Full));
        let counts = fixture.get_event(event).await.counts;
        assert_eq!((counts.registrations, counts.scans), (1, 2));
        assert_eq!(fixture.credits_spent().await, 2, "one credit per scan, none for the refused one");
        fixture.end().await;
    });
}

#[test]
fn a_watcher_sees_a_registration_and_a_change_by_the_organiser() {
    run(async {
        let fixture = Fixture::new().await;
        let event = fixture.create_event(5).await;
        let mut watch = fixture.events.watch(event).await.unwrap().unwrap();
        let (guest, _) = fixture.scan(event).await;
        let seen = tokio::time::timeout(TIMEOUT, watch.wait_for(|event| event.counts.pending == 1)).await;
        assert!(seen.unwrap().is_ok(), "a scan");
        fixture.complete(guest, verified(1)).await;
        let seen = tokio::time::timeout(TIMEOUT, watch.wait_for(|event| event.counts.registrations == 1)).await;
        assert!(seen.unwrap().is_ok(), "a registration");
        let patch = EventPatch { is_active: Some(false), ..EventPatch::default() };
        let outcome = fixture.events.patch(event, fixture.app.clone(), patch).await.unwrap();
        assert!(matches!(outcome, PatchEventOutcome::Patched(_)));
        assert!(watch.wait_for(|event| !event.terms.is_active).await.is_ok());
        assert_eq!(fixture.scan(event).await.1, OpenOutcome::EventRefused(EventRefusal::Disabled));
        fixture.end().await;
    });
}

#[test]
fn watchers_are_notified_less_often_the_more_there_are() {
    run(async {
        let fixture = Fixture::new().await;
        let event = fixture.create_event(5).await;
        let mut watch = fixture.events.watch(event).await.unwrap().unwrap();
        let crowd: Vec<_> = (0..5_000).map(|_| watch.clone()).collect();
        let mut times = Vec::new();
        for places in [6, 7, 8] {
            let max_guests = MaxGuests::new(places).unwrap();
            let patch = EventPatch { max_guests: Some(max_guests), ..EventPatch::default() };
            fixture.events.patch(event, fixture.app.clone(), patch).await.unwrap();
            assert_eq!(fixture.get_event(event).await.terms.max_guests, max_guests, "a reader sees the change at once");
            assert!(watch.changed().await.is_ok());
            assert_eq!(watch.borrow_and_update().terms.max_guests, max_guests);
            times.push(tokio::time::Instant::now());
        }
        // Twice 1.2 seconds; a busy machine may have noticed the first one late.
        assert!(times[2] - times[0] >= Duration::from_millis(1_200), "{times:?}");
        drop(crowd);
        fixture.end().await;
    });
}

#[test]
fn an_event_actor_ends_with_its_event_or_with_the_extended_event() {
    run(async {
        let fixture = Fixture::new().await;
        let (ending, extended) = (fixture.create_event(5).await, fixture.create_event(5).await);
        fixture.get_event(ending).await;
        fixture.get_event(extended).await;
        assert_eq!(fixture.live_events(), 2);
        let patch = EventPatch { expires_at: Some(fixture.clock.now() + LIFE * 2), ..EventPatch::default() };
        fixture.events.patch(extended, fixture.app.clone(), patch).await.unwrap();
        fixture.clock.advance(LIFE);
        wait_until("the ended one is gone", || fixture.live_events() == 1).await;
        assert_eq!(fixture.get_event(extended).await.status(fixture.clock.now()), EventStatus::Active);
        assert_eq!(fixture.get_event(ending).await.status(fixture.clock.now()), EventStatus::Expired);
        assert_eq!(fixture.scan(ending).await.1, OpenOutcome::EventRefused(EventRefusal::Expired));
        fixture.end().await;
    });
}

#[test]
fn a_crowd_shares_reads_and_each_reader_sees_earlier_changes() {
    let reads = CounterOf::new("sakshi_event_reads_total");
    metrics::with_local_recorder(&reads, || {
        run(async {
            let fixture = Fixture::new().await;
            let event = fixture.create_event(5).await;
            fixture.get_event(event).await;
            for scans in 1..=3 {
                fixture.scan(event).await;
                let crowd = join_all((0..200).map(|_| fixture.events.get(event))).await;
                for seen in crowd {
                    assert!(matches!(seen, Ok(Some(event)) if event.counts.scans == scans));
                }
            }
            fixture.end().await;
        });
    });
    let reads = reads.count();
    assert!((1..300).contains(&reads), "{reads} reads for 600 readers");
}

#[test]
fn a_page_may_show_a_recent_read_while_no_limit_is_near() {
    // With fewer than 500 free places the event is read again.
    for (max_guests, scans_shown) in [(500, 0), (499, 1)] {
        run(async {
            let fixture = Fixture::new().await;
            let event = fixture.create_event(max_guests).await;
            let recent_scans = async || fixture.events.get_recent(event).await.unwrap().unwrap().counts.scans;
            fixture.get_event(event).await;
            fixture.scan(event).await;
            fixture.clock.advance(Duration::from_millis(299));
            assert_eq!((recent_scans().await, max_guests), (scans_shown, max_guests));
            fixture.clock.advance(Duration::from_millis(1));
            assert_eq!(recent_scans().await, 1);
            fixture.scan(event).await;
            assert_eq!(fixture.get_event(event).await.counts.scans, 2, "other readers see the current event");
            assert_eq!(recent_scans().await, 2);
            let patch = EventPatch { is_active: Some(false), ..EventPatch::default() };
            fixture.events.patch(event, fixture.app.clone(), patch).await.unwrap();
            assert!(
                !fixture.events.get_recent(event).await.unwrap().unwrap().terms.is_active,
                "a change by the organiser on this node is visible at once"
            );
            fixture.end().await;
        });
    }
}

#[test]
fn an_unknown_event_admits_no_guest_and_starts_no_actor() {
    run(async {
        let fixture = Fixture::new().await;
        let unknown_event = fixture.events.new_id(&fixture.client);
        assert_eq!(fixture.events.get(unknown_event).await.unwrap(), None);
        assert!(fixture.events.watch(unknown_event).await.unwrap().is_none());
        assert_eq!(fixture.scan(unknown_event).await.1, OpenOutcome::EventNotFound);
        assert_eq!((fixture.live_events(), fixture.credits_spent().await), (0, 0));
        fixture.end().await;
    });
}
