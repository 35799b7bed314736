//! The Redis store against the models of every store.

use super::{test_store, test_store_with_retention};

crate::conformance::models::store_models!(
    Behaviour { executes_in_order: false, removes_expired: true },
    test_store(), test_store_with_retention(event::EVENT_RETENTION),
    transactions: 32, events: 32, flows: 24
);
