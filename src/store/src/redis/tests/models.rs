//! The Redis store against the models of every store.

use super::{test_store, test_store_with_retention};

crate::conformance::models::store_models!(
    Behaviour { in_order: false, expires: true },
    test_store(), test_store_with_retention(event::KEPT),
    transactions: 32, events: 32, flows: 24
);
