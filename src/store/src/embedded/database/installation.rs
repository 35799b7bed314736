//! The installation to which the file belongs.

use rusqlite::{Connection, OptionalExtension as _};

use crate::Ownership;
use crate::error::StoreError;

const KEPT: &str = "SELECT made_under FROM installation";
const KEEP: &str = "INSERT OR REPLACE INTO installation (row, made_under) VALUES (1, ?1)";

/// Checks the installation, within the transaction that opens the file. Only a new file has none yet.
///
/// # Errors
/// [`StoreError::OtherInstallation`], and [`StoreError::Corrupt`] when the installation is unknown.
pub(crate) fn check(connection: &Connection, ownership: &Ownership, is_new: bool) -> Result<(), StoreError> {
    if let Some(made_under) = examine(connection, ownership, is_new)? {
        connection.execute(KEEP, [made_under])?;
    }
    Ok(())
}

/// Checks the installation without writing anything.
///
/// # Errors
/// As [`check`].
pub(crate) fn verify(connection: &Connection, ownership: &Ownership) -> Result<(), StoreError> {
    examine(connection, ownership, false).map(drop)
}

/// Checks the installation. Returns the text to store, if it differs.
fn examine(connection: &Connection, ownership: &Ownership, is_new: bool) -> Result<Option<String>, StoreError> {
    let kept: Option<String> = connection.query_row(KEPT, [], |row| row.get(0)).optional()?;
    if kept.is_none() && !is_new {
        return Err(StoreError::unreadable("the installation"));
    }
    ownership.check(kept.as_deref())
}
