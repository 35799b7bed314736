//! Transitions: each turns a command into a [`Batch`](crate::engine::Batch), and a refused guard into an outcome. They
//! call the rules of the domain in the order of the specification, and have no engine, no clock and no I/O of their
//! own.

pub(crate) mod audit;
pub(crate) mod client_log;
pub(crate) mod complete;
pub(crate) mod consent;
pub(crate) mod console;
pub(crate) mod credential;
pub(crate) mod credits;
pub(crate) mod day;
pub(crate) mod delivery;
pub(crate) mod erasure;
pub(crate) mod event;
pub(crate) mod flow;
pub(crate) mod guests;
pub(crate) mod idempotency;
pub(crate) mod open;
pub(crate) mod operator;
pub(crate) mod refusal;
pub(crate) mod session;
pub(crate) mod summary;
pub(crate) mod tenancy;
pub(crate) mod transfer;
pub(crate) mod user;
