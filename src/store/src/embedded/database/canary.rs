//! Checks that the file was written under keys that this node has.
//!
//! A file has a canary since version 3 of the schema. In an older file, its sealed records are
//! checked instead until it gets one.

use rusqlite::{Connection, OptionalExtension as _};

use crate::canary;
use crate::error::StoreError;
use crate::vault::{Sealed, Vault, VaultError};

const KEPT: &str = "SELECT box FROM canary";
const KEEP: &str = "INSERT OR REPLACE INTO canary (row, box) VALUES (1, ?1)";

/// The newest sealed record of each kind: its owner, and the ciphertext.
const NEWEST: [&str; 3] = [
    "SELECT id, terms FROM transactions ORDER BY row DESC LIMIT 1",
    "SELECT id, terms FROM events ORDER BY row DESC LIMIT 1",
    "SELECT CAST(app_id AS BLOB), record FROM apps ORDER BY row DESC LIMIT 1",
];

/// Checks the keys, within the transaction that opens the file.
///
/// # Errors
/// [`StoreError::WrongKey`] when none of the keys has sealed what the file holds.
pub(crate) fn check(connection: &Connection, vault: &Vault) -> Result<(), StoreError> {
    if let Some(fresh) = examine(connection, vault)? {
        connection.execute(KEEP, [fresh])?;
    }
    Ok(())
}

/// Checks the keys without writing anything. A file from before the canary passes.
///
/// # Errors
/// As [`check`].
pub(crate) fn verify(connection: &Connection, vault: &Vault) -> Result<(), StoreError> {
    if connection.table_exists(None, "canary")? { examine(connection, vault).map(drop) } else { Ok(()) }
}

/// Checks the keys, and returns the canary to be stored, if there is a new one.
fn examine(connection: &Connection, vault: &Vault) -> Result<Option<Vec<u8>>, StoreError> {
    let kept: Option<Vec<u8>> = connection.query_row(KEPT, [], |row| row.get(0)).optional()?;
    if kept.is_none() && is_foreign(connection, vault)? {
        return Err(StoreError::WrongKey);
    }
    canary::check(vault, kept.as_deref())
}

/// Whether there are sealed records, and none of them under a key of the vault. A damaged record does
/// not count.
fn is_foreign(connection: &Connection, vault: &Vault) -> rusqlite::Result<bool> {
    let mut foreign = false;
    for newest in NEWEST {
        let found = connection.query_row(newest, [], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?))).optional()?;
        let Some((owner, sealed)) = found else { continue };
        let opened = Sealed::from_bytes(sealed).map(|sealed| vault.open(&owner, &sealed));
        match opened {
            Some(Err(VaultError::UnknownKey)) => foreign = true,
            Some(_) => return Ok(false),
            None => {}
        }
    }
    Ok(foreign)
}
