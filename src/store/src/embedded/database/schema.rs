//! The tables: one for each kind of record, and a few for the file itself. A file of an earlier release is migrated in
//! the transaction that opens it (`crate::schema`).

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sakshi_domain::clock::Clock;

use super::statements::Database;
use super::{canary, installation};
use crate::engine::embedded::walk::{add_missing, rewrite_records};
use crate::error::StoreError;
use crate::vault::Vault;
use crate::{Ownership, Schema};

/// "SAKS": identifies the file as a sakshi store.
pub(crate) const APPLICATION_ID: i64 = 0x5341_4B53;

/// Tables and triggers besides the records: the owning installation, a page for health checks, the canary, and an
/// append-only audit log. Resealing may change the sealed text of an audit entry; its hash covers the plain text.
const FILE_TABLES: &str = "\
    CREATE TABLE installation (row INTEGER PRIMARY KEY CHECK (row = 1), made_under TEXT NOT NULL); \
    CREATE TABLE probe (row INTEGER PRIMARY KEY CHECK (row = 1), pad BLOB); INSERT INTO probe (row) VALUES (1); \
    CREATE TABLE canary (row INTEGER PRIMARY KEY CHECK (row = 1), box BLOB NOT NULL); \
    CREATE TRIGGER audit_changed BEFORE UPDATE OF _id, _entry, previous, hash ON audit_list \
        WHEN old._id <> new._id OR old._entry <> new._entry OR old.previous <> new.previous OR old.hash <> new.hash \
        BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END; \
    CREATE TRIGGER audit_cut BEFORE DELETE ON audit_list BEGIN SELECT raise(ABORT, 'the audit log is append-only'); \
    END;";

/// Reads the schema number of a file, in `user_version`; `None` for an empty file.
///
/// # Errors
/// [`StoreError::Corrupt`] for a file that is not a store, [`StoreError::OtherSchema`] for a number that this schema
/// does not know.
pub(crate) fn read_number(connection: &Connection, schema: &Schema) -> Result<Option<u32>, StoreError> {
    let select = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (application, version) = (select("PRAGMA application_id")?, select("PRAGMA user_version")?);
    if (application, version, select("SELECT count(*) FROM sqlite_schema")?) == (0, 0, 0) {
        return Ok(None);
    }
    if application != APPLICATION_ID {
        return Err(StoreError::Corrupt("the database file is not a sakshi store".into()));
    }
    let number = u32::try_from(version).unwrap_or(0);
    schema.check(number).map(|()| Some(number))
}

/// Opens a file: creates the tables of an empty file, migrates a file of an earlier release, and checks keys and
/// installation.
///
/// # Errors
/// As [`read_number`] and [`verify`]; the file is then unchanged.
pub(crate) fn open(db: &Database, vault: &Vault, ownership: &Ownership, schema: &Schema) -> Result<(), StoreError> {
    let number = read_number(&db.connection, schema)?;
    let transaction = Transaction::new_unchecked(&db.connection, TransactionBehavior::Immediate)?;
    match number {
        None => create(&transaction, &*db.clock, schema)?,
        Some(number) => migrate(db, vault, schema, number)?,
    }
    // In the same transaction, so that a refused file stays unchanged.
    let is_new = number.is_none();
    canary::check_and_store(&transaction, vault, is_new)?;
    installation::check_and_store(&transaction, ownership, is_new)?;
    Ok(transaction.commit()?)
}

/// Migrates a file from the schema number `from`, inside a transaction. Commits between two releases leave files of the
/// same number with fewer tables, which get the others.
pub(crate) fn migrate(db: &Database, vault: &Vault, schema: &Schema, from: u32) -> Result<(), StoreError> {
    add_missing(&db.connection, schema.tables)?;
    for change in schema.steps_from(from).iter().flat_map(|step| step.rewrites) {
        rewrite_records(db, vault, change)?;
    }
    Ok(db.connection.pragma_update(None, "user_version", schema.number())?)
}

/// Refuses a file of an earlier release.
///
/// # Errors
/// [`StoreError::OtherSchema`] for an earlier schema number.
pub(crate) fn refuse_earlier(number: Option<u32>, schema: &Schema) -> Result<(), StoreError> {
    match number.filter(|number| *number < schema.number()) {
        None => Ok(()),
        Some(number) => Err(StoreError::OtherSchema(format!(
            "the store has {}, and this release has {}: run `sakshi migrate`, which makes a backup first, or set \
                store.upgrade_at_start",
            schema.in_words(number),
            schema.number()
        ))),
    }
}

/// Checks, without writing, that [`open`] would accept a file. Returns its schema number.
///
/// # Errors
/// [`StoreError::WrongKey`] for a file under other keys, [`StoreError::OtherInstallation`] for a file of another
/// installation, and the errors of [`read_number`].
pub(crate) fn verify(
    connection: &Connection,
    vault: Option<&Vault>,
    ownership: Option<&Ownership>,
    schema: &Schema,
) -> Result<Option<u32>, StoreError> {
    let number = read_number(connection, schema)?;
    if number.is_some() {
        vault.map_or(Ok(()), |vault| canary::check_only(connection, vault))?;
        ownership.map_or(Ok(()), |ownership| installation::check_only(connection, ownership))?;
    }
    Ok(number)
}

/// Creates the tables of an empty file.
fn create(transaction: &Transaction<'_>, clock: &dyn Clock, schema: &Schema) -> rusqlite::Result<()> {
    add_missing(transaction, schema.tables)?;
    transaction.execute_batch(FILE_TABLES)?;
    transaction
        .execute("INSERT INTO swept_record (_id, _version, at) VALUES (x'00', 1, ?1)", [clock.now().millis()])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", schema.number())
}
