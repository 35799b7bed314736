//! Moving a store from a file into Redis, for an installation that outgrows one machine, and back.
//!
//! `copy` copies the records of one engine to another. `files` handles the file: as the source, a directory or a
//! backup; as the target, a new store, which gets its name once it equals the servers' content. `servers` handles
//! Redis, with the mark that excludes nodes until a move into Redis is finished, or after a move away from it. The
//! canary and the installation are not records: the target gets its own, for the same keys and the same installation.

mod copy;
mod files;
mod servers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use self::files::{StoreFile, TargetDirectory};
use self::servers::{ForeignKeyAction, Servers};
use crate::error::StoreError;
use crate::redis::RedisOptions;

/// Mark of servers whose store was moved into a file.
pub(crate) const MOVED_AWAY: &str = "into a file";

/// Counts of a pass over one kind of record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedKind {
    /// Number of keys of the source.
    pub keys: u64,
    /// Number of keys written because they were missing or different.
    pub written: u64,
}

/// Result of a move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Counts by kind, under the names of the records.
    pub kinds: BTreeMap<&'static str, MovedKind>,
    /// Number of keys removed because the source does not have them.
    pub removed: u64,
    /// True if nodes may open the target now.
    pub is_finished: bool,
}

impl Moved {
    /// Returns an error for a comparison that found differences.
    fn require_equal(self) -> Result<(), StoreError> {
        let differing = self.kinds.iter().filter(|(_, kind)| kind.written > 0);
        let mut differing: Vec<String> = differing.map(|(name, kind)| format!("{name}: {}", kind.written)).collect();
        if self.removed > 0 {
            differing.push(format!("keys too many: {}", self.removed));
        }
        if differing.is_empty() {
            return Ok(());
        }
        Err(StoreError::unavailable(format!("the target differs from the source: {}", differing.join(", "))))
    }
}

/// Copies a store into Redis, from a directory that no node has open or from a backup, and compares all records
/// afterwards. With `finish`, nodes can then open the target. `progress` gets the name of each pass, with the number of
/// keys of the source so far.
///
/// # Errors
/// [`StoreError::InUse`] for the directory of a running node, [`StoreError::WrongKey`] and
/// [`StoreError::OtherInstallation`] as on opening a store, [`StoreError::Unavailable`] for a target with other
/// content, and when source and target still differ at the end.
pub async fn move_to_redis(
    from: &Path,
    options: RedisOptions,
    finish: bool,
    progress: impl Fn(&str, u64) + Send + Sync + 'static,
) -> Result<Moved, StoreError> {
    let source = StoreFile::open_source(from, &options).await?;
    // Nodes do not open servers with a mark.
    let mark = source.mark().await?;
    let target = Servers::open_target(options, &mark).await?;
    let mut moved = copy::copy(&source.engine, &target.engine, &progress).await?;
    moved.removed += target.find_foreign_keys(ForeignKeyAction::Remove).await?.keys;
    let mut compared = copy::compare(&source.engine, &target.engine, &progress).await?;
    compared.removed += target.find_foreign_keys(ForeignKeyAction::Count).await?.keys;
    compared.require_equal()?;
    source.close().await?;
    if finish {
        target.finish(&mark).await?;
        moved.is_finished = true;
    }
    Ok(moved)
}

/// Copies all records from Redis into a new embedded store, and compares them afterwards. No node may have the servers
/// open, and none can open them afterwards, unless the move is refused before it copies. An interrupted run can be
/// restarted. `progress` gets the name of each pass, with the number of keys so far.
///
/// # Errors
/// [`StoreError::InUse`] while a node has the servers open or when the directory holds a store,
/// [`StoreError::WrongKey`] and [`StoreError::OtherInstallation`] as on opening a store, [`StoreError::Unavailable`]
/// for servers without a store or with foreign keys, and when source and target still differ at the end.
pub async fn move_to_directory(
    options: RedisOptions,
    to: &Path,
    progress: impl Fn(&str, u64) + Send + Sync + 'static,
) -> Result<Moved, StoreError> {
    let target = TargetDirectory::lock(to).await?;
    let origin = Servers::open_origin(options.clone()).await?;
    let store = match create_target(&origin, &target, &options).await {
        Ok(store) => store,
        Err(refusal) => {
            origin.unmark().await?;
            return Err(refusal);
        }
    };
    let mut moved = copy::copy(&origin.engine, &store.engine, &progress).await?;
    copy::compare(&origin.engine, &store.engine, &progress).await?.require_equal()?;
    target.finish(store).await?;
    moved.is_finished = true;
    Ok(moved)
}

/// Creates the store of a move from these servers, unless they have foreign keys.
async fn create_target(
    origin: &Servers,
    target: &TargetDirectory,
    options: &RedisOptions,
) -> Result<StoreFile, StoreError> {
    let foreign_keys = origin.find_foreign_keys(ForeignKeyAction::Count).await?;
    if foreign_keys.keys > 0 {
        let prefixes = foreign_keys.prefixes.into_iter().collect::<Vec<_>>().join(", ");
        return Err(StoreError::unavailable(format!(
            "the servers have {} keys that no store has: {prefixes}",
            foreign_keys.keys
        )));
    }
    target.create(options).await
}
