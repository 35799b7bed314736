//! The installation to which the file belongs. A file has it since version 9 of the schema.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::files;
use crate::Ownership;
use crate::error::StoreError;

const KEPT: &str = "SELECT made_under FROM installation";
const KEEP: &str = "INSERT OR REPLACE INTO installation (row, made_under) VALUES (1, ?1)";
const HAS_TABLE: &str = "SELECT count(*) FROM sqlite_schema WHERE name = 'installation'";

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

fn kept(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row(KEPT, [], |row| row.get(0)).optional()
}

/// Whether a node of this installation may open the store in a directory, even while another process has it
/// open. Nothing is written, not even the files beside it that SQLite needs to read a log: the log is ignored.
/// What is asked for was copied from it into the file when the store was first opened.
///
/// # Errors
/// [`StoreError::OtherInstallation`]; any other says why the file could not be looked at.
pub fn may_open(directory: &Path, ownership: &Ownership) -> Result<(), StoreError> {
    let path = files::database(directory);
    if files::length(&path)? == 0 {
        return Ok(());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(immutable(&path), flags)?;
    let has_table: i64 = connection.query_row(HAS_TABLE, [], |row| row.get(0))?;
    let kept = if has_table > 0 { kept(&connection)? } else { None };
    ownership.check(kept.as_deref()).map(drop)
}

/// The path as a URI that SQLite reads without locks and without a log.
fn immutable(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri + "?immutable=1"
}
