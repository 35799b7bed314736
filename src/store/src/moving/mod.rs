//! Moving a store from a file into Redis, for an installation that outgrows one machine, and back.
//!
//! `copy` carries the records of one engine to the other. `files` has the file: a directory or a backup as the source,
//! or a new store, which gets its name once it equals the servers' content. `servers` has Redis, with the mark that
//! excludes nodes: until the move into it is finished, or after a move away from it. The canary and the installation
//! are not records: the target gets its own, for the same keys and the same installation.

mod copy;
mod files;
mod servers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use self::files::{Place, StoreFile};
use self::servers::Servers;
use crate::error::StoreError;
use crate::redis::RedisOptions;

/// Mark of servers whose store was moved into a file.
pub(crate) const MOVED_AWAY: &str = "into a file";

/// Counts of a pass for one kind of record.
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
    /// Refuses a comparison that found differences.
    fn without_differences(self) -> Result<(), StoreError> {
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

/// Copies the store of a directory that no node has open, or of a backup, into Redis, and compares all of it
/// afterwards. With `finish`, nodes can then open the target. `progress` gets the number of keys of the source so far,
/// of each pass.
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
    let source = StoreFile::source(from, &options).await?;
    let mark = source.mark().await?;
    let target = Servers::target(options, &mark).await?;
    let mut moved = copy::copy(&source.engine, &target.engine, &progress).await?;
    moved.removed += target.strangers(true).await?.keys;
    let mut compared = copy::compare(&source.engine, &target.engine, &progress).await?;
    compared.removed += target.strangers(false).await?.keys;
    compared.without_differences()?;
    source.close().await?;
    if finish {
        target.finish(&mark).await?;
        moved.is_finished = true;
    }
    Ok(moved)
}

/// Copies everything from Redis into a new embedded store, and compares all of it afterwards. No node may have the
/// servers open, and none can open them afterwards. An interrupted run can be restarted. `progress` gets the number of
/// keys so far, of each pass.
///
/// # Errors
/// [`StoreError::InUse`] while a node has the servers open or when the directory holds a store,
/// [`StoreError::WrongKey`] and [`StoreError::OtherInstallation`] as on opening a store, [`StoreError::Unavailable`]
/// for servers without a store or with keys that no store has, and when something was not copied.
pub async fn move_to_directory(
    options: RedisOptions,
    to: &Path,
    progress: impl Fn(&str, u64) + Send + Sync + 'static,
) -> Result<Moved, StoreError> {
    let place = Place::lock(to).await?;
    let origin = Servers::origin(options.clone()).await?;
    let strangers = origin.strangers(false).await?;
    if strangers.keys > 0 {
        let kinds = strangers.kinds.into_iter().collect::<Vec<_>>().join(", ");
        return Err(StoreError::unavailable(format!(
            "the servers have {} keys that no store has: {kinds}",
            strangers.keys
        )));
    }
    let store = place.create(&options).await?;
    let mut moved = copy::copy(&origin.engine, &store.engine, &progress).await?;
    copy::compare(&origin.engine, &store.engine, &progress).await?.without_differences()?;
    place.keep(store).await?;
    moved.is_finished = true;
    Ok(moved)
}
