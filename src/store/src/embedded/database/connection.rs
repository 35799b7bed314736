//! Connections to the database file, with their settings for durability and latency.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// Page cache of the writer, in KiB. Commits take longer with a larger one: while SQLite rebalances a table, some pages
/// have a number far above those of the file, and it then searches its whole cache for such pages at the commit.
const WRITER_CACHE_KIB: i64 = 4 * 1_024;
/// Page cache of each reader, in KiB.
const READER_CACHE_KIB: i64 = 8 * 1_024;
/// Prepared statements cached by each connection; more than the store uses.
pub(crate) const STATEMENTS_CACHED: usize = 512;
/// Time for which a connection waits for the lock of another connection. Only checkpoints hold locks for long.
const LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Writes. There is one such connection; `Some` limits the file to a number of pages.
    Writer(Option<u32>),
    /// Copies the log into the database file.
    Checkpointer,
    /// Reads.
    Reader,
}

/// Opens a connection to the file in a role.
///
/// # Errors
/// Any error of SQLite.
pub(crate) fn connect(path: &Path, role: Role) -> rusqlite::Result<Connection> {
    let access =
        if role == Role::Reader { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(LOCK_WAIT)?;
    cache_statements(&connection)?;
    let set = |name: &str, value: i64| connection.pragma_update(None, name, value);
    if matches!(role, Role::Writer(_)) {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    }
    // 2 is FULL: the log is synced before a commit returns.
    set("synchronous", 2)?;
    // Deleted data is overwritten.
    set("secure_delete", 1)?;
    set("cell_size_check", 1)?;
    set("temp_store", 2)?;
    // A thread of its own runs the checkpoints.
    set("wal_autocheckpoint", 0)?;
    match role {
        Role::Writer(max_pages) => {
            set("cache_size", -WRITER_CACHE_KIB)?;
            if let Some(pages) = max_pages {
                set("max_page_count", i64::from(pages))?;
            }
        }
        Role::Reader => set("cache_size", -READER_CACHE_KIB)?,
        Role::Checkpointer => {}
    }
    Ok(connection)
}

/// Makes a connection compile each statement only once.
pub(crate) fn cache_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Without this setting SQLite may recompile a statement for every bound value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}
