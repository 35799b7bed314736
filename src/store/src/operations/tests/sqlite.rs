//! The properties of every store, over the engine in SQLite.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::time::Timestamp;

use crate::Store;
use crate::conformance::TestStore;
use crate::conformance::fixture::RETENTION;
use crate::embedded::EmbeddedStore;
use crate::engine::embedded::EmbeddedEngine;
use crate::installation::test_ownership;
use crate::operations::RecordStore;
use crate::redis::NodeId;
use crate::vault::test_vault;

/// A store in SQLite, in memory, with a clock that the test moves.
struct SqliteTestStore {
    store: RecordStore,
    clock: Arc<ManualClock>,
}

fn test_store() -> SqliteTestStore {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
    let vault = Arc::new(test_vault(&[7, 6]));
    let file = EmbeddedStore::in_memory(clock.clone(), Arc::clone(&vault), &test_ownership(), None).unwrap();
    // A store in memory works before it returns.
    let engine = EmbeddedEngine::open(file, crate::records::ALL).now_or_never().unwrap().unwrap();
    SqliteTestStore { store: RecordStore::new(Box::new(engine), vault, RETENTION, NodeId::generate(), None), clock }
}

impl TestStore for SqliteTestStore {
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

crate::store_conformance!(test_store());
