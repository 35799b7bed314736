//! A clock that is set back.

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
use crate::conformance::fixture::{
    WINDOW, build_declined_completion, build_event, client_with, load_counts, open_guest_scan, register_guest,
    store_event,
};
use crate::embedded::EmbeddedStore;

/// A clock that the test sets to any time.
#[derive(Debug)]
struct SettableClock(AtomicI64);

impl Clock for SettableClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A store with a settable clock.
struct ClockTestStore {
    store: EmbeddedStore,
    clock: Arc<SettableClock>,
    _directory: tempfile::TempDir,
}

impl TestStore for ClockTestStore {
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

impl ClockTestStore {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(SettableClock(AtomicI64::new(START.millis())));
        let options =
            crate::embedded::EmbeddedOptions { clock: clock.clone(), ..options(directory.path(), test_store().clock) };
        Self { store: EmbeddedStore::open(options).unwrap(), clock, _directory: directory }
    }

    fn set(&self, now: Timestamp) {
        self.clock.0.store(now.millis(), Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_scan_completed_after_the_clock_is_set_back_no_longer_counts_as_abandoned() {
    let test = ClockTestStore::new();
    let client = client_with(&test, 10).await;
    let event = store_event(&test, build_event(&test, &client, 10)).await;
    let (first, second) = (open_guest_scan(&test, &event).await, open_guest_scan(&test, &event).await);
    test.advance(WINDOW);
    open_guest_scan(&test, &event).await;
    assert_eq!(
        load_counts(&test, &event).await,
        EventCounts { registrations: 0, scans: 3, abandoned: 2, pending: 1, ..EventCounts::default() }
    );
    test.set(START);
    let answer = test.store.complete_transaction(build_declined_completion(first, 1)).await;
    assert!(matches!(answer, Ok(CompleteOutcome::Completed { .. })));
    register_guest(&test, &event).await;
    test.advance(WINDOW);
    assert_eq!(
        test.store.complete_transaction(build_declined_completion(second, 1)).await,
        Ok(CompleteOutcome::Expired)
    );
    test.advance(WINDOW * 2);
    assert_eq!(
        load_counts(&test, &event).await,
        EventCounts { registrations: 1, scans: 4, abandoned: 2, pending: 0, ..EventCounts::default() }
    );
}
