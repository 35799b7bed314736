//! Application of batches to the tables of SQLite.

use rusqlite::types::{Null, ToSqlOutput};
use rusqlite::{ToSql, params, params_from_iter};
use sakshi_domain::time::Timestamp;

use super::statements::{Condition, EndChange, Statement, can_end, is_large, names, sql_for};
use super::{read, sql_integer, stored_id};
use crate::embedded::database::statements::Database;
use crate::engine::batch::next_number;
use crate::engine::{Applied, Batch, ColumnKind, Guard, Key, Op, Operand, Record, Value, no_field};

/// Returns the approximate number of bytes that a batch writes.
pub(super) fn weight(batch: &Batch) -> usize {
    let size = |operand: &Operand| if let Operand::Value(value) = operand { value.size() } else { 0 };
    batch.ops.iter().flat_map(operands).map(size).sum()
}

/// Returns the values that an operation writes.
fn operands(op: &Op) -> Vec<&Operand> {
    match op {
        Op::Put(_, fields) | Op::Set(_, fields) => fields.iter().map(|(_, operand)| operand).collect(),
        Op::Append(_, values) | Op::Rewrite(_, _, values) => values.iter().collect(),
        Op::Add(_, _, operand)
        | Op::Index(_, _, operand)
        | Op::Sweep(_, _, operand)
        | Op::ExpireAt(_, operand)
        | Op::ExpireLater(_, operand) => vec![operand],
        Op::DrawNumber(..) | Op::Unindex(..) | Op::ClearExpiry(_) | Op::Remove(_) | Op::Notify(..) => vec![],
    }
}

/// A parameter of a statement; `None` is NULL.
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

/// A batch that is being applied.
struct Work<'a> {
    db: &'a Database,
    now: Timestamp,
    batch: &'a Batch,
    /// The records that guards have read, with the fields that they compare.
    guard_records: Vec<(&'a Key, Option<Record>)>,
    /// The results of the operations applied so far.
    results: Vec<i64>,
}

/// Applies a batch inside the current transaction.
pub(super) fn apply(db: &Database, batch: &Batch, now: Timestamp) -> rusqlite::Result<Applied> {
    let mut work = Work {
        db,
        now,
        batch,
        guard_records: Vec::with_capacity(batch.guards.len()),
        results: Vec::with_capacity(batch.ops.len()),
    };
    if !work.apply_first_with_guards()? {
        for (guard, condition) in batch.guards.iter().enumerate() {
            if !work.holds(condition)? {
                let was_read = work.guard_records.iter().any(|(key, _)| *key == condition.key());
                let record = if was_read { read::record(db, condition.key(), now)? } else { None };
                return Ok(Applied::Refused { guard, record, now });
            }
        }
    }
    for op in batch.ops.iter().skip(work.results.len()) {
        let result = work.operate(op)?;
        work.results.push(result);
    }
    Ok(Applied::Done { results: work.results, now })
}

/// Converts a guard to a condition on its record, with its parameter; `None` if only [`Guard::holds`] can decide it.
fn condition(guard: &Guard) -> Option<(Condition, Option<Parameter>)> {
    if guard.fields().iter().any(|field| is_large(guard.key().table, field)) {
        return None;
    }
    let is_integer =
        |field: &&str| guard.key().table.column(field).is_some_and(|column| column.kind == ColumnKind::Integer);
    let integer = |number: i64| Some(Parameter(Some(Value::Integer(number))));
    Some(match guard {
        Guard::Version(_, version) => (Condition::Version, integer(*version)),
        Guard::Unset(_, field) => (Condition::Is(field), Some(Parameter(None))),
        Guard::Equal(key, field, value) => {
            let is_same = matches!(
                (key.table.column(field)?.kind, value),
                (ColumnKind::Integer, Value::Integer(_))
                    | (ColumnKind::Text, Value::Text(_))
                    | (ColumnKind::Bytes | ColumnKind::Sealed(_), Value::Bytes(_))
            );
            return is_same.then(|| (Condition::Is(field), Some(Parameter(Some(value.clone())))));
        }
        Guard::Before(_, field) if is_integer(field) => (Condition::Before(field), None),
        Guard::Below(_, field, limit) if is_integer(field) && is_integer(limit) => {
            (Condition::Below(field, limit), None)
        }
        Guard::AtLeast(_, field, least) if is_integer(field) => (Condition::AtLeast(field), integer(*least)),
        Guard::AtMost(_, field, most) if is_integer(field) => (Condition::AtMost(field), integer(*most)),
        _ => return None,
    })
}

