//! Records in SQLite: a table for each kind, its columns those of the kind.
//!
//! Batches are applied on the thread that writes, inside its transaction, so that a group of them is durable with one commit.

use std::fmt;
use std::fmt::Write as _;

use rusqlite::types::ToSqlOutput;
use rusqlite::{OptionalExtension as _, Row, ToSql, params, params_from_iter};
use sakshi_domain::time::Timestamp;

use super::{Applied, Batch, Column, ColumnKind, Engine, Form, Guard, Key, Op, Operand, Record, Table, Value};
use crate::embedded::EmbeddedStore;
use crate::embedded::database::statements::Database;
use crate::error::StoreFuture;

/// Records in the file of a store.
#[derive(Clone)]
pub(crate) struct EmbeddedEngine(EmbeddedStore);

impl EmbeddedEngine {
    /// The records of a store, whose tables are created if they are missing.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn open(store: EmbeddedStore, tables: &'static [&'static Table]) -> Result<Self, crate::StoreError> {
        let create = move |db: &Database| tables.iter().try_for_each(|table| db.connection.execute_batch(&schema(table)));
        store.write(0, create).await?;
        Ok(Self(store))
    }
}

/// The statement that creates a table.
fn schema(table: &Table) -> String {
    let name = table.name;
    let columns = || {
        table.fields.iter().fold(String::new(), |mut sql, Column { name, kind }| {
            let kind = match kind {
                ColumnKind::Integer => "INTEGER",
                ColumnKind::Text => "TEXT",
                ColumnKind::Bytes => "BLOB",
            };
            // Writing to a string does not fail.
            let _ = write!(sql, ", \"{name}\" {kind}");
            sql
        })
    };
    match table.form {
        Form::Record => {
            format!("CREATE TABLE IF NOT EXISTS {name}_record (id BLOB NOT NULL UNIQUE, version INTEGER NOT NULL{})", columns())
        }
        Form::Expiring => format!(
            "CREATE TABLE IF NOT EXISTS {name}_record (id BLOB NOT NULL UNIQUE, version INTEGER NOT NULL, ends_at INTEGER{}); \
             CREATE INDEX IF NOT EXISTS {name}_ends ON {name}_record (ends_at) WHERE ends_at IS NOT NULL",
            columns()
        ),
        Form::List => format!(
            "CREATE TABLE IF NOT EXISTS {name}_list (id BLOB NOT NULL, entry INTEGER NOT NULL{}, PRIMARY KEY (id, entry)) WITHOUT ROWID",
            columns()
        ),
        Form::Index => format!(
            "CREATE TABLE IF NOT EXISTS {name}_index (id BLOB NOT NULL, score INTEGER NOT NULL, member BLOB NOT NULL, \
             PRIMARY KEY (id, member)) WITHOUT ROWID; \
             CREATE INDEX IF NOT EXISTS {name}_scores ON {name}_index (id, score)"
        ),
    }
}

/// `WHERE` of a record that has not ended; `?1` is its id and `?2` the time.
const fn alive(table: &Table) -> &'static str {
    match table.form {
        Form::Expiring => "id = ?1 AND (ends_at IS NULL OR ends_at > ?2)",
        _ => "id = ?1 AND ?2 IS NOT NULL",
    }
}

/// The record, with these fields alone.
fn read(db: &Database, key: &Key, fields: &[&'static Column], now: Timestamp) -> rusqlite::Result<Option<Record>> {
    let mut sql = String::with_capacity(160);
    sql.push_str("SELECT version");
    for Column { name, .. } in fields {
        let _ = write!(sql, ", \"{name}\"");
    }
    let _ = write!(sql, " FROM {}_record WHERE {}", key.table.name, alive(key.table));
    let record = |row: &Row<'_>| {
        let mut record = Record { version: row.get(0)?, ..Record::default() };
        for (place, column) in fields.iter().enumerate() {
            if let Some(value) = value(row, place + 1, column.kind)? {
                record.fields.insert(column.name, value);
            }
        }
        Ok(record)
    };
    db.statement(&sql)?.query_row(params![key.id, now.millis()], record).optional()
}

