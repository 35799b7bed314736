//! Reads of records, and answers to queries.

use rusqlite::{Row, params};
use sakshi_domain::time::Timestamp;

use super::statements::{Statement, can_end, sql_for};
use super::{sql_integer, stored_id};
use crate::embedded::database::statements::Database;
use crate::engine::{Answer, ColumnKind, Form, Key, Operand, Query, Record, ScoredMember, Value, no_field};

/// Returns the record, if it exists and has not expired.
pub(super) fn record(db: &Database, key: &Key, now: Timestamp) -> rusqlite::Result<Option<Record>> {
    let all = key.table.fields.iter().map(|column| (column.name, column.kind));
    select_record(db, key, Statement::Read, all, now)
}

/// Returns the record with these fields alone.
pub(super) fn fields(
    db: &Database,
    key: &Key,
    names: &[&'static str],
    now: Timestamp,
) -> rusqlite::Result<Option<Record>> {
    let columns: Vec<_> =
        names.iter().filter_map(|name| key.table.column(name)).map(|column| (column.name, column.kind)).collect();
    let statement = Statement::Fields(columns.iter().map(|(name, _)| *name).collect());
    select_record(db, key, statement, columns.into_iter(), now)
}

/// Reads a record by a statement that selects the version and these columns.
fn select_record(
    db: &Database,
    key: &Key,
    statement: Statement,
    columns: impl Iterator<Item = (&'static str, ColumnKind)>,
    now: Timestamp,
) -> rusqlite::Result<Option<Record>> {
    db.first(&sql_for(key.table, statement), params![stored_id(key), now.millis()], |row| {
        let mut record = Record { version: row.get(0)?, ..Record::default() };
        for (index, (name, kind)) in columns.enumerate() {
            if let Some(value) = value(row, index + 1, kind)? {
                record.fields.insert(name, value);
            }
        }
        Ok(record)
    })
}

/// Reads the value of a field from a column of a row; `None` for NULL.
fn value(row: &Row<'_>, index: usize, kind: ColumnKind) -> rusqlite::Result<Option<Value>> {
    Ok(match kind {
        ColumnKind::Integer => row.get::<_, Option<i64>>(index)?.map(Value::Integer),
        ColumnKind::Text => row.get::<_, Option<String>>(index)?.map(Value::Text),
        ColumnKind::Bytes | ColumnKind::Sealed(_) => row.get::<_, Option<Vec<u8>>>(index)?.map(Value::Bytes),
    })
}

/// Returns true if the record exists, or the record that owns the list or index.
pub(super) fn record_or_owner_exists(db: &Database, key: &Key, now: Timestamp) -> rusqlite::Result<bool> {
    let required = match key.table.form {
        Form::Record => Some(key.clone()),
        Form::List | Form::Index => key.parent(),
    };
    required
        .map_or(Ok(true), |key| db.any(&sql_for(key.table, Statement::Exists), params![stored_id(&key), now.millis()]))
}

/// Returns the entries of a list from number `first` on. Stops at `limit` entries, or once their last fields hold
/// `max_bytes` bytes.
pub(super) fn entries(
    db: &Database,
    list: &Key,
    first: u64,
    limit: u64,
    max_bytes: usize,
) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut statement = db.statement(&sql_for(list.table, Statement::Entries))?;
    let mut rows = statement.query(params![stored_id(list), sql_integer(first), sql_integer(limit)])?;
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while bytes < max_bytes.max(1)
        && let Some(row) = rows.next()?
    {
        let values = list.table.fields.iter().enumerate().map(|(index, column)| value(row, index + 1, column.kind));
        let entry: Vec<Value> = values.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        bytes += entry.last().map_or(0, Value::size).max(1);
        entries.push(entry);
    }
    Ok(entries)
}

/// Returns the entry with this number, if the list has one.
pub(super) fn entry(db: &Database, list: &Key, number: u64) -> rusqlite::Result<Option<Vec<Value>>> {
    // A list has no gaps: the first entry from a number on has that number.
    Ok(entries(db, list, number, 1, usize::MAX)?.pop())
}

/// Returns the number of entries of a list.
pub(super) fn length(db: &Database, list: &Key) -> rusqlite::Result<u64> {
    query_number(db, list, Statement::Length, None)
}

/// Returns true if an index has fewer than `limit` members.
pub(super) fn has_fewer(db: &Database, index: &Key, limit: u64) -> rusqlite::Result<bool> {
    Ok(query_number(db, index, Statement::Fewer, Some(sql_integer(limit)))? < limit)
}

/// Returns true if an index has no member with this score.
pub(super) fn is_free(db: &Database, index: &Key, score: i64) -> rusqlite::Result<bool> {
    Ok(!db.any(&sql_for(index.table, Statement::Scored), params![stored_id(index), score])?)
}

/// Returns the number that a statement selects; 0 for no row. `parameter` follows the key.
fn query_number(db: &Database, key: &Key, statement: Statement, parameter: Option<i64>) -> rusqlite::Result<u64> {
    let (sql, stored_id) = (sql_for(key.table, statement), stored_id(key));
    let number = match parameter {
        Some(parameter) => db.first(&sql, params![stored_id, parameter], |row| row.get::<_, i64>(0))?,
        None => db.first(&sql, [stored_id], |row| row.get(0))?,
    };
    Ok(number.unwrap_or_default().unsigned_abs())
}

/// Reads a member of an index and its score from a row.
fn scored_member(row: &Row<'_>) -> rusqlite::Result<ScoredMember> {
    Ok((row.get(0)?, row.get(1)?))
}

/// Returns the answer to a query.
pub(super) fn answer(db: &Database, query: &Query, now: Timestamp) -> rusqlite::Result<Answer> {
    let bound = |operand: &Operand| operand.integer(now, &[], &no_field);
    let record_or_owner_exists = |key: &Key| record_or_owner_exists(db, key, now);
    Ok(match query {
        Query::Record(key) => Answer::Record(record(db, key, now)?),
        Query::Fields(key, names) => Answer::Record(fields(db, key, names, now)?),
        Query::End(key) if can_end(key.table) => {
            let end = db.first(&sql_for(key.table, Statement::End), params![stored_id(key), now.millis()], |row| {
                row.get::<_, i64>(0)
            })?;
            Answer::Number(end.and_then(|end| u64::try_from(end).ok()).unwrap_or_default())
        }
        Query::End(_) => Answer::Number(0),
        Query::Entries { list, first, limit, max_bytes } if record_or_owner_exists(list)? => {
            Answer::Entries(entries(db, list, *first, *limit, *max_bytes)?)
        }
        Query::Entries { .. } => Answer::Entries(vec![]),
        Query::Length(list) => Answer::Number(if record_or_owner_exists(list)? { length(db, list)? } else { 0 }),
        Query::Members { index, above, until, offset, limit } if record_or_owner_exists(index)? => {
            let parameters = params![stored_id(index), above, bound(until), sql_integer(*limit), sql_integer(*offset)];
            Answer::Members(db.all(&sql_for(index.table, Statement::Members), parameters, scored_member)?)
        }
        Query::Last(index) if record_or_owner_exists(index)? => {
            Answer::Members(db.all(&sql_for(index.table, Statement::Last), [stored_id(index)], scored_member)?)
        }
        Query::Members { .. } | Query::Last(_) => Answer::Members(vec![]),
        Query::Count(index, until) => Answer::Number(if record_or_owner_exists(index)? {
            query_number(db, index, Statement::Count, Some(bound(until)))?
        } else {
            0
        }),
    })
}