impl<'a> Work<'a> {
    /// Applies the first operation and the guards on its record in one statement. This is possible in the usual case,
    /// and returns true then. Otherwise nothing is changed, and the caller checks the guards one after the other.
    fn apply_first_with_guards(&mut self) -> rusqlite::Result<bool> {
        let Some(op @ (Op::Set(key, _) | Op::Add(key, ..))) = self.batch.ops.first() else { return Ok(false) };
        let mut conditions = Vec::with_capacity(self.batch.guards.len());
        for guard in &self.batch.guards {
            if guard.key() != key {
                if !self.holds(guard)? {
                    return Ok(false);
                }
            } else if let Some(condition) = condition(guard) {
                conditions.push(condition);
            } else {
                return Ok(false);
            }
        }
        let result = if conditions.is_empty() { None } else { self.update(op, conditions)? };
        if let Some(result) = result {
            self.results.push(result);
            self.guard_records.push((key, Some(Record::default())));
        }
        Ok(result.is_some())
    }

    /// Returns true if a guard holds.
    fn holds(&mut self, guard: &'a Guard) -> rusqlite::Result<bool> {
        let (db, key) = (self.db, guard.key());
        match guard {
            Guard::Length(_, length) => {
                Ok(if read::record_or_owner_exists(db, key, self.now)? { read::length(db, key)? } else { 0 } == *length)
            }
            Guard::Fewer(_, limit) if read::record_or_owner_exists(db, key, self.now)? => {
                read::has_fewer(db, key, *limit)
            }
            Guard::Fewer(_, limit) => Ok(*limit > 0),
            Guard::Free(_, score) => {
                Ok(!read::record_or_owner_exists(db, key, self.now)? || read::is_free(db, key, *score)?)
            }
            Guard::Entry(_, 0, _) => Ok(false),
            Guard::Entry(_, number, values) => {
                let entry = if read::record_or_owner_exists(db, key, self.now)? {
                    read::entry(db, key, *number)?
                } else {
                    None
                };
                Ok(entry.as_ref() == Some(values))
            }
            on_record => {
                // All guards on a record share one read.
                if !self.guard_records.iter().any(|(known, _)| *known == key) {
                    let names: Vec<_> =
                        self.batch.guards.iter().filter(|guard| guard.key() == key).flat_map(Guard::fields).collect();
                    self.guard_records.push((key, read::fields(db, key, &names, self.now)?));
                }
                let record =
                    self.guard_records.iter().find(|(known, _)| *known == key).and_then(|(_, record)| record.as_ref());
                Ok(on_record.holds(record, self.now))
            }
        }
    }

    /// Returns true if a record is known to exist, because the batch has written it or a guard has read it.
    fn is_known_to_exist(&self, key: &Key) -> bool {
        let before = self.batch.ops.iter().take(self.results.len()).rev().filter(|op| op.key() == key);
        let mut decisive =
            before.filter(|op| matches!(op, Op::Put(..) | Op::DrawNumber(..) | Op::ExpireAt(..) | Op::Remove(_)));
        match decisive.next() {
            Some(op) => matches!(op, Op::Put(..) | Op::DrawNumber(..)),
            None => self.guard_records.iter().any(|(known, record)| *known == key && record.is_some()),
        }
    }

    /// Returns true unless the record that owns the list or index is missing.
    fn owner_exists(&self, key: &Key) -> rusqlite::Result<bool> {
        match key.parent() {
            Some(parent) if !self.is_known_to_exist(&parent) => read::record_or_owner_exists(self.db, key, self.now),
            _ => Ok(true),
        }
    }

    /// Removes an expired record with its lists and indexes, before a new record replaces it.
    fn remove_if_expired(&self, key: &Key) -> rusqlite::Result<()> {
        if can_end(key.table)
            && !self.is_known_to_exist(key)
            && self.db.change(&sql_for(key.table, Statement::Purge), params![stored_id(key), self.now.millis()])? > 0
        {
            self.remove_children(key)?;
        }
        Ok(())
    }

    /// Removes the lists and indexes of a record.
    fn remove_children(&self, key: &Key) -> rusqlite::Result<()> {
        let remove = |child| self.db.change(&sql_for(child, Statement::Remove), [stored_id(key)]).map(drop);
        key.table.children().iter().copied().try_for_each(remove)
    }

    /// Applies an operation. Returns its result.
    fn operate(&self, op: &Op) -> rusqlite::Result<i64> {
        match op {
            Op::Notify(..) => Ok(0),
            Op::Remove(key) => {
                self.db.change(&sql_for(key.table, Statement::Remove), [stored_id(key)])?;
                self.remove_children(key)?;
                Ok(0)
            }
            Op::Append(key, ..) | Op::Rewrite(key, ..) | Op::Index(key, ..) | Op::Sweep(key, ..)
                if !self.owner_exists(key)? =>
            {
                Ok(0)
            }
            Op::Unindex(key, _) if !self.owner_exists(key)? => Ok(-1),
            Op::Append(..) | Op::Rewrite(..) => self.change_list(op),
            Op::Index(..) | Op::Unindex(..) | Op::Sweep(..) => self.change_index(op),
            // Records of this kind have no end.
            Op::ExpireAt(key, _) | Op::ExpireLater(key, _) | Op::ClearExpiry(key) if !can_end(key.table) => Ok(0),
            // The statement of the previous operation has set the end.
            Op::ExpireAt(..) | Op::ClearExpiry(_)
                if self.end_set_after(self.results.len().wrapping_sub(1)) != EndChange::Unchanged =>
            {
                Ok(0)
            }
            _ => self.change_record(op),
        }
    }

