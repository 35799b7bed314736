//! Repeated SIGKILLs of a process with an embedded store, under load.
//!
//! The tests record every answer in a journal. Afterwards the store must contain all of it, have charged for nothing
//! else, and have sent no webhook twice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "whatever goes wrong here is a failed test, and what it prints is for its reader"
)]

mod damage;
mod event_storm;
mod flow_outbox;
mod flow_storm;
mod outbox;
mod storm;
