//! The embedded store against the models.

use super::{test_store, test_store_with};

crate::conformance::models::store_models!(
    Behaviour { executes_in_order: false, removes_expired: false }, test_store(),
    test_store_with(|options| options.retention = event::EVENT_RETENTION),
    transactions: 32, events: 32, flows: 24
);