    /// Returns the end that the operation after number `op` sets on the record that operation `op` writes. One
    /// statement then does both.
    fn end_set_after(&self, op: usize) -> EndChange {
        let [written, next, ..] = self.batch.ops.get(op..).unwrap_or_default() else { return EndChange::Unchanged };
        match (written, next) {
            _ if written.key() != next.key() || !can_end(next.key().table) => EndChange::Unchanged,
            (Op::Set(key, fields), Op::ExpireAt(_, Operand::Field(name))) => {
                let is_set = fields.iter().any(|(field, _)| field == name);
                let is_integer = key.table.column(name).is_some_and(|column| column.kind == ColumnKind::Integer);
                if is_integer && !is_set { EndChange::Field(name) } else { EndChange::Unchanged }
            }
            (Op::Put(..), Op::ExpireAt(_, Operand::Field(_))) => EndChange::Unchanged,
            (Op::Put(..) | Op::Set(..), Op::ExpireAt(..)) => EndChange::Parameter,
            (Op::Set(..), Op::ClearExpiry(_)) => EndChange::Cleared,
            _ => EndChange::Unchanged,
        }
    }

    /// Returns the end that the statement of the current operation takes as a parameter.
    fn end_parameter(&self) -> Option<i64> {
        let at = self.results.len();
        match self.batch.ops.get(at + 1) {
            Some(Op::ExpireAt(_, end)) if self.end_set_after(at) == EndChange::Parameter => {
                Some(end.integer(self.now, &self.results, &no_field))
            }
            _ => None,
        }
    }

    /// Reads the fields of the changed record that the operands of an operation name.
    fn own_fields(&self, op: &Op) -> rusqlite::Result<Record> {
        let named = |operand: &Operand| if let Operand::Field(name) = operand { Some(*name) } else { None };
        let names: Vec<&'static str> = operands(op).into_iter().filter_map(named).collect();
        let own = if names.is_empty() { None } else { read::fields(self.db, op.key(), &names, self.now)? };
        Ok(own.unwrap_or_default())
    }

