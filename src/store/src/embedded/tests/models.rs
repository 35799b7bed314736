//! The embedded store against the models of every store.

use proptest::prelude::*;

use super::{test_store, test_store_with};
use crate::conformance::models::{Behaviour, event, flows, transactions};
use crate::conformance::run;

const BEHAVIOUR: Behaviour = Behaviour { in_order: false, expires: false };

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_does_what_the_model_says(steps in prop::collection::vec(transactions::step(), 1..160)) {
        run(transactions::compare(&test_store(), BEHAVIOUR, steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_at_an_event_does_what_the_model_says(steps in prop::collection::vec(event::step(), 1..200)) {
        run(event::compare(&test_store_with(|options| options.retention = event::KEPT), BEHAVIOUR, steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_of_reports_does_what_the_model_says(steps in prop::collection::vec(flows::step(), 1..60)) {
        run(flows::compare(&test_store(), steps));
    }

    #[test]
    fn racing_reports_queue_at_most_one_delivery_for_each_key(steps in prop::collection::vec(flows::step(), 1..24)) {
        run(flows::race(&test_store(), steps));
    }
}
