//! Checks that a node would open the store in a directory, even while another process has it open.
//!
//! Writes nothing to the store. Reads a log if there is one: until a checkpoint, the database file alone may be out of
//! date or torn.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{files, schema};
use crate::error::{OpenError, StoreError};
use crate::vault::Vault;
use crate::{Ownership, Upgrading};

/// Reads without locks and without a log, and creates no files for them.
const IMMUTABLE: &str = "?immutable=1";
/// Reads the log by the index that is beside it, or by one in memory, and writes to neither.
const WITH_INDEX: &str = "?readonly_shm=1";
/// Creates the index of the log, as a node would.
const WITHOUT_INDEX: &str = "";

/// Checks files, schema, keys and installation of the store in a directory. A directory without a store passes; without
/// a vault, any key passes.
///
/// # Errors
/// [`OpenError::Refused`] with the error of opening it, [`OpenError::Unreadable`] when it cannot be read from here.
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
    let found = schema::verify(&connection, vault, Some(ownership), upgrading.schema).map_err(OpenError::Refused)?;
    if upgrading.at_start {
        Ok(())
    } else {
        schema::refuse_earlier(found, upgrading.schema).map_err(OpenError::Refused)
    }
}

/// Opens the database file, and begins a snapshot of it.
fn connect(directory: &Path) -> Result<Connection, StoreError> {
    let (path, log) = (files::database(directory), files::log(directory));
    let has_index = files::index(directory).exists();
    let access = if !log.exists() || (files::length(&log)? == 0 && !has_index) {
        IMMUTABLE
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
