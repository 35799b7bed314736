//! The kiosk load tester: lets guests through a running service and proves what it promises about them.
//!
//! It knows the service from outside only: HTTP, the authority's protocol and the sandbox issuer's key.
//! It measures, but its first purpose is the judgement: every run ends with the service's own account
//! (ledger, registrations, counts) and the receiver's held against a journal of what was answered.
//! [`capacity`] makes no run: it computes machines from measured costs.

pub mod capacity;
pub mod cli;
pub mod device;
pub mod engine;
pub mod operator;
pub mod plan;
pub mod receiver;
pub mod record;
pub mod report;
pub mod run;
pub mod schedule;
pub mod signer;
pub mod strain;
pub mod summary;
pub mod target;
pub mod transport;
pub mod visit;
pub mod watch;
