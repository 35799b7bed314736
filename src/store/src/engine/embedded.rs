//! Records in SQLite: a table for each kind, its columns those of the kind.
//!
//! Batches are applied on the thread that writes, inside its transaction, so that a group of them is durable with one commit.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::fmt::Write as _;
use std::rc::Rc;

use rusqlite::types::{Null, ToSqlOutput};
use rusqlite::{Row, ToSql, params, params_from_iter};
use sakshi_domain::time::Timestamp;

use super::{Applied, Batch, Column, ColumnKind, Engine, Form, Key, Op, Operand, Record, Table, Value};
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

/// A statement of a table.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Statement {
    Read,
    Purge,
    Put,
    Set(Vec<&'static str>),
    Add(&'static str),
    Append,
    Entries,
    Index,
    Unindex,
    Sweep,
    ExpireAt,
    ExpireLater,
    Remove,
}

thread_local! {
    /// The text of each statement: to write it anew takes as long as to execute it.
    static TEXTS: RefCell<HashMap<(&'static str, Statement), Rc<str>>> = RefCell::default();
}

fn text(table: &'static Table, statement: Statement) -> Rc<str> {
    TEXTS.with_borrow_mut(|texts| {
        let key = (table.name, statement);
        if let Some(text) = texts.get(&key) {
            return Rc::clone(text);
        }
        let text: Rc<str> = written(table, &key.1).into();
        texts.insert(key, Rc::clone(&text));
        text
    })
}

fn written(table: &Table, statement: &Statement) -> String {
    let Table { name, form, fields } = table;
    let is_expiring = *form == Form::Expiring;
    let each = |write: &dyn Fn(usize, &str) -> String| {
        fields.iter().enumerate().map(|(place, column)| write(place, column.name)).collect::<String>()
    };
    let columns = each(&|_, field| format!(", \"{field}\""));
    match statement {
        Statement::Read => {
            let alive = if is_expiring { "(ends_at IS NULL OR ends_at > ?2)" } else { "?2 IS NOT NULL" };
            format!("SELECT version{columns} FROM {name}_record WHERE id = ?1 AND {alive}")
        }
        Statement::Purge => format!("DELETE FROM {name}_record WHERE id = ?1 AND ends_at <= ?2"),
        Statement::Put => {
            let values = each(&|place, _| format!(", ?{}", place + 3));
            let assigned = each(&|_, field| format!(", \"{field}\" = excluded.\"{field}\""));
            let (version, end) = if is_expiring {
                ("CASE WHEN ends_at <= ?2 THEN 1 ELSE version + 1 END", ", ends_at = NULL")
            } else {
                ("version + (?2 IS NOT NULL)", "")
            };
            format!(
                "INSERT INTO {name}_record (id, version{columns}) VALUES (?1, 1{values}) \
                 ON CONFLICT (id) DO UPDATE SET version = {version}{assigned}{end}"
            )
        }
        Statement::Set(fields) => {
            let assigned: String = fields.iter().enumerate().map(|(place, field)| format!(", \"{field}\" = ?{}", place + 2)).collect();
            format!("UPDATE {name}_record SET version = version + 1{assigned} WHERE id = ?1")
        }
        Statement::Add(field) => {
            format!("UPDATE {name}_record SET \"{field}\" = coalesce(\"{field}\", 0) + ?2 WHERE id = ?1 RETURNING \"{field}\"")
        }
        Statement::Append => {
            let values = each(&|place, _| format!(", ?{}", place + 2));
            format!(
                "INSERT INTO {name}_list (id, entry{columns}) \
                 VALUES (?1, 1 + coalesce((SELECT max(entry) FROM {name}_list WHERE id = ?1), 0){values}) RETURNING entry"
            )
        }
        Statement::Entries => format!("SELECT entry{columns} FROM {name}_list WHERE id = ?1 AND entry >= ?2 ORDER BY entry LIMIT ?3"),
        Statement::Index => {
            format!("INSERT INTO {name}_index (id, member, score) VALUES (?1, ?2, ?3) ON CONFLICT (id, member) DO UPDATE SET score = ?3")
        }
        Statement::Unindex => format!("DELETE FROM {name}_index WHERE id = ?1 AND member = ?2"),
        Statement::Sweep => format!("DELETE FROM {name}_index WHERE id = ?1 AND score <= ?2"),
        Statement::ExpireAt => format!("UPDATE {name}_record SET ends_at = ?2 WHERE id = ?1"),
        Statement::ExpireLater => format!("UPDATE {name}_record SET ends_at = max(ends_at, ?2) WHERE id = ?1 AND ends_at IS NOT NULL"),
        Statement::Remove => {
            let suffix = match form {
                Form::Record | Form::Expiring => "record",
                Form::List => "list",
                Form::Index => "index",
            };
            format!("DELETE FROM {name}_{suffix} WHERE id = ?1")
        }
    }
}

/// The record, if there is one that has not ended.
fn read(db: &Database, key: &Key, now: Timestamp) -> rusqlite::Result<Option<Record>> {
    let record = |row: &Row<'_>| {
        let mut record = Record { version: row.get(0)?, ..Record::default() };
        for (place, column) in key.table.fields.iter().enumerate() {
            if let Some(value) = value(row, place + 1, column.kind)? {
                record.fields.insert(column.name, value);
            }
        }
        Ok(record)
    };
    db.first(&text(key.table, Statement::Read), params![key.id, now.millis()], record)
}

fn value(row: &Row<'_>, place: usize, kind: ColumnKind) -> rusqlite::Result<Option<Value>> {
    Ok(match kind {
        ColumnKind::Integer => row.get::<_, Option<i64>>(place)?.map(Value::Integer),
        ColumnKind::Text => row.get::<_, Option<String>>(place)?.map(Value::Text),
        ColumnKind::Bytes => row.get::<_, Option<Vec<u8>>>(place)?.map(Value::Bytes),
    })
}

/// Applies a batch inside the current transaction.
pub(crate) fn apply(db: &Database, batch: &Batch, now: Timestamp) -> rusqlite::Result<Applied> {
    // Guards of one record are one read.
    let mut seen: Vec<(&Key, Option<Record>)> = Vec::with_capacity(4);
    for (guard, condition) in batch.guards.iter().enumerate() {
        let key = condition.key();
        if !seen.iter().any(|(known, _)| *known == key) {
            seen.push((key, read(db, key, now)?));
        }
        let known = seen.iter().find(|(known, _)| *known == key).and_then(|(_, record)| record.as_ref());
        if !condition.holds(known, now) {
            return Ok(Applied::Refused { guard, seen: known.cloned(), now });
        }
    }
    let mut results = Vec::with_capacity(batch.ops.len());
    for (place, op) in batch.ops.iter().enumerate() {
        // A record that has ended is absent; one that a guard saw or this batch has written has not.
        let is_seen = seen.iter().any(|(known, record)| *known == op.key() && record.is_some());
        let is_written = batch.ops[..place].iter().any(|before| matches!(before, Op::Put(key, _) if key == op.key()));
        if op.key().table.form == Form::Expiring && !is_seen && !is_written && !matches!(op, Op::Put(..)) {
            db.change(&text(op.key().table, Statement::Purge), params![op.key().id, now.millis()])?;
        }
        let result = operate(db, op, now, &results)?;
        results.push(result);
    }
    Ok(Applied::Done { results, now })
}

/// A value as a parameter.
struct Parameter(Option<Value>);

impl ToSql for Parameter {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match &self.0 {
            None => Ok(ToSqlOutput::Owned(Null.into())),
            Some(Value::Integer(number)) => number.to_sql(),
            Some(Value::Text(text)) => text.to_sql(),
            Some(Value::Bytes(bytes)) => bytes.to_sql(),
        }
    }
}

