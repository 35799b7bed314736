//! The properties of every store, over the engine in memory and the one in SQLite.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::time::Timestamp;

use super::RecordStore;
use crate::Store;
use crate::conformance::TestStore;
use crate::conformance::fixture::RETENTION;
use crate::engine::Engine;
use crate::engine::memory::MemoryEngine;
use crate::redis::NodeId;
use crate::vault::test_vault;

/// A store with a clock that the test moves.
struct RecordTestStore {
    store: RecordStore,
    clock: Arc<ManualClock>,
}

/// A store over the engine that is made with a clock.
fn test_store(engine: impl FnOnce(Arc<ManualClock>) -> Box<dyn Engine>) -> RecordTestStore {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
    let engine = engine(Arc::clone(&clock));
    let store = RecordStore::new(engine, Arc::new(test_vault(&[7, 6])), RETENTION, NodeId::generate(), None);
    RecordTestStore { store, clock }
}

impl TestStore for RecordTestStore {
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

mod memory {
    use super::{MemoryEngine, test_store};

    crate::store_conformance!(test_store(|clock| Box::new(MemoryEngine::new(clock))));
}

mod sqlite {
    use std::sync::Arc;

    use futures_util::FutureExt as _;
    use sakshi_domain::clock::ManualClock;

    use super::test_store;
    use crate::embedded::EmbeddedStore;
    use crate::engine::Engine;
    use crate::engine::embedded::EmbeddedEngine;
    use crate::installation::test_ownership;
    use crate::vault::test_vault;

    fn engine(clock: Arc<ManualClock>) -> Box<dyn Engine> {
        let file = EmbeddedStore::in_memory(clock, Arc::new(test_vault(&[7, 6])), &test_ownership(), None).unwrap();
        // A store in memory works before it returns.
        Box::new(EmbeddedEngine::open(file, crate::records::ALL).now_or_never().unwrap().unwrap())
    }

    crate::store_conformance!(test_store(engine));
}
