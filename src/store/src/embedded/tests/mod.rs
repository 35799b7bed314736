//! The embedded store: the properties of every store, and what can happen to a file, a disk and a
//! process.

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
mod migration;
mod models;
mod plans;
mod reseal;
mod retention;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sakshi_domain::clock::{Clock, ManualClock};
use sakshi_domain::time::Timestamp;
use sakshi_kit::redis::TIMEOUT;
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::{EmbeddedOptions, EmbeddedStore};
use crate::conformance::fixture::{client_with, completing, opened};
use crate::conformance::{TestStore, run};
use crate::installation::test_ownership;
use crate::{Store, StoreError, TransactionRecord, Transactions as _, Vault};

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// A store in a directory of its own, with a clock that the test moves.
struct EmbeddedTestStore {
    store: EmbeddedStore,
    clock: Arc<ManualClock>,
    directory: TempDir,
}

fn options(directory: &Path, clock: Arc<ManualClock>) -> EmbeddedOptions {
    let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap());
    EmbeddedOptions { directory: directory.join("store"), clock, vault, max_waiting: 4_096, ownership: test_ownership() }
}

/// A store, once nobody else has its files: a process that another test is about to start has every open file for a moment.
pub(crate) fn open_when_free(options: &EmbeddedOptions) -> Result<EmbeddedStore, StoreError> {
    let begun = Instant::now();
    loop {
        match EmbeddedStore::open(options.clone()) {
            Err(StoreError::InUse(_)) if begun.elapsed() < TIMEOUT => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

fn open(directory: &Path) -> Result<EmbeddedStore, StoreError> {
    open_when_free(&options(directory, Arc::new(ManualClock::starting_at(START))))
}

fn test_store() -> EmbeddedTestStore {
    test_store_with(|_| {})
}

fn test_store_with(change: impl FnOnce(&mut EmbeddedOptions)) -> EmbeddedTestStore {
    test_store_within(change, None)
}

fn test_store_within(change: impl FnOnce(&mut EmbeddedOptions), max_pages: Option<u32>) -> EmbeddedTestStore {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::starting_at(START));
    let mut options = options(directory.path(), Arc::clone(&clock));
    change(&mut options);
    EmbeddedTestStore { store: EmbeddedStore::open_within(options, max_pages).unwrap(), clock, directory }
}

impl TestStore for EmbeddedTestStore {
    fn store(&self) -> &dyn Store {
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

/// The store in memory, as simulations use it.
mod in_memory {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::conformance::fixture::{audited_balance, completed};
    use crate::vault::test_vault;
    use crate::{Reseal as _, ResealCursor};

    struct InMemory {
        store: EmbeddedStore,
        clock: Arc<ManualClock>,
    }

    impl TestStore for InMemory {
        fn store(&self) -> &dyn Store {
            &self.store
        }

        fn now(&self) -> Timestamp {
            self.clock.now()
        }

        fn advance(&self, span: Duration) {
            self.clock.advance(span);
        }
    }

    /// A store that seals with the first of these keys, empty or a copy.
    fn in_memory(keys: &[u8], like: Option<&InMemory>) -> InMemory {
        let clock = Arc::new(ManualClock::starting_at(START));
        let vault = Arc::new(test_vault(keys));
        let store = EmbeddedStore::in_memory(clock.clone(), vault, &test_ownership(), like.map(|like| &like.store)).unwrap();
        InMemory { store, clock }
    }

    fn test_store() -> InMemory {
        in_memory(&[7], Some(&in_memory(&[7], None)))
    }

    crate::store_conformance!(test_store());

    #[tokio::test]
    async fn a_step_that_fails_half_way_leaves_nothing_and_the_next_one_is_carried_out() {
        const TAKES_ALL: &str = "UPDATE clients SET balance = 0";
        let test = test_store();
        let client = client_with(&test, 5).await;
        let refused = test.store.write(0, |db| db.change(TAKES_ALL, []).and_then(|_| db.change("no SQL", [])));
        assert!(refused.await.is_err());
        let panics = test.store.write(0, |db| -> rusqlite::Result<()> {
            db.change(TAKES_ALL, [])?;
            panic!("a bug")
        });
        assert!(panics.await.is_err());
        assert_eq!(audited_balance(&test, &client).await, 5);
    }

    #[tokio::test]
    async fn what_a_copy_queues_has_another_id_than_what_the_original_queues() {
        let original = in_memory(&[7], None);
        let client = client_with(&original, 5).await;
        for _ in 0..2 {
            let copy = in_memory(&[7], Some(&original));
            assert_ne!(completed(&copy, &client).await.1, completed(&original, &client).await.1);
        }
    }

    #[tokio::test]
    async fn sealing_anew_is_done_when_it_is_asked_for() {
        let original = test_store();
        let client = client_with(&original, 5).await;
        completed(&original, &client).await;
        let copy = in_memory(&[8, 7], Some(&original));
        let (mut next, mut resealed) = (Some(ResealCursor::default()), 0);
        while let Some(from) = next {
            let step = copy.store.reseal(from, 100).now_or_never().unwrap().unwrap();
            (next, resealed) = (step.next, resealed + step.resealed);
        }
        assert!(resealed > 0);
    }
}

#[test]
fn a_node_that_takes_a_copy_of_a_transaction_sees_the_steps_that_were_begun_before() {
    run(async {
        let test = test_store();
        let client = client_with(&test, 100).await;
        for _ in 0..100 {
            let id = opened(&test, &client).await.id;
            let ending = test.store.complete_transaction(completing(id, 1));
            let seen = test.store.watch_transaction(id).await.unwrap();
            assert!(matches!(seen, Some(TransactionRecord::Completed(_))), "{seen:?}");
            ending.await.unwrap();
        }
    });
}
