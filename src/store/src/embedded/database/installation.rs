//! The installation to which the file belongs. A file has it since version 9 of the schema.

use rusqlite::{Connection, OptionalExtension as _};

use crate::Ownership;
use crate::error::StoreError;

const KEPT: &str = "SELECT made_under FROM installation";
const KEEP: &str = "INSERT OR REPLACE INTO installation (row, made_under) VALUES (1, ?1)";

/// Checks the installation, within the transaction that opens the file.
///
/// # Errors
/// [`StoreError::OtherInstallation`].
pub(crate) fn check(connection: &Connection, ownership: &Ownership) -> Result<(), StoreError> {
    if let Some(made_under) = ownership.check(kept(connection)?.as_deref())? {
        connection.execute(KEEP, [made_under])?;
    }
    Ok(())
}

/// Checks the installation without writing anything.
///
/// # Errors
/// [`StoreError::OtherInstallation`].
pub(crate) fn verify(connection: &Connection, ownership: &Ownership) -> Result<(), StoreError> {
    let kept = if connection.table_exists(None, "installation")? { kept(connection)? } else { None };
    ownership.check(kept.as_deref()).map(drop)
}

fn kept(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row(KEPT, [], |row| row.get(0)).optional()
}
