//! The Redis store against the models of every store.

use proptest::prelude::*;

use super::{universe, universe_keeping};
use crate::conformance::run;
use crate::models::{Habits, event, transactions};

const HABITS: Habits = Habits { in_order: false, expires: true };

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_does_what_the_model_says(steps in prop::collection::vec(transactions::step(), 1..160)) {
        run(transactions::compare(&universe(), HABITS, steps));
    }

    #[test]
    fn any_interleaving_at_an_event_does_what_the_model_says(steps in prop::collection::vec(event::step(), 1..200)) {
        run(event::compare(&universe_keeping(event::KEPT), HABITS, steps));
    }
}
