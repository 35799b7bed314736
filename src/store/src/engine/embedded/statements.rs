//! The tables of kinds, and the SQL statements on them.
//!
//! Columns that are not fields begin with an underscore. A statement on records has the key as its first parameter and
//! the time as its second, and ignores expired records. No statement returns what it wrote (`RETURNING`): SQLite makes
//! a temporary table for that, which takes longer than a second statement.
//!
//! The large fields of a kind have a table of their own, with the row number of their record, so that a change of other
//! fields does not write them again. They are removed with the record.
//!
//! An index is a table by member, with an index by score. A numbered one is a table by score alone: members that are
//! added and removed in the order of time are then on the same pages.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use crate::engine::{Column, ColumnKind, Form, Life, Table};

/// An SQL statement on the table of a kind. A variant named like an operation of a batch applies that operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Statement {
    /// Selects the version and all fields of a record.
    Read,
    /// Selects the version and these fields of a record.
    Fields(Vec<&'static str>),
    /// Selects 1 if the record exists.
    Exists,
    /// Selects the end of a record.
    End,
    /// Removes an expired record.
    Purge,
    /// Writes a record without its large fields. The third parameter is the end, if records of the kind can have one.
    Put,
    /// Sets fields of a record, and its end, if the conditions hold. The parameters of the conditions come last.
    Set(Vec<&'static str>, EndChange, Vec<Condition>),
    /// Sets large fields of a record that exists.
    SetLarge(Vec<&'static str>),
    /// Adds to a field, if the conditions hold.
    Add(&'static str, Vec<Condition>),
    /// Draws the next number of a sequence.
    DrawNumber(&'static str),
    ExpireAt,
    ExpireLater,
    ClearExpiry,
    /// Removes a record, a list or an index.
    Remove,
    Append,
    Rewrite,
    /// Selects entries from a number on.
    Entries,
    /// Selects the number of entries of a list.
    Length,
    Index,
    Unindex,
    Sweep,
    /// Selects members within a range of scores.
    Members,
    /// Selects the member with the highest score.
    Last,
    /// Selects the number of members up to a score.
    Count,
    /// Selects the number of members of an index, counted up to a limit.
    Fewer,
    /// Selects 1 if an index has a member with a score.
    Scored,
    /// Selects keys in the order of their rows.
    Scan,
    /// Selects the keys of expired records.
    Ended,
    /// Removes some entries of a list or members of an index.
    Shorten,
}

/// A condition on the changed record. All except `Below` and `Before` have a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Condition {
    /// The first field is less than the second.
    Below(&'static str, &'static str),
    /// The time is before the time in the field.
    Before(&'static str),
    AtLeast(&'static str),
    AtMost(&'static str),
    /// The field equals the parameter, which may be NULL.
    Is(&'static str),
    /// The version equals the parameter.
    Version,
}

/// The change of a record's end while its fields are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EndChange {
    /// The end is unchanged.
    Unchanged,
    /// The end is a parameter, before the parameters of the conditions.
    Parameter,
    /// The end is the value of a field that is not set.
    Field(&'static str),
    /// The end is cleared.
    Cleared,
}

thread_local! {
    /// The SQL of each statement of a kind, cached because building it takes as long as executing it.
    static TEXTS: RefCell<HashMap<(&'static str, Statement), Rc<str>>> = RefCell::default();
}

/// Returns the SQL of a statement on a kind.
pub(crate) fn sql_for(table: &'static Table, statement: Statement) -> Rc<str> {
    TEXTS.with_borrow_mut(|texts| {
        let key = (table.name, statement);
        if let Some(sql) = texts.get(&key) {
            return Rc::clone(sql);
        }
        let sql: Rc<str> = match table.form {
            Form::Record => record_sql(table, &key.1),
            Form::List => list_sql(table, &key.1),
            Form::Index => index_sql(table, &key.1),
        }
        .into();
        texts.insert(key, Rc::clone(&sql));
        sql
    })
}

/// Returns the number of SQL texts that this thread has built.
#[cfg(test)]
pub(crate) fn text_count() -> usize {
    TEXTS.with_borrow(HashMap::len)
}

/// Returns true if records of the kind can have an end.
pub(crate) const fn can_end(table: &Table) -> bool {
    matches!(table.life, Life::Ends(_))
}

/// Returns the name of the table of a kind.
fn table_name(table: &Table) -> String {
    let form = match table.form {
        Form::Record => "record",
        Form::List => "list",
        Form::Index => "index",
    };
    format!("{}_{form}", table.name)
}

/// Returns the name of the table of a kind's large fields.
pub(super) fn large_name(table: &Table) -> String {
    format!("{}_large", table.name)
}

/// Returns true if a field is stored in the table of the large fields.
pub(super) fn is_large(table: &Table, field: &str) -> bool {
    table.large.contains(&field)
}

/// Returns the fields of a kind that are large, or those that are not.
fn fields(table: &Table, large: bool) -> impl Iterator<Item = &'static Column> {
    table.fields.iter().filter(move |column| is_large(table, column.name) == large)
}

/// Returns the names of a kind's fields that are large, or of those that are not.
pub(super) fn names(table: &Table, large: bool) -> impl Iterator<Item = &'static str> {
    fields(table, large).map(|column| column.name)
}

/// Concatenates the SQL that `write` returns for each field of a kind that is large, or each that is not.
fn map_fields(table: &Table, large: bool, write: impl Fn(usize, &Column) -> String) -> String {
    fields(table, large).enumerate().map(|(index, column)| write(index, column)).collect()
}

/// Returns the names of fields, each after a comma.
fn column_list<'a>(fields: impl IntoIterator<Item = &'a str>) -> String {
    fields.into_iter().map(|field| format!(", \"{field}\"")).collect()
}

const fn sql_type(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Integer => "INTEGER",
        ColumnKind::Text => "TEXT",
        ColumnKind::Bytes | ColumnKind::Sealed(_) => "BLOB",
    }
}

/// Returns the tables of a kind, each with the columns of its fields and their types.
pub(crate) fn columns_of(table: &Table) -> Vec<(String, Vec<(&'static str, &'static str)>)> {
    let columns = |large| fields(table, large).map(|column| (column.name, sql_type(column.kind))).collect();
    let large = (!table.large.is_empty()).then(|| (large_name(table), columns(true)));
    [(table_name(table), columns(false))].into_iter().chain(large).collect()
}

/// Returns the statements that create the tables of a kind and their indexes.
pub(crate) fn schema(table: &Table) -> String {
    let name = table_name(table);
    let fields =
        |large| map_fields(table, large, |_, Column { name, kind, .. }| format!(", \"{name}\" {}", sql_type(*kind)));
    let small = fields(false);
    match table.form {
        Form::Record => {
            let end = if can_end(table) { ", _end INTEGER" } else { "" };
            let mut sql = format!(
                "CREATE TABLE IF NOT EXISTS {name} \
                 (_row INTEGER PRIMARY KEY, _id BLOB NOT NULL UNIQUE, _version INTEGER NOT NULL{end}{small})"
            );
            // Writing to a string does not fail.
            if can_end(table) {
                let _ = write!(sql, "; CREATE INDEX IF NOT EXISTS {name}_ends ON {name} (_end) WHERE _end IS NOT NULL");
            }
            if !table.large.is_empty() {
                let (large_name, large) = (large_name(table), fields(true));
                let _ = write!(
                    sql,
                    "; CREATE TABLE IF NOT EXISTS {large_name} (_row INTEGER PRIMARY KEY{large}); \
                     CREATE TRIGGER IF NOT EXISTS {large_name}_removed AFTER DELETE ON {name} \
                     BEGIN DELETE FROM {large_name} WHERE _row = old._row; END"
                );
            }
            sql
        }
        Form::List => format!(
            "CREATE TABLE IF NOT EXISTS {name} \
             (_row INTEGER PRIMARY KEY, _id BLOB NOT NULL, _entry INTEGER NOT NULL{small}, UNIQUE (_id, _entry)); \
             CREATE INDEX IF NOT EXISTS {name}_first ON {name} (_entry) WHERE _entry = 1"
        ),
        Form::Index if table.numbered => format!(
            "CREATE TABLE IF NOT EXISTS {name} \
             (_id BLOB NOT NULL, _score INTEGER NOT NULL, _member BLOB NOT NULL, PRIMARY KEY (_id, _score)) WITHOUT \
             ROWID"
        ),
        Form::Index => format!(
            "CREATE TABLE IF NOT EXISTS {name} \
             (_id BLOB NOT NULL, _score INTEGER NOT NULL, _member BLOB NOT NULL, PRIMARY KEY (_id, _member)) WITHOUT \
             ROWID; CREATE INDEX IF NOT EXISTS {name}_scores ON {name} (_id, _score)"
        ),
    }
}

/// Returns the SQL of a statement on a kind of records.
fn record_sql(table: &Table, statement: &Statement) -> String {
    let name = table_name(table);
    // Every statement uses its second parameter, so that all statements start with the same two parameters.
    let is_current =
        if can_end(table) { "_id = ?1 AND (_end IS NULL OR _end > ?2)" } else { "_id = ?1 AND ?2 IS NOT NULL" };
    match statement {
        Statement::Read => {
            select_sql(table, &table.fields.iter().map(|column| column.name).collect::<Vec<_>>(), is_current)
        }
        Statement::Fields(fields) => select_sql(table, fields, is_current),
        Statement::Exists => format!("SELECT 1 FROM {name} WHERE {is_current}"),
        Statement::End => format!("SELECT _end FROM {name} WHERE {is_current} AND _end IS NOT NULL"),
        Statement::Purge => format!("DELETE FROM {name} WHERE _id = ?1 AND _end <= ?2"),
        Statement::Put => {
            let (version, [end_column, end_value, end_assignment]) = if can_end(table) {
                ("CASE WHEN _end <= ?2 THEN 1 ELSE _version + 1 END", [", _end", ", ?3", ", _end = ?3"])
            } else {
                ("_version + (?2 IS NOT NULL)", [""; 3])
            };
            let first_parameter = if can_end(table) { 4 } else { 3 };
            let values = map_fields(table, false, |index, _| format!(", ?{}", index + first_parameter));
            let assignments =
                map_fields(table, false, |_, Column { name, .. }| format!(", \"{name}\" = excluded.\"{name}\""));
            format!(
                "INSERT INTO {name} (_id, _version{end_column}{}) VALUES (?1, 1{end_value}{values}) \
                 ON CONFLICT (_id) DO UPDATE SET _version = {version}{end_assignment}{assignments}",
                column_list(names(table, false)),
            )
        }
        Statement::Set(fields, end_change, conditions) => {
            let assignments = assignments_sql(fields);
            let holds = conditions_sql(conditions, fields.len() + 3 + usize::from(*end_change == EndChange::Parameter));
            let end = match end_change {
                EndChange::Unchanged => String::new(),
                EndChange::Parameter => format!(", _end = ?{}", fields.len() + 3),
                EndChange::Field(field) => format!(", _end = coalesce(\"{field}\", 0)"),
                EndChange::Cleared => ", _end = NULL".into(),
            };
            format!("UPDATE {name} SET _version = _version + 1{assignments}{end} WHERE {is_current}{holds}")
        }
        Statement::SetLarge(fields) => {
            let values: String = (3..fields.len() + 3).map(|parameter| format!(", ?{parameter}")).collect();
            format!(
                "INSERT INTO {} (_row{}) SELECT _row{values} FROM {name} WHERE _id = ?1 AND ?2 IS NOT NULL \
                 ON CONFLICT (_row) DO UPDATE SET {}",
                large_name(table),
                column_list(fields.iter().copied()),
                assignments_sql(fields).trim_start_matches(", "),
            )
        }
        Statement::Add(field, conditions) => {
            let holds = conditions_sql(conditions, 4);
            format!("UPDATE {name} SET \"{field}\" = coalesce(\"{field}\", 0) + ?3 WHERE {is_current}{holds}")
        }
        Statement::DrawNumber(field) => format!(
            "INSERT INTO {name} (_id, _version, \"{field}\") VALUES (?1, 1, ?2) \
             ON CONFLICT (_id) DO UPDATE SET \"{field}\" = max(coalesce(\"{field}\", 0) + 1, ?2)"
        ),
        Statement::ExpireAt => format!("UPDATE {name} SET _end = ?3 WHERE {is_current}"),
        Statement::ExpireLater => {
            format!("UPDATE {name} SET _end = max(_end, ?3) WHERE {is_current} AND _end IS NOT NULL")
        }
        Statement::ClearExpiry => format!("UPDATE {name} SET _end = NULL WHERE {is_current}"),
        Statement::Scan => format!("SELECT _id, _row FROM {name} WHERE _row > ?1 ORDER BY _row LIMIT ?2"),
        Statement::Ended => format!("SELECT _id FROM {name} WHERE _end <= ?1 ORDER BY _end LIMIT ?2"),
        _ => format!("DELETE FROM {name} WHERE _id = ?1"),
    }
}

/// Returns the SQL that selects the version and fields of a record.
fn select_sql(table: &Table, fields: &[&str], is_current: &str) -> String {
    let (name, columns) = (table_name(table), column_list(fields.iter().copied()));
    let join = if fields.iter().any(|field| is_large(table, field)) {
        format!(" LEFT JOIN {} USING (_row)", large_name(table))
    } else {
        String::new()
    };
    format!("SELECT _version{columns} FROM {name}{join} WHERE {is_current}")
}

/// Returns the assignments of fields, each after a comma, with parameters from the third on.
fn assignments_sql(fields: &[&str]) -> String {
    fields.iter().enumerate().map(|(index, field)| format!(", \"{field}\" = ?{}", index + 3)).collect()
}

/// Returns the conditions as SQL, with parameters numbered from `parameter`.
fn conditions_sql(conditions: &[Condition], mut parameter: usize) -> String {
    let mut text = String::new();
    for condition in conditions {
        // Writing to a string does not fail.
        let _ = match condition {
            Condition::Below(field, limit) => write!(text, " AND \"{field}\" < \"{limit}\""),
            Condition::Before(field) => write!(text, " AND ?2 < \"{field}\""),
            Condition::AtLeast(field) => write!(text, " AND \"{field}\" >= ?{parameter}"),
            Condition::AtMost(field) => write!(text, " AND \"{field}\" <= ?{parameter}"),
            Condition::Is(field) => write!(text, " AND \"{field}\" IS ?{parameter}"),
            Condition::Version => write!(text, " AND _version = ?{parameter}"),
        };
        parameter += usize::from(!matches!(condition, Condition::Below(..) | Condition::Before(_)));
    }
    text
}

/// Returns the SQL of a statement on a kind of lists.
fn list_sql(table: &Table, statement: &Statement) -> String {
    let (name, columns) = (table_name(table), column_list(names(table, false)));
    match statement {
        Statement::Append => {
            let values = map_fields(table, false, |index, _| format!(", ?{}", index + 3));
            format!("INSERT INTO {name} (_id, _entry{columns}) VALUES (?1, ?2{values})")
        }
        Statement::Rewrite => {
            let assignments =
                map_fields(table, false, |index, Column { name, .. }| format!(", \"{name}\" = ?{}", index + 3));
            format!("UPDATE {name} SET _entry = ?2{assignments} WHERE _id = ?1 AND _entry = ?2")
        }
        Statement::Entries => {
            format!("SELECT _entry{columns} FROM {name} WHERE _id = ?1 AND _entry >= ?2 ORDER BY _entry LIMIT ?3")
        }
        Statement::Length => format!("SELECT coalesce(max(_entry), 0) FROM {name} WHERE _id = ?1"),
        Statement::Scan => {
            format!("SELECT _id, _row FROM {name} WHERE _entry = 1 AND _row > ?1 ORDER BY _row LIMIT ?2")
        }
        // The first entry is removed last: a list without it is not found.
        Statement::Shorten => {
            format!(
                "DELETE FROM {name} WHERE _row IN (SELECT _row FROM {name} WHERE _id = ?1 ORDER BY _entry DESC LIMIT \
                    ?2)"
            )
        }
        _ => format!("DELETE FROM {name} WHERE _id = ?1"),
    }
}

/// Returns the SQL of a statement on a kind of indexes.
fn index_sql(table: &Table, statement: &Statement) -> String {
    let name = table_name(table);
    match statement {
        Statement::Index => {
            let unique = unique_column(table);
            format!(
                "INSERT INTO {name} (_id, _member, _score) VALUES (?1, ?2, ?3) ON CONFLICT (_id, {unique}) DO UPDATE \
                    SET _score = ?3"
            )
        }
        Statement::Unindex => format!("DELETE FROM {name} WHERE _id = ?1 AND _member = ?2"),
        Statement::Sweep => format!("DELETE FROM {name} WHERE _id = ?1 AND _score > ?2 AND _score <= ?3"),
        Statement::Members => format!(
            "SELECT _member, _score FROM {name} WHERE _id = ?1 AND _score > ?2 AND _score <= ?3 \
             ORDER BY _score, _member LIMIT ?4 OFFSET ?5"
        ),
        Statement::Last => {
            format!("SELECT _member, _score FROM {name} WHERE _id = ?1 ORDER BY _score DESC, _member DESC LIMIT 1")
        }
        Statement::Count => format!("SELECT count(*) FROM {name} WHERE _id = ?1 AND _score <= ?2"),
        Statement::Fewer => format!("SELECT count(*) FROM (SELECT 1 FROM {name} WHERE _id = ?1 LIMIT ?2)"),
        Statement::Scored => format!("SELECT 1 FROM {name} WHERE _id = ?1 AND _score = ?2 LIMIT 1"),
        Statement::Scan => format!("SELECT DISTINCT _id FROM {name}"),
        Statement::Shorten => {
            let unique = unique_column(table);
            format!(
                "DELETE FROM {name} WHERE (_id, {unique}) IN (SELECT _id, {unique} FROM {name} WHERE _id = ?1 LIMIT ?2)"
            )
        }
        _ => format!("DELETE FROM {name} WHERE _id = ?1"),
    }
}

/// Returns the column that identifies a member of an index.
const fn unique_column(table: &Table) -> &'static str {
    if table.numbered { "_score" } else { "_member" }
}
