//! Models: protocols as state machines small enough for a model checker to visit every state (`stateright`, in the
//! tests here). That of the outbox is in the kit, because tests of real nodes are compared with it too.

pub mod ledger;
#[cfg(test)]
mod tests;
