//! Models: protocols as state machines small enough that a model checker visits every state (`stateright`, in the tests here), and the
//! checker of `history`, which holds what runs do against the first of them.

pub(crate) mod history;
pub mod ledger;
pub mod outbox;
#[cfg(test)]
mod tests;
