//! The embedded store against the models of every store. What is handed over together reaches the
//! writer in groups.

use proptest::prelude::*;

use super::universe;
use crate::conformance::run;
use crate::models::{Habits, event, transactions};

const HABITS: Habits = Habits { in_order: true, expires: false };

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_does_what_the_model_says(steps in prop::collection::vec(transactions::step(), 1..160)) {
        run(transactions::compare(&universe(), HABITS, steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_at_an_event_does_what_the_model_says(steps in prop::collection::vec(event::step(), 1..200)) {
        run(event::compare(&universe(), HABITS, steps));
    }
}
