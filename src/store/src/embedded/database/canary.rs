//! The canary: a sealed value in the file that shows whether this node has the file's keys.

use rusqlite::{Connection, OptionalExtension as _};

use crate::canary;
use crate::error::StoreError;
use crate::vault::Vault;

/// Selects the canary, which only the right encryption key opens.
const SELECT_CANARY: &str = "SELECT box FROM canary";
const UPSERT_CANARY: &str = "INSERT OR REPLACE INTO canary (row, box) VALUES (1, ?1)";

/// Checks the keys, and stores the canary of a new file or a new sealing key. Runs in the transaction that opens the
/// file.
///
/// # Errors
/// [`StoreError::WrongKey`] if no key opens the canary, [`StoreError::Corrupt`] if it is damaged or an existing file
/// has none.
pub(crate) fn check_and_store(connection: &Connection, vault: &Vault, is_new: bool) -> Result<(), StoreError> {
    if let Some(canary) = next_canary(connection, vault, is_new)? {
        connection.execute(UPSERT_CANARY, [canary])?;
    }
    Ok(())
}

/// Checks the keys without writing.
///
/// # Errors
/// As [`check_and_store`].
pub(crate) fn check_only(connection: &Connection, vault: &Vault) -> Result<(), StoreError> {
    next_canary(connection, vault, false).map(drop)
}

/// Checks the keys. Returns a canary to store, if the stored one is missing or under an old key.
fn next_canary(connection: &Connection, vault: &Vault, is_new: bool) -> Result<Option<Vec<u8>>, StoreError> {
    let stored: Option<Vec<u8>> = connection.query_row(SELECT_CANARY, [], |row| row.get(0)).optional()?;
    if stored.is_none() && !is_new {
        return Err(StoreError::unreadable("the canary"));
    }
    canary::check(vault, stored.as_deref())
}
