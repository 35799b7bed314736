//! Migration of a file to another schema, inside the transaction that opens it.

use rusqlite::Connection;

use super::statements::{columns_of, is_large, large_name, schema};
use super::{BEFORE_EVERY_END, apply, read, scan};
use crate::embedded::database::statements::Database;
use crate::engine::{Batch, Form, ScanFrom, Table};
use crate::error::StoreError;
use crate::schema::Rewrite;
use crate::vault::Vault;

/// Number of records read at once.
const RECORDS_PER_STEP: usize = 1_000;

/// Creates the tables of these kinds, and their columns, that the file lacks. An index that has become numbered gets
/// its table anew, and so do records whose large fields are stored apart now.
pub(crate) fn add_missing(connection: &Connection, tables: &[&'static Table]) -> rusqlite::Result<()> {
    for table in tables {
        let parts = columns_of(table);
        let [(name, _), ..] = &parts[..] else { continue };
        if table.numbered {
            number_index(connection, table, name)?;
        }
        if !table.large.is_empty() {
            store_large_apart(connection, table, name)?;
        }
        connection.execute_batch(&schema(table))?;
        if table.form == Form::Index {
            continue;
        }
        for (name, columns) in &parts {
            let known = stored_columns(connection, name)?;
            for (column, definition) in columns.iter().filter(|(column, _)| !known.iter().any(|known| known == column))
            {
                connection.execute_batch(&format!("ALTER TABLE {name} ADD COLUMN \"{column}\" {definition}"))?;
            }
        }
    }
    Ok(())
}

/// Returns the names of a table's columns.
fn stored_columns(connection: &Connection, name: &str) -> rusqlite::Result<Vec<String>> {
    connection.prepare("SELECT name FROM pragma_table_info(?1)")?.query_map([name], |row| row.get(0))?.collect()
}

/// Moves the large fields of records to a table of their own, if the file has them with the others.
fn store_large_apart(connection: &Connection, table: &'static Table, name: &str) -> rusqlite::Result<()> {
    let quoted =
        |columns: Vec<String>| columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ");
    let (large, small): (Vec<String>, Vec<String>) =
        stored_columns(connection, name)?.into_iter().partition(|column| is_large(table, column));
    if large.is_empty() {
        return Ok(());
    }
    let (large_name, large, small) = (large_name(table), quoted(large), quoted(small));
    connection.execute_batch(&format!(
        "DROP INDEX IF EXISTS {name}_ends; ALTER TABLE {name} RENAME TO {name}_before; {}; \
         INSERT INTO {name} ({small}) SELECT {small} FROM {name}_before; \
         INSERT INTO {large_name} (_row, {large}) SELECT _row, {large} FROM {name}_before; \
         DROP TABLE {name}_before",
        schema(table),
    ))
}

/// Moves an index to a table by score, if the file has it by member and by score.
fn number_index(connection: &Connection, table: &'static Table, name: &str) -> rusqlite::Result<()> {
    let mut select = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1")?;
    if !select.exists([format!("{name}_scores")])? {
        return Ok(());
    }
    connection.execute_batch(&format!(
        "DROP INDEX {name}_scores; ALTER TABLE {name} RENAME TO {name}_before; {}; \
         INSERT INTO {name} (_id, _score, _member) SELECT _id, _score, _member FROM {name}_before; \
         DROP TABLE {name}_before",
        schema(table),
    ))
}

/// Applies a change to every record of a kind that needs it. Returns the number of changed records.
///
/// # Errors
/// Any error of reading or changing a record.
pub(crate) fn rewrite_records(db: &Database, vault: &Vault, rewrite: &Rewrite) -> Result<u64, StoreError> {
    let (mut next, mut changed) = (Some(ScanFrom::default()), 0);
    while let Some(from) = next {
        let scanned = scan(db, rewrite.table, &from, RECORDS_PER_STEP, BEFORE_EVERY_END)?;
        next = scanned.next;
        for key in scanned.keys {
            let Some(record) = read::record(db, &key, BEFORE_EVERY_END)? else { continue };
            let ops = (rewrite.change)(vault, &key, &record)?;
            if !ops.is_empty() {
                changed += 1;
                apply::apply(db, &Batch::new(vec![], ops), BEFORE_EVERY_END)?;
            }
        }
    }
    Ok(changed)
}
