//! The tables, and the migration of a file from one version of them to the next.
//!
//! A client is an integer inside the tables. A transaction is a row in arrival order with its
//! random id in an index of its own, because random keys in a clustered tree touch a page each.
//! The terms of a transaction are sealed: they can hold a name and a webhook's secret. An outcome is
//! a row of its own, so a row in `results` also means that the transaction is completed; the outcome
//! of a registered guest is in `registrations`, which outlives the transaction.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sakshi_domain::clock::Clock;

use super::canary;
use crate::embedded::errors::{translate, unavailable};
use crate::error::StoreError;
use crate::vault::Vault;

/// "SAKS": distinguishes this file from any other SQLite database.
pub(crate) const APPLICATION_ID: i64 = 0x5341_4B53;

/// The migration to each version; `user_version` of a file counts those that were applied.
const MIGRATIONS: [&str; 8] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
];

/// The identification in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    application: i64,
    version: usize,
    tables: i64,
}

impl Identity {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        Ok(Self {
            application: number("PRAGMA application_id")?,
            version: usize::try_from(number("PRAGMA user_version")?).unwrap_or(usize::MAX),
            tables: number("SELECT count(*) FROM sqlite_schema")?,
        })
    }
}

/// Migrates the file to the version of this program; an empty file becomes a store.
///
/// # Errors
/// [`StoreError::Corrupt`] for a file that is damaged or not a store's, [`StoreError::Unavailable`]
/// for one that a newer program has written, [`StoreError::WrongKey`] for one that was written under
/// other keys. Nothing is changed in any of these cases.
pub(crate) fn migrate(connection: &mut Connection, clock: &dyn Clock, vault: &Vault) -> Result<(), StoreError> {
    let found = Identity::read(connection).map_err(|error| translate(&error))?;
    let empty = found == Identity { application: 0, version: 0, tables: 0 };
    if !empty && found.application != APPLICATION_ID {
        return Err(StoreError::Corrupt("the database file is not a sakshi store".into()));
    }
    if found.version > MIGRATIONS.len() {
        let known = MIGRATIONS.len();
        return Err(unavailable(format!("a newer program wrote it: schema {}, this one knows up to {known}", found.version)));
    }
    let pending = &MIGRATIONS[found.version..];
    let failed = |error: rusqlite::Error| translate(&error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    if !pending.is_empty() {
        apply(&transaction, pending, clock).map_err(failed)?;
    }
    // In the same transaction: a file that is refused for its keys stays as it was.
    canary::check(&transaction, vault)?;
    transaction.commit().map_err(failed)
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