fn operate(db: &Database, op: &Op, now: Timestamp, results: &[i64]) -> rusqlite::Result<i64> {
    let key = op.key();
    let sql = |statement| text(key.table, statement);
    let parameter = |operand: &Operand| Parameter(Some(operand.resolve(now, results)));
    match op {
        Op::Put(_, given) => {
            let of_field = |name: &str| given.iter().find(|(field, _)| *field == name).map(|(_, operand)| operand);
            let values = key.table.fields.iter().map(|column| of_field(column.name).map_or(Parameter(None), parameter));
            let first = [Parameter(Some(Value::Bytes(key.id.clone()))), Parameter(Some(Value::Integer(now.millis())))];
            db.change(&sql(Statement::Put), params_from_iter(first.into_iter().chain(values)))?;
            Ok(0)
        }
        Op::Set(_, given) => {
            let fields = given.iter().map(|(field, _)| *field).collect();
            let id = Parameter(Some(Value::Bytes(key.id.clone())));
            let values = given.iter().map(|(_, operand)| parameter(operand));
            db.change(&sql(Statement::Set(fields)), params_from_iter([id].into_iter().chain(values)))?;
            Ok(0)
        }
        Op::Add(_, field, more) => {
            let sum = db.first(&sql(Statement::Add(field)), params![key.id, more.integer(now, results)], |row| row.get(0))?;
            Ok(sum.unwrap_or_default())
        }
        Op::Append(_, values) => {
            let id = Parameter(Some(Value::Bytes(key.id.clone())));
            let parameters = params_from_iter([id].into_iter().chain(values.iter().map(parameter)));
            db.statement(&sql(Statement::Append))?.query_row(parameters, |row| row.get(0))
        }
        Op::Index(_, member, score) => {
            db.change(&sql(Statement::Index), params![key.id, member, score.integer(now, results)])?;
            Ok(0)
        }
        Op::Unindex(_, member) => {
            let removed = db.change(&sql(Statement::Unindex), params![key.id, member])?;
            Ok(if removed == 0 { -1 } else { 0 })
        }
        Op::Sweep(_, until) => {
            let removed = db.change(&sql(Statement::Sweep), params![key.id, until.integer(now, results)])?;
            Ok(i64::try_from(removed).unwrap_or(i64::MAX))
        }
        Op::ExpireAt(_, at) => {
            db.change(&sql(Statement::ExpireAt), params![key.id, at.integer(now, results)])?;
            Ok(0)
        }
        Op::ExpireLater(_, at) => {
            db.change(&sql(Statement::ExpireLater), params![key.id, at.integer(now, results)])?;
            Ok(0)
        }
        Op::Remove(_) => {
            db.change(&sql(Statement::Remove), [&key.id])?;
            Ok(0)
        }
    }
}

impl Engine for EmbeddedEngine {
    fn read(&self, keys: Vec<Key>) -> StoreFuture<Vec<Option<Record>>> {
        self.0.read(move |db| {
            let now = db.now();
            keys.iter().map(|key| read(db, key, now)).collect()
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
            let fields = list.table.fields;
            let sql = text(list.table, Statement::Entries);
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
