//! Moving committed pages from the write-ahead log into the database file, without making the
//! writer wait for it.
//!
//! A thread with a connection of its own copies most of the log while the writer goes on. What
//! the writer added meanwhile is little; the writer copies that itself, and the log starts anew.
//! Only a log that has grown beyond a hard bound makes the writer wait for a whole checkpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;

use super::fault::Health;

/// Log pages after which the thread is asked to copy, by the writer's estimate.
const PAGES_SOFT: usize = 4_000;
/// Log pages (of 4 KiB) at which the writer copies all of it before it goes on.
const PAGES_HARD: i64 = 65_536;
/// Pages that the writer may copy itself.
const PAGES_REMAINDER: i64 = 64;
/// How often the thread tries to get so close.
const PASSES: usize = 6;
/// Pages that a lone transition touches, roughly: table and index leaves.
const PAGES_OF_A_TRANSITION: usize = 6;
const PAGE_BYTES: usize = 4_096;

#[derive(Debug, Default)]
struct Progress {
    nearly_done: AtomicBool,
    log_pages: AtomicI64,
}

/// What the writer holds.
pub(super) struct WriterSide {
    nudge: SyncSender<()>,
    progress: Arc<Progress>,
    pages: usize,
}

/// What the thread holds.
pub(super) struct ThreadSide {
    nudges: Receiver<()>,
    progress: Arc<Progress>,
    connection: Connection,
    health: Arc<Health>,
}

/// The two sides.
pub(super) fn pair(connection: Connection, health: Arc<Health>) -> (WriterSide, ThreadSide) {
    let (nudge, nudges) = sync_channel(1);
    let progress = Arc::new(Progress::default());
    (WriterSide { nudge, progress: Arc::clone(&progress), pages: 0 }, ThreadSide { nudges, progress, connection, health })
}

/// Pages in the log, and how many of them are in the database file.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<(i64, i64)> {
    connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?.query_row([], |row| Ok((row.get(1)?, row.get(2)?)))
}

/// A failed checkpoint loses nothing and is tried again later, unless the file is damaged.
fn try_checkpoint(connection: &Connection, health: &Health, mode: &str) -> Option<(i64, i64)> {
    match checkpoint(connection, mode) {
        Ok(pages) => Some(pages),
        Err(error) => {
            let error = health.judge(&error);
            tracing::warn!(%error, "a checkpoint failed; the log keeps growing until one succeeds");
            None
        }
    }
}

impl WriterSide {
    /// Called between groups: asks for a checkpoint when the log has grown, finishes one that is
    /// nearly done.
    pub(super) fn after_group(&mut self, connection: &Connection, health: &Health, transitions: usize, bytes: usize) {
        self.pages += transitions * PAGES_OF_A_TRANSITION + bytes.div_ceil(PAGE_BYTES);
        if self.progress.nearly_done.swap(false, Ordering::AcqRel) {
            let mode = if self.progress.log_pages.load(Ordering::Acquire) > PAGES_HARD { "RESTART" } else { "PASSIVE" };
            try_checkpoint(connection, health, mode);
        }
        if self.pages >= PAGES_SOFT && self.nudge.try_send(()).is_ok() {
            self.pages = 0;
        }
    }

    /// Lets the thread end.
    pub(super) fn stop(self) {
        drop(self.nudge);
    }
}

/// Leaves no log behind when the store closes.
pub(super) fn last_checkpoint(connection: &Connection) {
    if checkpoint(connection, "TRUNCATE").is_err() {
        tracing::warn!("the last checkpoint failed; the next start reads the log");
    }
}

impl ThreadSide {
    /// Copies whenever asked, until the writer is gone.
    pub(super) fn run(self) {
        while self.nudges.recv().is_ok() {
            for _ in 0..PASSES {
                let Some((log, copied)) = try_checkpoint(&self.connection, &self.health, "PASSIVE") else { break };
                self.progress.log_pages.store(log, Ordering::Release);
                if log - copied <= PAGES_REMAINDER {
                    break;
                }
            }
            self.progress.nearly_done.store(true, Ordering::Release);
        }
    }
}
