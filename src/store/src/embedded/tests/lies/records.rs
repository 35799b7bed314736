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

/// Returns the columns of a kind that have values, with their names for the table of effects.
fn columns(table: &'static Table) -> Vec<(String, String)> {
    let key_columns: &[(&str, &str)] = match table.form {
        Form::Record => &[("_id", "id"), ("_version", "version")],
        Form::List => &[("_id", "id"), ("_entry", "number")],
        Form::Index => &[("_id", "id"), ("_member", "member"), ("_score", "score")],
    };
    let fields = if table.form == Form::Index { vec![] } else { columns_of(table).1 };
    let fields = fields.iter().map(|(column, _)| ((*column).to_owned(), *column));
    let all = key_columns.iter().map(|(column, name)| ((*column).to_owned(), *name)).chain(fields);
    all.map(|(column, name)| (column, format!("{}.{name}", table.name))).collect()
}

/// Flips one bit in this column of a random row. Returns `None` if no row has a value, or a constraint forbids the new
/// value.
fn flip(connection: &Connection, table: &'static Table, column: &str, random: &mut Random) -> Option<()> {
    let (name, _) = columns_of(table);
    let select = format!(
        "SELECT \"{column}\", {} FROM {name} WHERE length(\"{column}\") > 0",
        if table.form == Form::Index { "_id, _member" } else { "_row, NULL" }
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
    let condition = if table.form == Form::Index { "_id = ?2 AND _member = ?3" } else { "_row = ?2 AND ?3 IS NULL" };
    let update = format!("UPDATE {name} SET \"{column}\" = {operand} WHERE {condition}");
    connection.execute(&update, (value, first, second)).ok().map(drop)
}

/// Returns the base files with one bit flipped in a column.
fn flipped_files(
    scratch: &Path,
    base: &Files,
    table: &'static Table,
    column: &str,
    random: &mut Random,
) -> Option<Files> {
    let path = scratch.join(NAME);
    std::fs::write(&path, &base[NAME]).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA journal_mode = DELETE; DROP TRIGGER audit_changed").unwrap();
    flip(&connection, table, column, random)?;
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
    let all = ALL.iter().flat_map(|table| columns(table).into_iter().map(move |(column, name)| (*table, column, name)));
    let chosen = spread(&all.collect::<Vec<_>>(), case_count("SAKSHI_RECORD_FLIPS", 60, 10_000), &mut random);
    let cases = chosen.into_iter().filter_map(|(table, column, description)| {
        let files = flipped_files(scratch.path(), &base, table, &column, &mut random)?;
        Some(Case { files, is_marked: true, moment: 0, description })
    });
    judge_all(cases, |directory, case| count_effect(recording, &reference, last_answered, directory, &case, &effects));
    let effects: Effects = effects.into_inner().unwrap();
    eprintln!("{effects}");
    effects.assert_allowed();
}
