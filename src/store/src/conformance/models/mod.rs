//! Small models of a store. Tests run random sequences of calls and compare the answers of a store with the model's.

pub(crate) mod event;
pub(crate) mod flows;
pub(crate) mod transactions;

use std::pin::Pin;

use futures_util::future::join_all;
use proptest::prelude::ProptestConfig;

/// Behaviour in which stores may differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// True if concurrent calls are executed in the order in which they were made.
    pub(crate) executes_in_order: bool,
    /// True if expired records are removed without `sweep`.
    pub(crate) removes_expired: bool,
}

/// Compares a store with the models over random sequences of calls. `$behaviour` is its [`Behaviour`].
/// `$retaining_store` creates a store with the
/// retention [`event::EVENT_RETENTION`]. The literals are the numbers of cases.
macro_rules! store_models {
    ($behaviour:expr, $store:expr, $retaining_store:expr, transactions: $transactions:literal, events: $events:literal,
        flows: $flows:literal) => {
        use proptest::prelude::*;

        use crate::conformance::models::{Behaviour, event, flows, transactions};
        use crate::conformance::run;

        proptest! {
            #![proptest_config($crate::conformance::models::cases($transactions))]

            #[test]
            fn any_interleaving_agrees_with_the_model(steps in prop::collection::vec(transactions::step(), 1..160)) {
                run(transactions::compare(&$store, $behaviour, steps));
            }
        }

        proptest! {
            #![proptest_config($crate::conformance::models::cases($events))]

            #[test]
            fn any_interleaving_at_an_event_agrees_with_the_model(steps in prop::collection::vec(event::step(),
                1..200)) {
                run(event::compare(&$retaining_store, $behaviour, steps));
            }
        }

        proptest! {
            #![proptest_config($crate::conformance::models::cases($flows))]

            #[test]
            fn any_interleaving_of_reports_agrees_with_the_model(steps in prop::collection::vec(flows::step(),
                1..60)) {
                run(flows::compare(&$store, steps));
            }

            #[test]
            fn racing_reports_queue_at_most_one_delivery_for_each_key(steps in prop::collection::vec(flows::step(),
                1..24)) {
                run(flows::race(&$store, steps));
            }
        }
    };
}
pub(crate) use store_models;

/// Returns the configuration of proptest for this number of cases, or for eight times as many in the long form.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let is_long = std::env::var("SAKSHI_TESTS").is_ok_and(|form| form == "long");
    ProptestConfig {
        cases: if is_long { 8 * cases } else { cases },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The answer of a store to a step, in the words of a model.
type AnswerFuture = Pin<Box<dyn Future<Output = String>>>;

/// Makes the calls concurrently if the store executes them in order, and otherwise one after the other. Returns the
/// answers.
async fn call_all(behaviour: Behaviour, calls: impl Iterator<Item = AnswerFuture>) -> Vec<String> {
    if behaviour.executes_in_order {
        return join_all(calls).await;
    }
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await);
    }
    answers
}
