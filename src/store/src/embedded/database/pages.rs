//! A check of every page of the file after an unclean shutdown.
//!
//! A disk that lost synced writes leaves pages of different times. SQLite reads such a file without an error until it
//! reaches an impossible page. So the whole file is compared with its indexes before the store is opened.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use crate::error::StoreError;

/// Time limit of the check, enough for a few gigabytes on a fast disk. A large file must not prevent a start.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Steps of SQLite's virtual machine between two checks of the clock.
const STEPS_PER_CLOCK_CHECK: i32 = 100_000;

/// Checks all pages, within the time limit.
///
/// # Errors
/// [`StoreError::Corrupt`] with the first fault.
pub(crate) fn check(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    check_within(connection, path, TIME_MAX)
}

/// Checks all pages as [`check`] does, within another time limit.
fn check_within(connection: &mut Connection, path: &Path, limit: Duration) -> Result<(), StoreError> {
    let started = Instant::now();
    connection.progress_handler(STEPS_PER_CLOCK_CHECK, Some(move || started.elapsed() >= limit))?;
    let fault = find_fault(connection);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match fault {
        Ok(None) => Ok(()),
        Ok(Some(fault)) => Err(StoreError::Corrupt(format!("{}: {fault}", path.display()))),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            tracing::warn!(
                seconds = limit.as_secs(),
                "the store is too large to be checked completely at this start after an unclean shutdown"
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns SQLite's description of the first fault in a file.
pub(crate) fn find_fault(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let verdict: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok((verdict != "ok").then_some(verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a database of 100,000 rows.
    fn large_database() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let rows = "CREATE TABLE t (a UNIQUE); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i \
             < 100000) INSERT INTO t SELECT i FROM n";
        connection.execute_batch(rows).unwrap();
        connection
    }

    #[test]
    fn a_file_too_large_for_the_time_limit_is_opened_nevertheless() {
        let mut connection = large_database();
        assert_eq!(check_within(&mut connection, Path::new("file"), Duration::ZERO), Ok(()));
        assert_eq!(find_fault(&connection), Ok(None), "later statements have no time limit");
    }

    #[test]
    fn a_file_whose_index_lacks_a_row_is_refused() {
        let mut connection = large_database();
        let forged = "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE type = 'index'; \
             UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a)' WHERE name = 't'; PRAGMA writable_schema = RESET;";
        connection.execute_batch(forged).unwrap();
        let Err(StoreError::Corrupt(fault)) = check(&mut connection, Path::new("file")) else {
            panic!("the unused pages were not found")
        };
        assert!(fault.starts_with("file: "), "{fault}");
    }
}
