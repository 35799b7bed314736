//! Records in SQLite: a table for each kind and one for its large fields, with a column for each field. A key is stored
//! as the number of its place, one byte, followed by its id.
//!
//! The writer thread applies batches inside its transaction, so one commit makes a group of batches durable. No
//! response is lost within the process, so the calls of batches are not stored.

mod apply;
mod read;
pub(crate) mod statements;
mod sweep;
pub(crate) mod walk;

use std::fmt;

use rusqlite::params;
use sakshi_domain::time::Timestamp;

use self::statements::{Statement, sql_for};
use super::{Answers, Applied, Batch, Engine, Form, Key, Place, Query, ScanFrom, Scanned, Table};
use crate::embedded::database::statements::Database;
use crate::embedded::sqlite::Sqlite;
use crate::error::StoreFuture;

/// Bytes of values in a write that has none, as counted for the queue of the writer thread.
const NO_WEIGHT: usize = 0;

/// Records in the file of a store.
#[derive(Clone)]
pub(crate) struct EmbeddedEngine {
    store: Sqlite,
    tables: &'static [&'static Table],
}

impl EmbeddedEngine {
    /// Returns the engine of a file that has the tables of these kinds.
    #[must_use]
    pub(crate) const fn new(store: Sqlite, tables: &'static [&'static Table]) -> Self {
        Self { store, tables }
    }
}

/// Returns the stored form of a key within its kind: the number of its place, followed by its id.
fn stored_id(key: &Key) -> Vec<u8> {
    [&[key.place.number()][..], &key.id].concat()
}

/// A time before every end, at which expired records that are not swept yet are read like others.
const BEFORE_EVERY_END: Timestamp = Timestamp::from_millis(0);

/// Returns a number as an integer of SQLite; larger numbers become `i64::MAX`.
fn sql_integer(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Returns the keys of a kind from a position on. The first step returns all keys of an index kind, because its table
/// has no row numbers to resume from.
fn scan(
    db: &Database,
    table: &'static Table,
    from: &ScanFrom,
    limit: usize,
    now: Timestamp,
) -> rusqlite::Result<Scanned> {
    let rows: Vec<(Vec<u8>, u64)> = match table.form {
        Form::Index => db.all(&sql_for(table, Statement::Scan), [], |row| Ok((row.get(0)?, 0)))?,
        Form::Record | Form::List => {
            let limits = params![sql_integer(from.number), sql_integer(limit)];
            db.all(&sql_for(table, Statement::Scan), limits, |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })?
        }
    };
    let last_row = rows.last().map(|(_, row)| *row).filter(|_| table.form != Form::Index && rows.len() >= limit);
    let mut keys = Vec::with_capacity(rows.len());
    for (stored_id, _) in rows {
        let Some((place, id)) = stored_id.split_first() else { continue };
        let Some(place) = Place::from_number(*place) else { continue };
        let key = Key { table, place, id: id.to_vec() };
        if read::record_or_owner_exists(db, &key, now)? {
            keys.push(key);
        }
    }
    let next = last_row.map(|number| ScanFrom { number, ..ScanFrom::default() });
    Ok(Scanned { keys, next, ..Scanned::default() })
}

/// Returns all keys of a kind, expired ones included.
#[cfg(test)]
pub(crate) fn keys(db: &Database, table: &'static Table) -> rusqlite::Result<Vec<Key>> {
    Ok(scan(db, table, &ScanFrom::default(), usize::MAX, BEFORE_EVERY_END)?.keys)
}

/// Returns the answer to a query on the caller's connection, expired records included.
#[cfg(test)]
pub(crate) fn answer(db: &Database, query: &Query) -> rusqlite::Result<super::Answer> {
    read::answer(db, query, BEFORE_EVERY_END)
}

impl Engine for EmbeddedEngine {
    fn system(&self) -> &'static str {
        "sqlite"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.store.read(move |db| {
            let now = db.now();
            let found = queries.iter().map(|query| read::answer(db, query, now)).collect::<Result<_, _>>()?;
            Ok(Answers { now, found })
        })
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.store.write(batches.iter().map(apply::weight).sum(), move |db| {
            let now = db.now();
            batches.iter().map(|batch| apply::apply(db, batch, now)).collect()
        })
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.store.read(move |db| scan(db, table, &from, limit, db.now()))
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        let tables = self.tables;
        self.store.write(NO_WEIGHT, move |db| {
            let at = now.min(db.now());
            apply::apply(db, &batch, at)?;
            sweep::sweep(db, tables, at, limit)
        })
    }

    fn is_shared(&self) -> bool {
        false
    }

    #[cfg(any(test, feature = "fuzzing"))]
    fn works_at_once(&self) -> bool {
        self.store.is_in_memory()
    }

    /// Writes as many bytes as a batch may need, and removes them again, so that a full store is reported.
    fn check(&self) -> StoreFuture<()> {
        self.store.write(NO_WEIGHT, |db| {
            db.change("UPDATE probe SET pad = zeroblob(16384) WHERE row = 1", [])?;
            db.change("UPDATE probe SET pad = NULL WHERE row = 1", []).map(drop)
        })
    }

    fn is_nearly_full(&self) -> bool {
        self.store.is_nearly_full()
    }

    fn purge(&self) -> StoreFuture<()> {
        self.store.empty_log()
    }
}

impl fmt::Debug for EmbeddedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedEngine")
    }
}
