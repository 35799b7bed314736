//! Many nodes on one Redis: any node answers for any id, and a change on one takes effect on all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "an error here is a failed test, and the output is for the reader of the test"
)]

mod audit_push;
mod degraded;
mod failover;
mod flows;
mod history;
mod intent_keys;
mod judge;
mod nodes;
mod notices;
mod outbox;
mod partition;
mod portal;
mod races;
mod rolling;
mod shipped;
mod storm;
mod upgrade;
mod watched;
