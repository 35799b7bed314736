//! The embedded store: the conformance suite, and failures of files, disks and processes.

mod audit_log;
mod backup;
mod canary;
mod check;
mod clock;
mod compiled;
mod damage;
mod durability;
mod erasure;
mod faults;
mod files;
mod installation;
pub(crate) mod lies;
mod models;
mod plans;
mod reseal;
mod retention;
mod schema;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sakshi_domain::clock::{Clock, ManualClock};
use sakshi_domain::time::Timestamp;
use sakshi_kit::redis::TIMEOUT;
use tempfile::TempDir;

use super::{EmbeddedOptions, EmbeddedStore};
use crate::conformance::TestStore;
use crate::conformance::fixture::{RETENTION, client_with};
use crate::installation::test_ownership;
use crate::vault::test_vault;
use crate::{Store, StoreError, Upgrading, Vault};

/// The time at which the clock of a test starts.
const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// A store in a temporary directory, with a clock that the test advances.
struct EmbeddedTestStore {
    store: EmbeddedStore,
    clock: Arc<ManualClock>,
    directory: TempDir,
}

/// Returns the options of the store in a temporary directory.
fn options(directory: &Path, clock: Arc<ManualClock>) -> EmbeddedOptions {
    let (directory, ownership) = (directory.join("store"), test_ownership());
    EmbeddedOptions {
        directory,
        clock,
        vault: vault(),
        retention: RETENTION,
        max_waiting: 4_096,
        ownership,
        upgrading: Upgrading::default(),
    }
}

/// Returns the vault of the tests.
fn vault() -> Arc<Vault> {
    Arc::new(test_vault(&[7]))
}

/// Opens a store as soon as no process has its files open: the processes that other tests start inherit open files for
/// a moment.
pub(crate) fn open_when_free(options: &EmbeddedOptions) -> Result<EmbeddedStore, StoreError> {
    let started = Instant::now();
    loop {
        match EmbeddedStore::open(options.clone()) {
            Err(StoreError::InUse(_)) if started.elapsed() < TIMEOUT => std::thread::yield_now(),
            result => return result,
        }
    }
}

/// Opens the store in a temporary directory, at the time [`START`].
fn open(directory: &Path) -> Result<EmbeddedStore, StoreError> {
    open_when_free(&options(directory, Arc::new(ManualClock::starting_at(START))))
}

/// Returns a fresh store in a temporary directory.
fn test_store() -> EmbeddedTestStore {
    test_store_with(|_| {})
}

/// Returns a store whose options were changed.
fn test_store_with(change: impl FnOnce(&mut EmbeddedOptions)) -> EmbeddedTestStore {
    test_store_within(change, None)
}

/// Returns a store whose options were changed, in a file of at most `max_pages` pages.
fn test_store_within(change: impl FnOnce(&mut EmbeddedOptions), max_pages: Option<u32>) -> EmbeddedTestStore {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::starting_at(START));
    let mut options = options(directory.path(), Arc::clone(&clock));
    change(&mut options);
    EmbeddedTestStore { store: EmbeddedStore::open_within(options, max_pages).unwrap(), clock, directory }
}

impl TestStore for EmbeddedTestStore {
    fn store(&self) -> &Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

mod conformance {
    use super::test_store;

    crate::store_conformance!(test_store());
}

/// The store in memory, which the fuzzer uses.
mod in_memory {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::ResealCursor;
    use crate::conformance::ClockedStore;
    use crate::conformance::fixture::{audited_balance, open_and_complete};
    use crate::embedded::database::connection::STATEMENTS_CACHED;
    use crate::engine::embedded::EmbeddedEngine;
    use crate::engine::embedded::statements::text_count;
    use crate::operations::Store;
    use crate::records::ALL;
    use crate::redis::NodeId;

    fn test_store() -> ClockedStore<EmbeddedStore> {
        let clock = Arc::new(ManualClock::starting_at(START));
        ClockedStore {
            store: EmbeddedStore::in_memory(clock.clone(), vault(), RETENTION, &test_ownership()).unwrap(),
            clock,
        }
    }

    crate::store_conformance!(check_every_property: _nothing = () => test_store());

    /// Statements are counted per thread, and a store in memory uses the thread of the test.
    #[test]
    fn every_property_holds_and_a_connection_caches_every_statement_that_they_need() {
        check_every_property();
        assert!((100..=STATEMENTS_CACHED).contains(&text_count()), "{}", text_count());
    }

    #[tokio::test]
    async fn a_job_that_fails_halfway_is_rolled_back() {
        const EMPTY_BALANCES: &str = "UPDATE client_record SET balance = 0";
        let test = test_store();
        let client = client_with(&test, 5).await;
        let refused =
            test.store.sqlite().write(0, |db| db.change(EMPTY_BALANCES, []).and_then(|_| db.change("no SQL", [])));
        assert!(refused.await.is_err());
        let panics = test.store.sqlite().write(0, |db| -> rusqlite::Result<()> {
            db.change(EMPTY_BALANCES, [])?;
            panic!("a bug")
        });
        assert!(panics.await.is_err());
        assert_eq!(audited_balance(&test, &client).await, 5);
    }

    #[tokio::test]
    async fn resealing_in_memory_completes_immediately() {
        let test = test_store();
        let client = client_with(&test, 5).await;
        open_and_complete(&test, &client).await;
        let engine = Box::new(EmbeddedEngine::new(test.store.sqlite().clone(), ALL));
        let store = Store::new(engine, Arc::new(test_vault(&[8, 7])), RETENTION, NodeId::ALONE, None);
        let (mut next, mut resealed) = (Some(ResealCursor::default()), 0);
        while let Some(from) = next {
            let step = store.reseal(from, 100).now_or_never().unwrap().unwrap();
            (next, resealed) = (step.next, resealed + step.resealed);
        }
        assert!(resealed > 0);
    }
}
