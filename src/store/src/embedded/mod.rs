//! The embedded store: one SQLite file, one thread that writes, a few that read.
//!
//! ```text
//! open, complete, claim … ──▶ bounded queue ──▶ writer ── one commit for all that waits   ──▶ answers
//! load, find, list …      ──▶ bounded queue ──▶ readers ── one snapshot for several reads ──▶ answers
//! ```
//!
//! An answer to a write is sent after its commit is on the disk, so a later read sees it. Each trait
//! of [`crate::Store`] is implemented in the file of its name, with its SQL. Records are sealed
//! before an operation is queued and opened after its answer, on the caller's side. `database` holds
//! the file and its schema, `threads` the writer and the readers.

mod audit_log;
mod backup;
mod credits;
#[cfg(feature = "fuzzing")]
mod damage;
pub(crate) mod database;
mod erasure;
mod errors;
mod events;
mod flows;
mod guests;
mod idempotency;
mod intent_key;
mod operators;
mod outbox;
mod refusals;
mod reseal;
pub(crate) mod rows;
mod sessions;
mod store;
mod tenancy;
#[cfg(test)]
pub(crate) mod tests;
mod threads;
mod transactions;
mod transfers;
mod upkeep;

pub use self::backup::{BackupContents, QueuedWebhooks, SUM, backup, inspect, restore};
#[cfg(feature = "fuzzing")]
pub use self::damage::LooseTable;
pub use self::database::check::may_open;
pub use self::store::{EmbeddedOptions, EmbeddedStore, exists};
