//! The installation that owns the file.

use rusqlite::{Connection, OptionalExtension as _};

use crate::Ownership;
use crate::error::StoreError;

/// Selects the installation (profile and authority) that owns the file.
const SELECT_OWNER: &str = "SELECT made_under FROM installation";
const UPSERT_OWNER: &str = "INSERT OR REPLACE INTO installation (row, made_under) VALUES (1, ?1)";

/// Checks the installation, and stores the owner of a new or taken-over file. Runs in the transaction that opens the
/// file.
///
/// # Errors
/// [`StoreError::OtherInstallation`] for a file of another installation, [`StoreError::Corrupt`] for an existing file
/// without an owner.
pub(crate) fn check_and_store(connection: &Connection, ownership: &Ownership, is_new: bool) -> Result<(), StoreError> {
    if let Some(owner) = next_owner(connection, ownership, is_new)? {
        connection.execute(UPSERT_OWNER, [owner])?;
    }
    Ok(())
}

/// Checks the installation without writing.
///
/// # Errors
/// As [`check_and_store`].
pub(crate) fn check_only(connection: &Connection, ownership: &Ownership) -> Result<(), StoreError> {
    next_owner(connection, ownership, false).map(drop)
}

/// Checks the installation. Returns the owner to store, if it differs from the stored one.
fn next_owner(connection: &Connection, ownership: &Ownership, is_new: bool) -> Result<Option<String>, StoreError> {
    let stored: Option<String> = connection.query_row(SELECT_OWNER, [], |row| row.get(0)).optional()?;
    if stored.is_none() && !is_new {
        return Err(StoreError::unreadable("the installation"));
    }
    ownership.check(stored.as_deref())
}
