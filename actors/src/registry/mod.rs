//! Registries: one shard per HTTP worker, each the supervisor of the actors that live there.
//!
//! A shard knows which actors are live, starts one for an id that is opened or asked about, wakes
//! each at its deadline, and forgets those that have ended.

mod children;
mod events;
mod flows;
mod oversight;
mod shard;
mod transactions;
mod wheel;

use actix::MailboxError;

pub(crate) use children::Key;
pub(crate) use events::{EventRegistry, Touched};
pub(crate) use flows::{FlowRegistry, Here, LookHere, WakeAt};
pub(crate) use shard::{Ask, Deadline};
pub(crate) use transactions::{Changed, OpenHere, TransactionRegistry};

#[cfg(test)]
pub(crate) use flows::DetonateFlow;
#[cfg(test)]
pub(crate) use transactions::Detonate;

/// What a shard allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Live actors.
    pub(crate) live: usize,
}

/// Why an actor gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It ended first; ask again.
    Gone,
    /// It took too long.
    TimedOut,
    /// The shard holds as many actors as it may.
    Full,
    /// What was handed over went down with the actor that had begun on it.
    Lost,
}

impl From<MailboxError> for Unanswered {
    fn from(error: MailboxError) -> Self {
        match error {
            MailboxError::Closed => Self::Gone,
            MailboxError::Timeout => Self::TimedOut,
        }
    }
}