fn value(row: &Row<'_>, place: usize, kind: ColumnKind) -> rusqlite::Result<Option<Value>> {
    Ok(match kind {
        ColumnKind::Integer => row.get::<_, Option<i64>>(place)?.map(Value::Integer),
        ColumnKind::Text => row.get::<_, Option<String>>(place)?.map(Value::Text),
        ColumnKind::Bytes => row.get::<_, Option<Vec<u8>>>(place)?.map(Value::Bytes),
    })
}

fn all_fields(table: &'static Table) -> Vec<&'static Column> {
    table.fields.iter().collect()
}

/// The fields that these guards compare.
fn compared(guards: &[Guard], key: &Key) -> Vec<&'static Column> {
    let mut found: Vec<&'static Column> = Vec::new();
    for guard in guards.iter().filter(|guard| guard.key() == key) {
        for column in guard.fields().into_iter().filter_map(|name| key.table.column(name)) {
            if !found.iter().any(|known| known.name == column.name) {
                found.push(column);
            }
        }
    }
    found
}

/// Applies a batch inside the current transaction.
pub(crate) fn apply(db: &Database, batch: &Batch, now: Timestamp) -> rusqlite::Result<Applied> {
    // Guards of one record are one read.
    let mut seen: Vec<(&Key, Option<Record>)> = Vec::with_capacity(4);
    for (guard, condition) in batch.guards.iter().enumerate() {
        let key = condition.key();
        if !seen.iter().any(|(known, _)| *known == key) {
            seen.push((key, read(db, key, &compared(&batch.guards, key), now)?));
        }
        let known = seen.iter().find(|(known, _)| *known == key).and_then(|(_, record)| record.as_ref());
        if !condition.holds(known, now) {
            return Ok(Applied::Refused { guard, seen: read(db, key, &all_fields(key.table), now)?, now });
        }
    }
    let mut results = Vec::with_capacity(batch.ops.len());
    for (place, op) in batch.ops.iter().enumerate() {
        // A record that has ended is absent; one that this batch has written has not.
        let is_written = batch.ops[..place].iter().any(|before| matches!(before, Op::Put(key, _) if key == op.key()));
        if op.key().table.form == Form::Expiring && !is_written && !matches!(op, Op::Put(..)) {
            let sql = format!("DELETE FROM {}_record WHERE id = ?1 AND ends_at <= ?2", op.key().table.name);
            db.change(&sql, params![op.key().id, now.millis()])?;
        }
        let result = operate(db, op, now, &results)?;
        results.push(result);
    }
    Ok(Applied::Done { results, now })
}

/// A value as a parameter.
struct Parameter(Value);

impl ToSql for Parameter {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match &self.0 {
            Value::Integer(number) => number.to_sql(),
            Value::Text(text) => text.to_sql(),
            Value::Bytes(bytes) => bytes.to_sql(),
        }
    }
}

