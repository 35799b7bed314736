//! The embedded store: one SQLite file, one thread that writes, a few that read.
//!
//! ```text
//! open, complete, claim … ──▶ bounded queue ──▶ writer ── one commit for all waiting jobs ──▶ answers
//! load, find, list …      ──▶ bounded queue ──▶ readers ── one snapshot for several reads ──▶ answers
//! ```
//!
//! A write is answered after its commit is synced, so a later read sees it. The logic is in `operations` and
//! `transitions`, the statements are in `engine/embedded`. `database` contains the file and its schema, `threads` the
//! writer and the readers.

mod backup;
#[cfg(feature = "fuzzing")]
mod damage;
pub(crate) mod database;
mod errors;
pub(crate) mod sqlite;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod threads;

pub use self::backup::{BackupContents, CHECKSUM_EXTENSION, ExistingStore, QueuedWebhooks, backup, inspect, restore};
#[cfg(feature = "fuzzing")]
pub use self::damage::LooseTable;
pub use self::database::check::may_open;
pub use self::sqlite::exists;
pub use self::store::{EmbeddedOptions, EmbeddedStore, Migration, migrate};
