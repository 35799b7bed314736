//! Checkpoints: copying committed pages from the write-ahead log into the database file without delaying the writer.
//!
//! A thread with its own connection copies most of the log while the writer continues. The writer then copies the few
//! pages that it has added since, and the log restarts. Only a log beyond a hard limit makes the writer wait for a
//! whole checkpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use std::path::Path;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::embedded::database::connection::{Role, connect};
use crate::embedded::database::statements::Database;
use crate::error::StoreError;

/// Log pages (of 4 KiB) after which a checkpoint is requested. Commits wait for the syncs of a checkpoint: a larger
/// number delays fewer commits, but lengthens a start after a kill.
const PAGES_SOFT: i64 = 4_096;
/// Log pages at which the writer copies the whole log before it continues.
const PAGES_HARD: i64 = 65_536;
/// Maximum number of pages that the thread leaves to the writer.
const PAGES_REMAINDER: i64 = 256;
/// Maximum number of passes in which the thread tries to reach [`PAGES_REMAINDER`].
const PASSES_MAX: usize = 6;

/// The progress of checkpoints, which both sides share.
#[derive(Debug, Default)]
struct Progress {
    /// True when the thread has copied all but a few pages.
    nearly_done: AtomicBool,
    /// Pages in the log after the last commit, as SQLite counts them.
    log_pages: AtomicI64,
}

/// The writer's side of the checkpoints.
pub(crate) struct WriterSide {
    request: SyncSender<()>,
    progress: Arc<Progress>,
    /// Pages of the log at the last request; 0 after a restart of the log.
    requested_at: i64,
}

/// The thread's side of the checkpoints.
pub(crate) struct ThreadSide {
    requests: Receiver<()>,
    progress: Arc<Progress>,
    db: Database,
}

/// Returns the writer's side and the thread's side, for the writer's connection and the checkpoint connection.
///
/// # Errors
/// Any error of SQLite.
pub(crate) fn create_sides(writer: &mut Connection, db: Database) -> rusqlite::Result<(WriterSide, ThreadSide)> {
    let (request, requests) = sync_channel(1);
    let progress = Arc::new(Progress::default());
    let shared_progress = Arc::clone(&progress);
    let count_pages = move |_: &mut Wal, pages: i32| {
        shared_progress.log_pages.store(i64::from(pages), Ordering::Release);
        Ok(())
    };
    writer.wal_hook(Some(count_pages))?;
    let writer_side = WriterSide { request, progress: Arc::clone(&progress), requested_at: 0 };
    Ok((writer_side, ThreadSide { requests, progress, db }))
}

/// Runs a checkpoint. Returns the number of pages in the log, and the number of pages copied into the database file.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<(i64, i64)> {
    connection
        .prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?
        .query_row([], |row| Ok((row.get(1)?, row.get(2)?)))
}

/// Runs a checkpoint, and logs a failure. A failed checkpoint loses nothing and is retried later, unless the file is
/// damaged.
fn try_checkpoint(db: &Database, mode: &str) -> Option<(i64, i64)> {
    match checkpoint(&db.connection, mode) {
        Ok(pages) => Some(pages),
        Err(error) => {
            let error = db.health.translate(error);
            tracing::warn!(%error, "a checkpoint failed; the log keeps growing until one succeeds");
            None
        }
    }
}

/// Copies the whole log and empties it, over its own connection. Waits for the writer and the readers.
///
/// # Errors
/// [`StoreError::Overloaded`] if a reader, such as a backup, uses the log for too long.
pub(crate) fn empty_log(path: &Path) -> Result<(), StoreError> {
    let connection = connect(path, Role::Checkpointer)?;
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if is_busy { Err(StoreError::Overloaded) } else { Ok(()) }
}

/// Copies the log of an earlier process into the file. On a full disk the log stays, and reads use it.
///
/// # Errors
/// Any error except a full disk.
pub(crate) fn copy_at_start(connection: &Connection) -> Result<(), StoreError> {
    accept_full_disk(checkpoint(connection, "TRUNCATE").map(drop))
}

/// Turns the error of a full disk into a warning.
fn accept_full_disk(result: rusqlite::Result<()>) -> Result<(), StoreError> {
    match result.map_err(StoreError::from) {
        Err(error @ StoreError::Full) => {
            tracing::warn!(%error, "the disk has no room to copy the log of an earlier process; nothing can be \
                written until it has");
            Ok(())
        }
        result => result,
    }
}

impl WriterSide {
    /// Requests a checkpoint if the log has grown, and finishes a nearly complete one. Runs after each group of jobs.
    pub(crate) fn checkpoint_if_due(&mut self, db: &Database) {
        let pages = self.progress.log_pages.load(Ordering::Acquire);
        if self.progress.nearly_done.swap(false, Ordering::AcqRel) {
            let mode = if pages > PAGES_HARD { "RESTART" } else { "PASSIVE" };
            try_checkpoint(db, mode);
        }
        if pages < self.requested_at {
            self.requested_at = 0;
        }
        if pages - self.requested_at >= PAGES_SOFT && self.request.try_send(()).is_ok() {
            self.requested_at = pages;
        }
    }
}

impl ThreadSide {
    /// Copies the log on every request, until the writer has ended.
    pub(crate) fn run(self) {
        while self.requests.recv().is_ok() {
            for _ in 0..PASSES_MAX {
                let Some((log, copied)) = try_checkpoint(&self.db, "PASSIVE") else { break };
                if log - copied <= PAGES_REMAINDER {
                    break;
                }
            }
            self.progress.nearly_done.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Error, ffi};

    use super::*;

    #[test]
    fn a_full_disk_at_the_start_does_not_prevent_reading() {
        let outcome = |code| accept_full_disk(Err(Error::SqliteFailure(ffi::Error::new(code), None)));
        assert_eq!(outcome(ffi::SQLITE_FULL), Ok(()));
        assert!(matches!(outcome(ffi::SQLITE_CORRUPT), Err(StoreError::Corrupt(_))));
        assert!(matches!(outcome(ffi::SQLITE_IOERR_WRITE), Err(StoreError::Unavailable(_))));
    }
}
