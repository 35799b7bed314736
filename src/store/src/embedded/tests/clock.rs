//! A clock that is set back, as machines' clocks sometimes are.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sakshi_domain::clock::Clock;
use sakshi_domain::event::EventCounts;
use sakshi_domain::time::Timestamp;

use super::{START, options, test_store};
use crate::CompleteOutcome;
use crate::Store;
use crate::conformance::TestStore;
use crate::conformance::fixture::{WINDOW, client_with, counts, created, declining, event, registered, scanned};
use crate::embedded::EmbeddedStore;

#[derive(Debug)]
struct Settable(AtomicI64);

impl Clock for Settable {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

struct Adjusted {
    store: EmbeddedStore,
    clock: Arc<Settable>,
    _directory: tempfile::TempDir,
}

impl TestStore for Adjusted {
    fn store(&self) -> &Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.set(self.now() + span);
    }
}

impl Adjusted {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(Settable(AtomicI64::new(START.millis())));
        let options =
            crate::embedded::EmbeddedOptions { clock: clock.clone(), ..options(directory.path(), test_store().clock) };
        Self { store: EmbeddedStore::open(options).unwrap(), clock, _directory: directory }
    }

    fn set(&self, now: Timestamp) {
        self.clock.0.store(now.millis(), Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_scan_that_was_counted_as_abandoned_and_is_answered_after_all_is_abandoned_no_more() {
    let test = Adjusted::new();
    let client = client_with(&test, 10).await;
    let event = created(&test, event(&test, &client, 10)).await;
    let (first, second) = (scanned(&test, &event).await, scanned(&test, &event).await);
    test.advance(WINDOW);
    scanned(&test, &event).await;
    assert_eq!(
        counts(&test, &event).await,
        EventCounts { registrations: 0, scans: 3, abandoned: 2, pending: 1, ..EventCounts::default() }
    );
    test.set(START);
    let answer = test.store.complete_transaction(declining(first, 1)).await;
    assert!(matches!(answer, Ok(CompleteOutcome::Completed { .. })));
    registered(&test, &event).await;
    test.advance(WINDOW);
    assert_eq!(test.store.complete_transaction(declining(second, 1)).await, Ok(CompleteOutcome::Expired));
    test.advance(WINDOW * 2);
    assert_eq!(
        counts(&test, &event).await,
        EventCounts { registrations: 1, scans: 4, abandoned: 2, pending: 0, ..EventCounts::default() }
    );
}
