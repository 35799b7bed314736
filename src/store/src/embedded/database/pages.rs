//! A check of every page of a file after an unclean shutdown.
//!
//! A disk that lost synced writes leaves pages of different times. SQLite reads such a file normally until it meets an
//! impossible page. So the whole file is compared with its indexes before it is served.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use crate::error::StoreError;

/// Time limit of the check: a few gigabytes from a fast disk. A start must not fail because the file is large.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Steps of SQLite's virtual machine between two checks of the clock.
const STEPS: i32 = 100_000;

/// Checks all pages, within the time limit.
///
/// # Errors
/// [`StoreError::Corrupt`] with the first fault.
pub(crate) fn check(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    check_within(connection, path, TIME_MAX)
}

fn check_within(connection: &mut Connection, path: &Path, time: Duration) -> Result<(), StoreError> {
    let begun = Instant::now();
    connection.progress_handler(STEPS, Some(move || begun.elapsed() >= time))?;
    let checked = find_fault(connection);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match checked {
        Ok(None) => Ok(()),
        Ok(Some(fault)) => Err(StoreError::Corrupt(format!("{}: {fault}", path.display()))),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            tracing::warn!(
                seconds = time.as_secs(),
                "the store is too large to be checked at this start, which follows no end in good order"
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the first fault of a file in SQLite's words.
pub(crate) fn find_fault(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let verdict: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok((verdict != "ok").then_some(verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let rows = "CREATE TABLE t (a UNIQUE); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i \
             < 100000) INSERT INTO t SELECT i FROM n";
        connection.execute_batch(rows).unwrap();
        connection
    }

    #[test]
    fn a_file_that_is_too_large_for_the_time_is_opened_all_the_same() {
        let mut connection = large();
        assert_eq!(check_within(&mut connection, Path::new("file"), Duration::ZERO), Ok(()));
        assert_eq!(find_fault(&connection), Ok(None), "later statements have all the time");
    }

    #[test]
    fn a_file_whose_index_lacks_a_row_is_refused() {
        let mut connection = large();
        let forged = "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE type = 'index'; \
             UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a)' WHERE name = 't'; PRAGMA writable_schema = RESET;";
        connection.execute_batch(forged).unwrap();
        let Err(StoreError::Corrupt(fault)) = check(&mut connection, Path::new("file")) else {
            panic!("it has pages that nothing uses")
        };
        assert!(fault.starts_with("file: "), "{fault}");
    }
}