fn operate(db: &Database, op: &Op, now: Timestamp, results: &[i64]) -> rusqlite::Result<i64> {
    let key = op.key();
    let Table { name, form, fields } = key.table;
    let parameter = |operand: &Operand| Parameter(operand.resolve(now, results));
    match op {
        Op::Put(_, given) => {
            let mut sql = format!("INSERT INTO {name}_record (id, version");
            let _ = given.iter().try_for_each(|(field, _)| write!(sql, ", \"{field}\""));
            sql.push_str(") VALUES (?1, 1");
            let _ = (0..given.len()).try_for_each(|place| write!(sql, ", ?{}", place + 2));
            sql.push_str(") ON CONFLICT (id) DO UPDATE SET version = ");
            if *form == Form::Expiring {
                let _ = write!(sql, "CASE WHEN ends_at <= ?{} THEN 1 ELSE version + 1 END", given.len() + 2);
            } else {
                sql.push_str("version + 1");
            }
            for Column { name, .. } in *fields {
                let _ = write!(sql, ", \"{name}\" = excluded.\"{name}\"");
            }
            if *form == Form::Expiring {
                sql.push_str(", ends_at = NULL");
            }
            let (id, time) = (Parameter(Value::Bytes(key.id.clone())), Parameter(Value::Integer(now.millis())));
            let given = given.iter().map(|(_, value)| parameter(value));
            db.change(&sql, params_from_iter([id].into_iter().chain(given).chain((*form == Form::Expiring).then_some(time))))?;
            Ok(0)
        }
        Op::Set(_, given) => {
            let mut sql = format!("UPDATE {name}_record SET version = version + 1");
            for (place, (field, _)) in given.iter().enumerate() {
                let _ = write!(sql, ", \"{field}\" = ?{}", place + 2);
            }
            sql.push_str(" WHERE id = ?1");
            let id = Parameter(Value::Bytes(key.id.clone()));
            db.change(&sql, params_from_iter([id].into_iter().chain(given.iter().map(|(_, value)| parameter(value)))))?;
            Ok(0)
        }
        Op::Add(_, field, more) => {
            let sql = format!("UPDATE {name}_record SET \"{field}\" = coalesce(\"{field}\", 0) + ?2 WHERE id = ?1 RETURNING \"{field}\"");
            let sum = db.first(&sql, params![key.id, more.integer(now, results)], |row| row.get(0))?;
            Ok(sum.unwrap_or_default())
        }
        Op::Append(_, values) => {
            let mut sql = format!("INSERT INTO {name}_list (id, entry");
            let _ = fields.iter().try_for_each(|Column { name, .. }| write!(sql, ", \"{name}\""));
            let _ = write!(sql, ") VALUES (?1, 1 + coalesce((SELECT max(entry) FROM {name}_list WHERE id = ?1), 0)");
            let _ = (0..values.len()).try_for_each(|place| write!(sql, ", ?{}", place + 2));
            sql.push_str(") RETURNING entry");
            let id = Parameter(Value::Bytes(key.id.clone()));
            db.statement(&sql)?.query_row(params_from_iter([id].into_iter().chain(values.iter().map(parameter))), |row| row.get(0))
        }
        Op::Index(_, member, score) => {
            let sql = format!(
                "INSERT INTO {name}_index (id, member, score) VALUES (?1, ?2, ?3) ON CONFLICT (id, member) DO UPDATE SET score = ?3"
            );
            db.change(&sql, params![key.id, member, score.integer(now, results)])?;
            Ok(0)
        }
        Op::Sweep(_, until) => {
            let removed = db
                .change(&format!("DELETE FROM {name}_index WHERE id = ?1 AND score <= ?2"), params![key.id, until.integer(now, results)])?;
            Ok(i64::try_from(removed).unwrap_or(i64::MAX))
        }
        Op::ExpireAt(_, at) => {
            db.change(&format!("UPDATE {name}_record SET ends_at = ?2 WHERE id = ?1"), params![key.id, at.integer(now, results)])?;
            Ok(0)
        }
        Op::ExpireLater(_, at) => {
            let sql = format!("UPDATE {name}_record SET ends_at = max(ends_at, ?2) WHERE id = ?1 AND ends_at IS NOT NULL");
            db.change(&sql, params![key.id, at.integer(now, results)])?;
            Ok(0)
        }
        Op::Remove(_) => {
            let suffix = match form {
                Form::Record | Form::Expiring => "record",
                Form::List => "list",
                Form::Index => "index",
            };
            db.change(&format!("DELETE FROM {name}_{suffix} WHERE id = ?1"), [&key.id])?;
            Ok(0)
        }
    }
}

impl Engine for EmbeddedEngine {
    fn read(&self, keys: Vec<Key>) -> StoreFuture<Vec<Option<Record>>> {
        self.0.read(move |db| {
            let now = db.now();
            keys.iter().map(|key| read(db, key, &all_fields(key.table), now)).collect()
        })
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.0.write(0, move |db| {
            let now = db.now();
            batches.iter().map(|batch| apply(db, batch, now)).collect()
        })
    }

    fn entries(&self, list: Key, first: u64, count: u64) -> StoreFuture<Vec<Vec<Value>>> {
        let bound = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.0.read(move |db| {
            let Table { name, fields, .. } = list.table;
            let mut sql = "SELECT entry".to_owned();
            let _ = fields.iter().try_for_each(|Column { name, .. }| write!(sql, ", \"{name}\""));
            let _ = write!(sql, " FROM {name}_list WHERE id = ?1 AND entry >= ?2 ORDER BY entry LIMIT ?3");
            db.all(&sql, params![list.id, bound(first), bound(count)], |row| {
                let values = fields.iter().enumerate().map(|(place, column)| value(row, place + 1, column.kind));
                values.filter_map(Result::transpose).collect()
            })
        })
    }
}

impl fmt::Debug for EmbeddedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedEngine")
    }
}
