//! The tables, and the migration of a file from one version of them to the next.
//!
//! A client is an integer inside the tables. A transaction is a row in arrival order with its
//! random id in an index of its own, because random keys in a clustered tree touch a page each.
//! The terms of a transaction are sealed: they can hold a name and a webhook's secret. An outcome is
//! a row of its own, so a row in `results` also means that the transaction is completed; the outcome
//! of a registered guest is in `registrations`, which outlives the transaction.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sakshi_domain::clock::Clock;

use super::{canary, installation};
use crate::Ownership;
use crate::error::StoreError;
use crate::vault::Vault;

/// "SAKS": distinguishes this file from any other SQLite database.
pub(crate) const APPLICATION_ID: i64 = 0x5341_4B53;

/// The migration to each version; `user_version` of a file counts those that were applied.
const MIGRATIONS: [&str; 17] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
    include_str!("schema_9.sql"),
    include_str!("schema_10.sql"),
    include_str!("schema_11.sql"),
    include_str!("schema_12.sql"),
    include_str!("schema_13.sql"),
    include_str!("schema_14.sql"),
    include_str!("schema_15.sql"),
    include_str!("schema_16.sql"),
    include_str!("schema_17.sql"),
];

/// Migrates the file to the version of this program; an empty file becomes a store.
///
/// # Errors
/// [`StoreError::Corrupt`] for a file that is damaged or not a store's, [`StoreError::Unavailable`]
/// for one that a newer program has written, [`StoreError::WrongKey`] for one that was written under
/// other keys, [`StoreError::OtherInstallation`] for one that belongs to another installation. Nothing is changed in any of these cases.
pub(crate) fn migrate(connection: &mut Connection, clock: &dyn Clock, vault: &Vault, ownership: &Ownership) -> Result<(), StoreError> {
    let pending = pending(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !pending.is_empty() {
        apply(&transaction, pending, clock)?;
    }
    // In the same transaction: a file that is refused stays as it was.
    canary::check(&transaction, vault)?;
    installation::check(&transaction, ownership)?;
    Ok(transaction.commit()?)
}

/// Checks without writing anything that [`migrate`] would not refuse a file.
///
/// # Errors
/// As [`migrate`].
pub(crate) fn verify(connection: &Connection, vault: Option<&Vault>, ownership: Option<&Ownership>) -> Result<(), StoreError> {
    pending(connection)?;
    vault.map_or(Ok(()), |vault| canary::verify(connection, vault))?;
    ownership.map_or(Ok(()), |ownership| installation::verify(connection, ownership))
}

/// The migrations that the file lacks.
fn pending(connection: &Connection) -> Result<&'static [&'static str], StoreError> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    let empty = (application, version, number("SELECT count(*) FROM sqlite_schema")?) == (0, 0, 0);
    if !empty && application != APPLICATION_ID {
        return Err(StoreError::Corrupt("the database file is not a sakshi store".into()));
    }
    usize::try_from(version).ok().and_then(|applied| MIGRATIONS.get(applied..)).ok_or_else(|| {
        let known = MIGRATIONS.len();
        StoreError::unavailable(format!("a newer program wrote it: schema {version}, this one knows up to {known}"))
    })
}

fn apply(transaction: &Transaction<'_>, migrations: &[&str], clock: &dyn Clock) -> rusqlite::Result<()> {
    for sql in migrations {
        transaction.execute_batch(sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX))?;
    transaction.execute("UPDATE probe SET at = ?1", [clock.now().millis()])?;
    Ok(())
}
