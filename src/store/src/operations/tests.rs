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

mod moving;
mod reseal;

/// A store in memory, with a clock that the test moves.
struct MemoryTestStore {
    store: RecordStore,
    engine: MemoryEngine,
    clock: Arc<ManualClock>,
}

fn test_store() -> MemoryTestStore {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
    store_with(MemoryEngine::new(clock.clone()), clock, &[7, 6], NodeId::generate())
}

/// The store of a node over what is kept, with these keys; the first seals.
fn store_with(engine: MemoryEngine, clock: Arc<ManualClock>, keys: &[u8], node: NodeId) -> MemoryTestStore {
    let store = RecordStore::new(Box::new(engine.clone()), Arc::new(test_vault(keys)), RETENTION, node, None);
    MemoryTestStore { store, engine, clock }
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
