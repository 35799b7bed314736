//! The properties of every store while replies are lost, as `redis::lost_replies` does it.

mod conformance {
    use std::sync::atomic::Ordering;

    use super::super::{RedisTestStore, test_store};

    fn losing() -> RedisTestStore {
        let test = test_store();
        test.store.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
        test
    }

    crate::store_conformance!(losing());
}
