//! The properties of every store, over the engine in Redis.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_domain::time::Timestamp;

use super::RedisTestStore;
use crate::Store;
use crate::conformance::TestStore;
use crate::engine::redis::RedisEngine;
use crate::operations::RecordStore;

/// Records on a server, and the store that has the connections.
struct Records {
    store: RecordStore,
    redis: RedisTestStore,
}

fn test_store() -> Records {
    let redis = super::test_store();
    let (engine, shared) = (Box::new(RedisEngine::new(redis.store.clone())), &redis.store.shared);
    let store = RecordStore::new(engine, shared.vault.clone(), shared.retention, shared.node, None);
    Records { store, redis }
}

/// The same while replies are lost, as `redis::lost_replies` does it.
fn losing() -> Records {
    let test = test_store();
    test.redis.store.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
    test
}

impl TestStore for Records {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.redis.now()
    }

    fn advance(&self, span: Duration) {
        self.redis.advance(span);
    }
}

mod conformance {
    use super::test_store;

    crate::store_conformance!(test_store());
}

mod lost_replies {
    use super::losing;

    crate::store_conformance!(losing());
}
