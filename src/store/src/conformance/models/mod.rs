//! Small models of what a store must answer. Tests make random sequences of calls and compare the answers of every store
//! with those of the model.

pub(crate) mod event;
pub(crate) mod flows;
pub(crate) mod transactions;

use std::pin::Pin;

use futures_util::future::join_all;

/// How a store behaves where the trait leaves it a choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// Calls that are made together are executed in the order in which they were made.
    pub(crate) in_order: bool,
    /// Records that have ended are gone, and leave nothing for `sweep` to remove.
    pub(crate) expires: bool,
}

type AnswerFuture = Pin<Box<dyn Future<Output = String>>>;

/// Makes the calls at the same time if the store executes them in order, otherwise one after the other; returns the answers.
async fn call_all(behaviour: Behaviour, calls: impl Iterator<Item = AnswerFuture>) -> Vec<String> {
    if behaviour.in_order {
        return join_all(calls).await;
    }
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await);
    }
    answers
}
