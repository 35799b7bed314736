//! Damaged files for the fuzzer: any value in any column, regardless of the schema.

use std::sync::{MutexGuard, PoisonError};

use rusqlite::OptionalExtension as _;
use rusqlite::types::Value;

use super::database::statements::Database;
use super::store::EmbeddedStore;

/// Selects the names of all tables.
const TABLES: &str =
    "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
/// Selects the statements that create the indexes.
const INDEXES: &str = "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";

/// A table and its columns.
#[derive(Clone, Debug)]
pub struct LooseTable {
    /// Name of the table.
    pub name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
}

impl EmbeddedStore {
    /// Replaces every table of a store in memory by a copy without types and constraints.
    ///
    /// # Errors
    /// Any error of SQLite; `InvalidQuery` for a store in a file.
    pub fn loosen(&self) -> rusqlite::Result<Vec<LooseTable>> {
        let db = self.database()?;
        let names: Vec<String> = db.all(TABLES, [], |row| row.get(0))?;
        let indexes: Vec<String> = db.all(INDEXES, [], |row| row.get(0))?;
        for name in &names {
            db.connection.execute_batch(&format!("CREATE TEMP TABLE {name} AS SELECT * FROM main.{name}"))?;
        }
        for index in indexes {
            let (_, rest) = index.split_once(" INDEX ").unwrap_or_default();
            db.connection.execute_batch(&format!("CREATE INDEX temp.{rest}"))?;
        }
        let columns = |name: &String| {
            let statement = db.connection.prepare(&format!("SELECT * FROM temp.{name}"))?;
            let columns = statement.column_names().map(str::to_owned).collect();
            Ok(LooseTable { name: name.clone(), columns })
        };
        names.iter().map(columns).collect()
    }

    /// Overwrites a column of one row of a loose table. Returns the previous value; `None` if the row does not exist.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn overwrite(&self, table: &str, column: &str, row: i64, value: &Value) -> rusqlite::Result<Option<Value>> {
        let db = self.database()?;
        let result =
            db.connection
                .query_row(&format!("SELECT {column} FROM temp.{table} WHERE rowid = ?1"), [row], |row| row.get(0));
        let before = result.optional()?;
        if before.is_some() {
            db.connection.execute(
                &format!("UPDATE temp.{table} SET {column} = ?2 WHERE rowid = ?1"),
                rusqlite::params![row, value],
            )?;
        }
        Ok(before)
    }

    /// Returns the database of a store in memory.
    fn database(&self) -> rusqlite::Result<MutexGuard<'_, Database>> {
        let database = self.sqlite().in_memory_database().ok_or(rusqlite::Error::InvalidQuery)?;
        Ok(database.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
