//! Copying committed pages from the write-ahead log into the database file, without making the
//! writer wait for it.
//!
//! A thread with a connection of its own copies most of the log while the writer goes on. The writer
//! copies the few pages that it added meanwhile itself, and the log restarts. Only a log that has
//! grown beyond a hard limit makes the writer wait for a whole checkpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use std::path::Path;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::embedded::database::connection::{Role, connect};
use crate::embedded::database::statements::Database;
use crate::error::StoreError;

/// Log pages (of 4 KiB) after which the thread is asked to copy. A checkpoint costs a few syncs, for
/// which commits wait: a larger number delays fewer answers, and makes a start after a kill longer.
const PAGES_SOFT: i64 = 4_096;
/// Log pages at which the writer copies all of it before it goes on.
const PAGES_HARD: i64 = 65_536;
/// Pages that the writer may copy itself.
const PAGES_REMAINDER: i64 = 256;
/// Maximum number of passes of the thread to leave no more than that.
const PASSES: usize = 6;

#[derive(Debug, Default)]
struct Progress {
    nearly_done: AtomicBool,
    /// Pages in the log after the last commit, as SQLite counts them.
    log_pages: AtomicI64,
}

/// State of the writer's side.
pub(crate) struct WriterSide {
    nudge: SyncSender<()>,
    progress: Arc<Progress>,
    /// Pages of the log when the thread was last asked; 0 since the log restarted.
    asked_at: i64,
}

/// State of the thread's side.
pub(crate) struct ThreadSide {
    nudges: Receiver<()>,
    progress: Arc<Progress>,
    db: Database,
}

/// Makes the two sides, for the writer's connection and one that only copies.
///
/// # Errors
/// The error of SQLite.
pub(crate) fn pair(writer: &mut Connection, db: Database) -> rusqlite::Result<(WriterSide, ThreadSide)> {
    let (nudge, nudges) = sync_channel(1);
    let progress = Arc::new(Progress::default());
    let seen = Arc::clone(&progress);
    let count = move |_: &mut Wal, pages: i32| {
        seen.log_pages.store(i64::from(pages), Ordering::Release);
        Ok(())
    };
    writer.wal_hook(Some(count))?;
    let writer_side = WriterSide { nudge, progress: Arc::clone(&progress), asked_at: 0 };
    Ok((writer_side, ThreadSide { nudges, progress, db }))
}

/// Returns the number of pages in the log, and of those copied into the database file.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<(i64, i64)> {
    connection
        .prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?
        .query_row([], |row| Ok((row.get(1)?, row.get(2)?)))
}

/// Runs a checkpoint. A failed one loses nothing and is tried again later, unless the file is damaged.
fn try_checkpoint(db: &Database, mode: &str) -> Option<(i64, i64)> {
    match checkpoint(&db.connection, mode) {
        Ok(pages) => Some(pages),
        Err(error) => {
            let error = db.health.judge(error);
            tracing::warn!(%error, "a checkpoint failed; the log keeps growing until one succeeds");
            None
        }
    }
}

/// Copies the whole log and empties it, with a connection of its own: it waits for the writer and for readers.
///
/// # Errors
/// [`StoreError::Overloaded`] when they hold on to it for too long, as a backup may.
pub(crate) fn empty(path: &Path) -> Result<(), StoreError> {
    let connection = connect(path, Role::Checkpointer)?;
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if is_busy { Err(StoreError::Overloaded) } else { Ok(()) }
}

/// Copies a log left by an earlier process into the file. On a full disk it stays where it is: it can be read there.
///
/// # Errors
/// Any error except a full disk.
pub(crate) fn at_start(connection: &Connection) -> Result<(), StoreError> {
    unless_full(checkpoint(connection, "TRUNCATE").map(drop))
}

fn unless_full(copied: rusqlite::Result<()>) -> Result<(), StoreError> {
    match copied.map_err(StoreError::from) {
        Err(error @ StoreError::Full) => {
            tracing::warn!(%error, "there is no room to copy the log of an earlier process; nothing can be written \
                until there is");
            Ok(())
        }
        copied => copied,
    }
}

impl WriterSide {
    /// Called after each group of jobs: requests a checkpoint when the log has grown, and finishes one that is nearly
    /// done.
    pub(crate) fn after_group(&mut self, db: &Database) {
        let pages = self.progress.log_pages.load(Ordering::Acquire);
        if self.progress.nearly_done.swap(false, Ordering::AcqRel) {
            let mode = if pages > PAGES_HARD { "RESTART" } else { "PASSIVE" };
            try_checkpoint(db, mode);
        }
        if pages < self.asked_at {
            self.asked_at = 0;
        }
        if pages - self.asked_at >= PAGES_SOFT && self.nudge.try_send(()).is_ok() {
            self.asked_at = pages;
        }
    }
}

impl ThreadSide {
    /// Copies whenever asked, until the writer has ended.
    pub(crate) fn run(self) {
        while self.nudges.recv().is_ok() {
            for _ in 0..PASSES {
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
    fn a_log_that_finds_no_room_keeps_no_store_from_being_read() {
        let copied = |code| unless_full(Err(Error::SqliteFailure(ffi::Error::new(code), None)));
        assert_eq!(copied(ffi::SQLITE_FULL), Ok(()));
        assert!(matches!(copied(ffi::SQLITE_CORRUPT), Err(StoreError::Corrupt(_))));
        assert!(matches!(copied(ffi::SQLITE_IOERR_WRITE), Err(StoreError::Unavailable(_))));
    }
}
