//! The tables, and how a file gets from one version of them to the next.
//!
//! A client is an integer inside the tables. A transaction is a row in arrival order with its
//! random id in an index of its own, because random keys in a clustered tree touch a page each.
//! What a transaction was asked for is one sealed box: it can hold a name and a webhook's secret.
//! An outcome is a row of its own, so `results` is also what tells completed from pending; that
//! of a registered guest is in `registrations`, which outlives the transaction.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sakshi_domain::clock::Clock;

use super::fault::{open_error, unavailable};
use super::keyring;
use crate::error::StoreError;
use crate::vault::Vault;

/// "SAKS": tells this file from any other SQLite database.
pub(super) const APPLICATION_ID: i64 = 0x5341_4B53;

/// The step to each version; a file remembers in `user_version` how many it has taken.
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

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
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

/// Brings the file to the version that this program knows; an empty file becomes a store.
///
/// # Errors
/// [`StoreError::Corrupt`] for a file that is damaged or is no store, [`StoreError::Unavailable`]
/// for one that a newer program has written, [`StoreError::WrongKey`] for one that was written under
/// other keys. Nothing is changed in any of these cases.
pub(super) fn migrate(connection: &mut Connection, clock: &dyn Clock, vault: &Vault) -> Result<(), StoreError> {
    let found = Identity::read(connection).map_err(|error| open_error(&error))?;
    let empty = found == Identity { application: 0, version: 0, tables: 0 };
    if !empty && found.application != APPLICATION_ID {
        return Err(StoreError::Corrupt("the database file is not a sakshi store".into()));
    }
    if found.version > MIGRATIONS.len() {
        let known = MIGRATIONS.len();
        return Err(unavailable(format!("a newer program wrote it: schema {}, this one knows up to {known}", found.version)));
    }
    let pending = &MIGRATIONS[found.version..];
    let failed = |error: rusqlite::Error| open_error(&error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    if !pending.is_empty() {
        take(&transaction, pending, clock).map_err(failed)?;
    }
    // In the same transaction: a file that is refused for its keys stays as it was.
    keyring::check(&transaction, vault)?;
    transaction.commit().map_err(failed)
}

fn take(transaction: &Transaction<'_>, steps: &[&str], clock: &dyn Clock) -> rusqlite::Result<()> {
    for sql in steps {
        transaction.execute_batch(sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX))?;
    transaction.execute("UPDATE probe SET at = ?1", [clock.now().millis()])?;
    Ok(())
}
