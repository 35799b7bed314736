//! Small models of what a store must answer, which every store is compared with over random
//! interleavings.

pub(crate) mod event;
pub(crate) mod transactions;

use std::pin::Pin;

use futures_util::future::join_all;

/// What a store under test does otherwise than another, within what the trait allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Calls that are made together are carried out in the order in which they were made.
    pub(crate) in_order: bool,
    /// Records go by themselves when their time has passed, and leave nothing to sweep.
    pub(crate) expires: bool,
}

type Words = Pin<Box<dyn Future<Output = String>>>;

/// Makes calls together where their order is kept, else one after the other; their answers.
async fn answers(habits: Habits, calls: impl Iterator<Item = Words>) -> Vec<String> {
    if habits.in_order {
        return join_all(calls).await;
    }
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await);
    }
    answers
}
