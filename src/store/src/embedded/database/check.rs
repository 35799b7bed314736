//! Checks that a node would open the store in a directory, even while another process has it open. Nothing is written.
//!
//! A log is read as well, because the database file alone may be out of date or torn until a checkpoint.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{files, schema};
use crate::error::{OpenError, StoreError};
use crate::vault::Vault;
use crate::{Ownership, Upgrading};

/// Reads without locks and without a log, and creates no files.
const WITHOUT_LOG: &str = "?immutable=1";
/// Reads the log through its index file without writing to it.
const WITH_INDEX: &str = "?readonly_shm=1";
/// Creates the index file of the log, as a node does.
const WITHOUT_INDEX: &str = "";

/// Checks files, schema, keys and installation of the store in a directory. A directory without a store passes; without
/// a vault, any key passes.
///
/// # Errors
/// [`OpenError::Refused`] with the error that a node would get, [`OpenError::Unreadable`] if this process cannot read
/// the files.
pub fn may_open(
    directory: &Path,
    vault: Option<&Vault>,
    ownership: &Ownership,
    upgrading: Upgrading,
) -> Result<(), OpenError> {
    let unreadable = |error: StoreError| match error {
        StoreError::Corrupt(_) => OpenError::Refused(error),
        _ => OpenError::Unreadable(error),
    };
    if !files::holds_store(directory).map_err(unreadable)? {
        return Ok(());
    }
    let connection = connect(directory).map_err(unreadable)?;
    let number = schema::verify(&connection, vault, Some(ownership), upgrading.schema).map_err(OpenError::Refused)?;
    if upgrading.at_start {
        Ok(())
    } else {
        schema::refuse_earlier(number, upgrading.schema).map_err(OpenError::Refused)
    }
}

/// Opens the database file for reading, with its log if it has one, and begins a transaction.
fn connect(directory: &Path) -> Result<Connection, StoreError> {
    let (path, log) = (files::database_path(directory), files::log_path(directory));
    let has_index = files::index_path(directory).exists();
    let access = if !log.exists() || (files::file_length(&log)? == 0 && !has_index) {
        WITHOUT_LOG
    } else if has_index {
        WITH_INDEX
    } else {
        WITHOUT_INDEX
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(&path) + access, flags)?;
    connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")?;
    Ok(connection)
}

/// Returns the path as a URI.
fn uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
