//! The transaction actor and what it can be asked.

mod actor;
mod message;

pub(crate) use actor::TransactionActor;
pub(crate) use actor::{EndedElsewhere, Surroundings};
pub use message::{Complete, CompleteReply, View};
pub(crate) use message::{Look, Open, Subscribe, TransactionQuestion, Watch};

#[cfg(test)]
pub(crate) use actor::Detonate;