    /// Applies an operation to a record. Returns its result.
    fn change_record(&self, op: &Op) -> rusqlite::Result<i64> {
        let (db, key, own_fields) = (self.db, op.key(), self.own_fields(op)?);
        let own_field = |name: &'static str| own_fields.fields.get(name).cloned();
        let parameter = |operand: &Operand| Parameter(operand.resolve(self.now, &self.results, &own_field));
        let sql = |statement| sql_for(key.table, statement);
        let (id, now) = (stored_id(key), self.now.millis());
        // Every statement on records begins with these parameters.
        let first = || [Parameter(Some(Value::Bytes(id.clone()))), Parameter(Some(Value::Integer(now)))].into_iter();
        match op {
            Op::Put(_, fields) => {
                if !key.table.children().is_empty() {
                    self.remove_if_expired(key)?;
                }
                let end = can_end(key.table).then(|| Parameter(self.end_parameter().map(Value::Integer)));
                let operand_for =
                    |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, operand)| operand);
                let values = |names: Vec<&'static str>| {
                    names.into_iter().map(|name| operand_for(name).map_or(Parameter(None), parameter))
                };
                let small = values(names(key.table, false).collect());
                db.change(&sql(Statement::Put), params_from_iter(first().chain(end).chain(small)))?;
                if !key.table.large.is_empty() {
                    let large = values(key.table.large.to_vec());
                    let statement = Statement::SetLarge(key.table.large.to_vec());
                    db.change(&sql(statement), params_from_iter(first().chain(large)))?;
                }
            }
            Op::Set(..) | Op::Add(..) => return Ok(self.update(op, vec![])?.unwrap_or_default()),
            Op::DrawNumber(_, field) => {
                self.remove_if_expired(key)?;
                db.change(&sql(Statement::DrawNumber(field)), params![id, next_number(0, self.now)])?;
                return Ok(self.written_number(key, field)?.unwrap_or_default());
            }
            Op::ExpireAt(_, end) | Op::ExpireLater(_, end) => {
                let statement =
                    if matches!(op, Op::ExpireAt(..)) { Statement::ExpireAt } else { Statement::ExpireLater };
                db.change(&sql(statement), params![id, now, end.integer(self.now, &self.results, &own_field)])?;
            }
            Op::ClearExpiry(_) => db.change(&sql(Statement::ClearExpiry), params![id, now]).map(drop)?,
            _ => {}
        }
        Ok(0)
    }

    /// Applies [`Op::Set`] or [`Op::Add`] if the record exists and the conditions hold. Returns the result; `None` if
    /// nothing was changed.
    fn update(&self, op: &Op, conditions: Vec<(Condition, Option<Parameter>)>) -> rusqlite::Result<Option<i64>> {
        let (db, key, own_fields) = (self.db, op.key(), self.own_fields(op)?);
        let own_field = |name: &'static str| own_fields.fields.get(name).cloned();
        let (conditions, compared): (Vec<_>, Vec<_>) = conditions.into_iter().unzip();
        let integer = |number| Parameter(Some(Value::Integer(number)));
        // Every statement on records begins with these parameters.
        let first = || [Parameter(Some(Value::Bytes(stored_id(key)))), integer(self.now.millis())].into_iter();
        let mut parameters: Vec<Parameter> = first().collect();
        match op {
            Op::Add(_, field, more) => {
                parameters.push(integer(more.integer(self.now, &self.results, &own_field)));
                parameters.extend(compared.into_iter().flatten());
                match db.change(&sql_for(key.table, Statement::Add(field, conditions)), params_from_iter(parameters))? {
                    0 => Ok(None),
                    _ => self.written_number(key, field),
                }
            }
            Op::Set(_, fields) => {
                let resolved = |operand: &Operand| Parameter(operand.resolve(self.now, &self.results, &own_field));
                let names_and_values = |large: bool| -> (Vec<_>, Vec<_>) {
                    let part = fields.iter().filter(|(field, _)| is_large(key.table, field) == large);
                    part.map(|(field, operand)| (*field, resolved(operand))).unzip()
                };
                let (names, values) = names_and_values(false);
                let statement = Statement::Set(names, self.end_set_after(self.results.len()), conditions);
                parameters.extend(values);
                parameters.extend(self.end_parameter().map(integer));
                parameters.extend(compared.into_iter().flatten());
                if db.change(&sql_for(key.table, statement), params_from_iter(parameters))? == 0 {
                    return Ok(None);
                }
                let (names, values) = names_and_values(true);
                if !names.is_empty() {
                    let sql = sql_for(key.table, Statement::SetLarge(names));
                    db.change(&sql, params_from_iter(first().chain(values)))?;
                }
                Ok(Some(0))
            }
            _ => Ok(None),
        }
    }

    /// Returns the integer that a statement has just written into a field.
    fn written_number(&self, key: &Key, field: &'static str) -> rusqlite::Result<Option<i64>> {
        let sql = sql_for(key.table, Statement::Fields(vec![field]));
        self.db.first(&sql, params![stored_id(key), self.now.millis()], |row| row.get(1))
    }

    /// Applies an operation to a list. Returns its result.
    fn change_list(&self, op: &Op) -> rusqlite::Result<i64> {
        let (db, key) = (self.db, op.key());
        let parameter = |operand: &Operand| Parameter(operand.resolve(self.now, &self.results, &no_field));
        let first = Parameter(Some(Value::Bytes(stored_id(key))));
        match op {
            Op::Append(_, values) => {
                let entry = sql_integer(read::length(db, key)? + 1);
                let first = [first, Parameter(Some(Value::Integer(entry)))].into_iter();
                let parameters = params_from_iter(first.chain(values.iter().map(parameter)));
                db.change(&sql_for(key.table, Statement::Append), parameters).map(|_| entry)
            }
            Op::Rewrite(_, number, values) => {
                let first = [first, Parameter(Some(Value::number(*number)))].into_iter();
                let parameters = params_from_iter(first.chain(values.iter().map(parameter)));
                db.change(&sql_for(key.table, Statement::Rewrite), parameters).map(|_| 0)
            }
            _ => Ok(0),
        }
    }

    /// Applies an operation to an index. Returns its result.
    fn change_index(&self, op: &Op) -> rusqlite::Result<i64> {
        let (db, key) = (self.db, op.key());
        let integer = |operand: &Operand| operand.integer(self.now, &self.results, &no_field);
        let sql = |statement| sql_for(key.table, statement);
        match op {
            Op::Index(_, member, score) => {
                db.change(&sql(Statement::Index), params![stored_id(key), member, integer(score)]).map(|_| 0)
            }
            Op::Unindex(_, member) => {
                let removed = db.change(&sql(Statement::Unindex), params![stored_id(key), member])?;
                Ok(if removed == 0 { -1 } else { 0 })
            }
            Op::Sweep(_, above, until) => {
                db.change(&sql(Statement::Sweep), params![stored_id(key), above, integer(until)]).map(sql_integer)
            }
            _ => Ok(0),
        }
    }
}
