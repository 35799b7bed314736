//! Single flipped bits in the values of records, in entries of lists, and in members and scores of indexes.

use std::path::Path;
use std::sync::Mutex;

use rusqlite::Connection;
use rusqlite::types::Value;
use sakshi_kit::random::Random;

use super::case_count;
use super::flips::{count_effect, reference_reading, spread};
use super::look::{Case, judge_all};
use super::recording::{Recording, directory};
use super::trace::{DiskState, Files, Survivors};
use crate::conformance::flips::{Effects, flip_bit};
use crate::engine::embedded::statements::columns_of;
use crate::engine::{Form, Table};
use crate::records::ALL;

/// Name of the database file.
const NAME: &str = "sakshi.db";

/// A column of a kind's tables.
#[derive(Clone)]
struct StoredColumn {
    form: Form,
    /// Name of its SQL table.
    table: String,
    name: String,
    /// Name in the table of effects.
    description: String,
}

/// Returns the columns of a kind that have values. The rows of its large fields name their records.
fn columns(kind: &'static Table) -> Vec<StoredColumn> {
    let key_columns: &[(&str, &str)] = match kind.form {
        Form::Record => &[("_id", "id"), ("_version", "version")],
        Form::List => &[("_id", "id"), ("_entry", "number")],
        Form::Index => &[("_id", "id"), ("_member", "member"), ("_score", "score")],
    };
    let parts = columns_of(kind).into_iter().zip([key_columns, &[("_row", "row")]]);
    parts
        .flat_map(|((table, fields), keys)| {
            let fields = fields.into_iter().filter(|_| kind.form != Form::Index).map(|(name, _)| (name, name));
            let all: Vec<_> = keys.iter().copied().chain(fields).collect();
            all.into_iter().map(move |(name, description)| StoredColumn {
                form: kind.form,
                table: table.clone(),
                name: name.to_owned(),
                description: format!("{}.{description}", kind.name),
            })
        })
        .collect()
}

/// Flips one bit in this column of a random row. Returns `None` if no row has a value, or a constraint forbids the new
/// value.
fn flip(connection: &Connection, column: &StoredColumn, random: &mut Random) -> Option<()> {
    let StoredColumn { form, table, name, .. } = column;
    let select = format!(
        "SELECT \"{name}\", {} FROM {table} WHERE length(\"{name}\") > 0",
        if *form == Form::Index { "_id, _member" } else { "_row, NULL" }
    );
    let mut statement = connection.prepare(&select).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(Value, Value, Value)> = rows.map(Result::unwrap).collect();
    let (value, first, second) = rows.get(usize::try_from(random.next().checked_rem(rows.len() as u64)?).unwrap())?;
    let (operand, value) = match value {
        Value::Integer(number) => ("?1", Value::Integer(number ^ (1 << random.below(63)))),
        Value::Text(text) => ("CAST(?1 AS TEXT)", Value::Blob(flip_bit(text.as_bytes(), random)?)),
        Value::Blob(bytes) => ("?1", Value::Blob(flip_bit(bytes, random)?)),
        Value::Real(_) | Value::Null => return None,
    };
    let condition = if *form == Form::Index { "_id = ?2 AND _member = ?3" } else { "_row = ?2 AND ?3 IS NULL" };
    let update = format!("UPDATE {table} SET \"{name}\" = {operand} WHERE {condition}");
    connection.execute(&update, (value, first, second)).ok().map(drop)
}

/// Returns the base files with one bit flipped in a column.
fn flipped_files(scratch: &Path, base: &Files, column: &StoredColumn, random: &mut Random) -> Option<Files> {
    let path = scratch.join(NAME);
    std::fs::write(&path, &base[NAME]).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA journal_mode = DELETE; DROP TRIGGER audit_changed").unwrap();
    flip(&connection, column, random)?;
    connection.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    connection.close().unwrap();
    Some(Files::from([(NAME.to_owned(), std::fs::read(&path).unwrap())]))
}

#[test]
fn a_flipped_bit_in_a_record_is_noticed_or_has_a_documented_effect() {
    let recording = Recording::shared();
    let (_, mut random) = Random::of_this_run();
    let mut state = DiskState::default();
    recording.changes.iter().for_each(|change| state.apply(change));
    let base = state.after_crash(Survivors::Everything, &mut random);
    let (reference, last_answered) = reference_reading(recording, &base, recording.changes.len());
    let (scratch, effects) = (directory(), Mutex::new(Effects::default()));
    let all: Vec<StoredColumn> = ALL.iter().flat_map(|kind| columns(kind)).collect();
    let chosen = spread(&all, case_count("SAKSHI_RECORD_FLIPS", 60, 10_000), &mut random);
    let cases = chosen.into_iter().filter_map(|column| {
        let files = flipped_files(scratch.path(), &base, &column, &mut random)?;
        Some(Case { files, is_marked: true, moment: 0, description: column.description })
    });
    judge_all(cases, |directory, case| count_effect(recording, &reference, last_answered, directory, &case, &effects));
    let effects: Effects = effects.into_inner().unwrap();
    eprintln!("{effects}");
    effects.assert_allowed();
}
