//! Checks that the file was written under keys that this node has.

use rusqlite::{Connection, OptionalExtension as _};

use crate::canary;
use crate::error::StoreError;
use crate::vault::Vault;

const KEPT: &str = "SELECT box FROM canary";
const KEEP: &str = "INSERT OR REPLACE INTO canary (row, box) VALUES (1, ?1)";

/// Checks the keys, within the transaction that opens the file. Only a new file has no canary yet.
///
/// # Errors
/// [`StoreError::WrongKey`] when none of the keys opens the canary, [`StoreError::Corrupt`] when the canary is missing
/// or damaged.
pub(crate) fn check(connection: &Connection, vault: &Vault, is_new: bool) -> Result<(), StoreError> {
    if let Some(fresh) = examine(connection, vault, is_new)? {
        connection.execute(KEEP, [fresh])?;
    }
    Ok(())
}

/// Checks the keys without writing anything.
///
/// # Errors
/// As [`check`].
pub(crate) fn verify(connection: &Connection, vault: &Vault) -> Result<(), StoreError> {
    examine(connection, vault, false).map(drop)
}

/// Checks the keys, and returns the canary to be stored, if there is a new one.
fn examine(connection: &Connection, vault: &Vault, is_new: bool) -> Result<Option<Vec<u8>>, StoreError> {
    let kept: Option<Vec<u8>> = connection.query_row(KEPT, [], |row| row.get(0)).optional()?;
    if kept.is_none() && !is_new {
        return Err(StoreError::unreadable("the canary"));
    }
    canary::check(vault, kept.as_deref())
}
