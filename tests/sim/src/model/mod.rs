//! Models: protocols as state machines small enough for a model checker to visit every state (`stateright`, in the
//! tests here). `history` checks runs against the model of the outbox.

pub(crate) mod history;
pub mod ledger;
pub mod outbox;
#[cfg(test)]
mod tests;
