//! Moving a store from a file into Redis, for an installation that outgrows one machine, and back.

mod copy;

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::StoreError;
use crate::redis::RedisOptions;

/// The mark of servers whose store was moved into a file.
pub(crate) const MOVED_AWAY: &str = "into a file";

/// What a pass saw of one kind of record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedKind {
    /// Keys of the source.
    pub keys: u64,
    /// Keys that were written, because they were missing or held something else.
    pub written: u64,
}

/// What a move did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// By kind.
    pub kinds: BTreeMap<&'static str, MovedKind>,
    /// Keys that were removed, because the source has them no more.
    pub removed: u64,
    /// Whether nodes may open the target now.
    pub is_finished: bool,
}

impl Moved {
    /// Refuses a comparison that has found differences.
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

/// Copies the store of a directory that no node has open, or of a backup, into Redis.
///
/// # Errors
/// It is not built yet.
pub async fn move_to_redis(_: &Path, _: RedisOptions, _: bool, _: impl Fn(&str, u64) + Send + Sync + 'static) -> Result<Moved, StoreError> {
    Err(StoreError::unavailable("it is not built yet"))
}

/// Copies everything from Redis into a new embedded store.
///
/// # Errors
/// It is not built yet.
pub async fn move_to_directory(_: RedisOptions, _: &Path, _: impl Fn(&str, u64) + Send + Sync + 'static) -> Result<Moved, StoreError> {
    Err(StoreError::unavailable("it is not built yet"))
}
