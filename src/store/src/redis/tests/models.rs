//! The Redis store against the models of every store.

use super::{test_store, test_store_keeping};

crate::conformance::models::store_models!(
    Behaviour { in_order: false, expires: true }, test_store(), test_store_keeping(event::KEPT), transactions: 32,
    events: 32, flows: 24
);
