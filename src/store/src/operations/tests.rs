//! The properties of every store, over the memory engine.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::time::Timestamp;

use super::RecordStore;
use crate::Store;
use crate::conformance::TestStore;
use crate::conformance::fixture::RETENTION;
use crate::engine::memory::MemoryEngine;
use crate::redis::NodeId;
use crate::vault::test_vault;

/// A store in memory, with a clock that the test moves.
struct MemoryTestStore {
    store: RecordStore,
    clock: Arc<ManualClock>,
}

fn test_store() -> MemoryTestStore {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
    let engine = Box::new(MemoryEngine::new(clock.clone()));
    let store = RecordStore::new(engine, Arc::new(test_vault(&[7, 6])), RETENTION, NodeId::generate(), None);
    MemoryTestStore { store, clock }
}

impl TestStore for MemoryTestStore {
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
