//! Small models of what a store must answer, which every store is compared with over random
//! interleavings.

pub(crate) mod event;
pub(crate) mod flows;
pub(crate) mod transactions;

use std::pin::Pin;

use futures_util::future::join_all;

/// Where stores differ, within what the trait allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// Calls that are made together are executed in the order in which they were made.
    pub(crate) in_order: bool,
    /// Records expire by themselves when their time has passed, and leave nothing to sweep.
    pub(crate) expires: bool,
}

type AnswerFuture = Pin<Box<dyn Future<Output = String>>>;

/// Makes calls together where their order is kept, otherwise one after the other; returns their answers.
async fn answers(behaviour: Behaviour, calls: impl Iterator<Item = AnswerFuture>) -> Vec<String> {
    if behaviour.in_order {
        return join_all(calls).await;
    }
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await);
    }
    answers
}
