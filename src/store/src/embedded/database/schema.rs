//! The tables: one for each kind of record, and what the file knows of itself.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sakshi_domain::clock::Clock;

use super::{canary, installation};
use crate::engine::embedded::schema;
use crate::error::StoreError;
use crate::vault::Vault;
use crate::{Ownership, records};

/// "SAKS": distinguishes this file from any other SQLite database.
pub(crate) const APPLICATION_ID: i64 = 0x5341_4B53;

/// The number of the schema, in `user_version`. Files with a lower one were written before the first release.
pub(crate) const SCHEMA: i64 = 27;

/// Tables and triggers besides the records: the installation, the page for health checks, a sealed value that proves the keys, and an
/// audit log that only grows. An audit entry may be sealed under another key; its hash covers the plain text.
const OWN: &str = "\
    CREATE TABLE installation (row INTEGER PRIMARY KEY CHECK (row = 1), made_under TEXT NOT NULL); \
    CREATE TABLE probe (row INTEGER PRIMARY KEY CHECK (row = 1), pad BLOB); INSERT INTO probe (row) VALUES (1); \
    CREATE TABLE canary (row INTEGER PRIMARY KEY CHECK (row = 1), box BLOB NOT NULL); \
    CREATE TRIGGER audit_changed BEFORE UPDATE OF _id, _entry, previous, hash ON audit_list \
        WHEN old._id <> new._id OR old._entry <> new._entry OR old.previous <> new.previous OR old.hash <> new.hash \
        BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END; \
    CREATE TRIGGER audit_cut BEFORE DELETE ON audit_list BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;";

/// Makes an empty file a store, and checks that a node with these keys and this installation may open the one that is there.
///
/// # Errors
/// [`StoreError::Corrupt`] for a file that is damaged or not a store's, [`StoreError::Unavailable`] for one with another schema,
/// [`StoreError::WrongKey`] for one that was written under other keys, [`StoreError::OtherInstallation`] for one that belongs to another
/// installation. Nothing is changed in any of these cases.
pub(crate) fn open(connection: &mut Connection, clock: &dyn Clock, vault: &Vault, ownership: &Ownership) -> Result<(), StoreError> {
    let is_new = is_new(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if is_new {
        create(&transaction, clock)?;
    }
    // In the same transaction: a file that is refused stays as it was.
    canary::check(&transaction, vault, is_new)?;
    installation::check(&transaction, ownership, is_new)?;
    Ok(transaction.commit()?)
}

/// Checks without writing anything that [`open`] would not refuse a file.
///
/// # Errors
/// As [`open`].
pub(crate) fn verify(connection: &Connection, vault: Option<&Vault>, ownership: Option<&Ownership>) -> Result<(), StoreError> {
    if is_new(connection)? {
        return Ok(());
    }
    vault.map_or(Ok(()), |vault| canary::verify(connection, vault))?;
    ownership.map_or(Ok(()), |ownership| installation::verify(connection, ownership))
}

/// Returns true for an empty file.
///
/// # Errors
/// The file has another schema.
fn is_new(connection: &Connection) -> Result<bool, StoreError> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    if (application, version, number("SELECT count(*) FROM sqlite_schema")?) == (0, 0, 0) {
        return Ok(true);
    }
    if application != APPLICATION_ID {
        return Err(StoreError::Corrupt("the database file is not a sakshi store".into()));
    }
    if version == SCHEMA {
        return Ok(false);
    }
    let by = if version < SCHEMA { "a program from before the first release" } else { "a newer program" };
    Err(StoreError::unavailable(format!("{by} wrote it: schema {version}, this one knows {SCHEMA}")))
}

fn create(transaction: &Transaction<'_>, clock: &dyn Clock) -> rusqlite::Result<()> {
    for table in records::ALL {
        transaction.execute_batch(&schema(table))?;
    }
    transaction.execute_batch(OWN)?;
    transaction.execute("INSERT INTO swept_record (_id, _version, at) VALUES (x'00', 1, ?1)", [clock.now().millis()])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA)
}
