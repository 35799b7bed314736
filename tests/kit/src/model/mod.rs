//! The model of the outbox: its protocol as a state machine small enough for a model checker to visit every state
//! (`sakshi-sim`, `model::tests`). `history` checks runs against it.

pub mod history;
pub mod outbox;
