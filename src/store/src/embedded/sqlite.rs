//! [`Sqlite`]: opening and closing the file, and handing work to its threads.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{Builder, JoinHandle};

use sakshi_domain::clock::Clock;
use tokio::task::spawn_blocking;

#[cfg(any(test, feature = "fuzzing"))]
use super::database::connection::cache_statements;
use super::database::connection::{Role, connect};
use super::database::files::{self, LockedDirectory};
use super::database::statements::Database;
use super::database::{log, pages, schema};
use super::errors::Health;
use super::threads::checkpoint;
#[cfg(any(test, feature = "fuzzing"))]
use super::threads::job::execute_all;
use super::threads::job::{Job, job_with_answer};
use super::threads::readers::{self, READERS, ReadQueue};
use super::threads::writer::{self, Writer};
use super::{EmbeddedOptions, Migration, backup};
use crate::Upgrading;
use crate::error::{StoreError, StoreFuture};

/// Upper limit of the disk space that is reserved for completing records, in bytes. The reserve is a twentieth of the
/// disk up to this limit.
const RESERVE_MAX: u64 = 64 * 1_024 * 1_024;

/// Returns true if the free blocks have fewer bytes than the reserve.
const fn is_below_reserve(free_blocks: u64, blocks: u64, block_bytes: u64) -> bool {
    let twentieth = blocks.saturating_mul(block_bytes) / 20;
    let reserve = if twentieth < RESERVE_MAX { twentieth } else { RESERVE_MAX };
    free_blocks.saturating_mul(block_bytes) < reserve
}

/// An open database file. Clones share it; dropping the last clone stops its threads.
#[derive(Clone)]
pub(crate) struct Sqlite {
    shared: Arc<Shared>,
}

/// The state that all clones share.
struct Shared {
    /// Database of a store in memory, used on the caller's thread.
    #[cfg(any(test, feature = "fuzzing"))]
    in_memory: Option<Mutex<Database>>,
    /// Path of the database file.
    path: PathBuf,
    /// The migration that opening the file made.
    migration: Option<Migration>,
    /// The queues of the threads; `None` after closing.
    queues: RwLock<Option<Queues>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// The queues through which callers hand jobs to the threads.
struct Queues {
    writes: SyncSender<Box<dyn Job>>,
    reads: Arc<ReadQueue>,
}

impl Queues {
    /// Queues a write, or refuses it immediately if the queue is full or closed.
    fn write(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.writes.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Overloaded,
            TrySendError::Disconnected(_) => StoreError::unavailable("the store is closed"),
        })
    }

    fn read(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.reads.push(job)
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        self.reads.close();
    }
}

impl Sqlite {
    /// Returns true if the disk has little room left for the file and its log; false for a store in memory.
    pub(crate) fn is_nearly_full(&self) -> bool {
        rustix::fs::statvfs(&self.shared.path)
            .is_ok_and(|disk| is_below_reserve(disk.f_bavail, disk.f_blocks, disk.f_frsize))
    }

    /// Opens the file, limited to `max_pages` pages of 4 KiB, or creates one in an empty directory.
    ///
    /// # Errors
    /// As [`EmbeddedStore::open`](super::EmbeddedStore::open).
    pub(crate) fn open(options: EmbeddedOptions, max_pages: Option<u32>) -> Result<Self, StoreError> {
        let EmbeddedOptions { directory, clock, vault, max_waiting, ownership, upgrading, .. } = options;
        let mut locked = LockedDirectory::lock(&directory)?;
        locked.check_files()?;
        let (path, log) = (locked.database(), files::log_path(&directory));
        let was_closed_cleanly = !log.exists();
        log::check(&log)?;
        let health = Arc::new(Health::default());
        let database = |connection| Database { connection, clock: Arc::clone(&clock), health: Arc::clone(&health) };
        let mut main = database(connect(&path, Role::Writer(max_pages))?);
        let number = schema::verify(&main.connection, Some(&vault), Some(&ownership), upgrading.schema)?;
        if !was_closed_cleanly {
            pages::check(&mut main.connection, &path)?;
        }
        let migration = back_up_before_migration(&path, &main, number, upgrading)?;
        schema::open(&main, &vault, &ownership, upgrading.schema)?;
        checkpoint::copy_at_start(&main.connection)?;
        locked.mark()?;

        let (writer_side, thread_side) =
            checkpoint::create_sides(&mut main.connection, database(connect(&path, Role::Checkpointer)?))?;
        let readers: Vec<_> =
            (0..READERS).map(|_| connect(&path, Role::Reader).map(database)).collect::<Result<_, _>>()?;
        let (writes, write_jobs) = sync_channel(max_waiting.max(1));
        let reads = Arc::new(ReadQueue::new(max_waiting.max(1)));
        // After an error from here on, the started threads end with the queues.
        let queues = Queues { writes, reads: Arc::clone(&reads) };
        let mut other_threads = Vec::new();
        for db in readers {
            let reads = Arc::clone(&reads);
            other_threads.push(start_thread("store-reader", move || readers::run(&db, &reads))?);
        }
        other_threads.push(start_thread("store-checkpoint", move || thread_side.run())?);
        let writer = Writer { db: main, checkpoints: writer_side, other_threads };
        let thread = start_thread("store-writer", move || {
            writer.run(&write_jobs);
            // The lock is released after everything else.
            drop(locked);
        })?;
        Ok(Self {
            shared: Arc::new(Shared {
                #[cfg(any(test, feature = "fuzzing"))]
                in_memory: None,
                path,
                migration,
                queues: RwLock::new(Some(queues)),
                writer: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Opens a file that no process writes, such as a backup, for reading only.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub(crate) fn read_only(path: &Path, clock: &Arc<dyn Clock>, max_waiting: usize) -> Result<Self, StoreError> {
        let reads = Arc::new(ReadQueue::new(max_waiting.max(1)));
        // No writer takes these jobs.
        let queues = Queues { writes: sync_channel(1).0, reads: Arc::clone(&reads) };
        for _ in 0..READERS {
            let db =
                Database { connection: connect(path, Role::Reader)?, clock: Arc::clone(clock), health: Arc::default() };
            let reads = Arc::clone(&reads);
            start_thread("store-reader", move || readers::run(&db, &reads))?;
        }
        Ok(Self {
            shared: Arc::new(Shared {
                #[cfg(any(test, feature = "fuzzing"))]
                in_memory: None,
                path: path.to_owned(),
                migration: None,
                queues: RwLock::new(Some(queues)),
                writer: Mutex::default(),
            }),
        })
    }

    /// Opens a database in memory. Each call takes effect on the caller's thread before it returns, so the result
    /// depends on the order of the calls alone.
    ///
    /// # Errors
    /// Any error of SQLite.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn in_memory(
        clock: Arc<dyn Clock>,
        vault: &crate::Vault,
        ownership: &crate::Ownership,
    ) -> Result<Self, StoreError> {
        let connection = rusqlite::Connection::open_in_memory()?;
        cache_statements(&connection)?;
        let database = Database { connection, clock, health: Arc::default() };
        schema::open(&database, vault, ownership, &crate::SCHEMA)?;
        let in_memory = Some(Mutex::new(database));
        Ok(Self {
            shared: Arc::new(Shared {
                in_memory,
                path: PathBuf::new(),
                migration: None,
                queues: RwLock::default(),
                writer: Mutex::default(),
            }),
        })
    }

    /// Finishes queued calls, refuses further calls, and ends the threads. Blocks until the files are closed; safe to
    /// call twice.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    pub(crate) fn migration(&self) -> Option<&Migration> {
        self.shared.migration.as_ref()
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn is_in_memory(&self) -> bool {
        self.shared.in_memory.is_some()
    }

    #[cfg(feature = "fuzzing")]
    pub(crate) fn in_memory_database(&self) -> Option<&Mutex<Database>> {
        self.shared.in_memory.as_ref()
    }

    /// Copies the log into the database file and empties the log, so that it contains no deleted data.
    pub(crate) fn empty_log(&self) -> StoreFuture<()> {
        #[cfg(any(test, feature = "fuzzing"))]
        if self.is_in_memory() {
            return Box::pin(std::future::ready(Ok(())));
        }
        let path = self.shared.path.clone();
        Box::pin(async move {
            spawn_blocking(move || checkpoint::empty_log(&path))
                .await
                .map_err(|_| StoreError::unavailable("the runtime is shutting down"))?
        })
    }

    /// Queues a write of about `weight` bytes.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnMut(&Database) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        self.submit(Queues::write, weight, work)
    }

    /// Queues a read.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&Database) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        self.submit(Queues::read, 0, work)
    }

    /// Queues a job with the function that chooses the queue. The future resolves to the job's answer.
    fn submit<T: Send + 'static>(
        &self,
        queue: fn(&Queues, Box<dyn Job>) -> Result<(), StoreError>,
        weight: usize,
        work: impl FnMut(&Database) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (job, answer) = job_with_answer(weight, work);
        #[cfg(any(test, feature = "fuzzing"))]
        if let Some(database) = &self.shared.in_memory {
            execute_all("BEGIN IMMEDIATE", &database.lock().unwrap_or_else(PoisonError::into_inner), vec![job]);
            return Box::pin(async move {
                answer.await.map_err(|_| StoreError::unavailable("the store was closed before the answer"))?
            });
        }
        let queues = self.shared.queues.read().unwrap_or_else(PoisonError::into_inner);
        let queued = queues
            .as_ref()
            .map_or_else(|| Err(StoreError::unavailable("the store is closed")), |queues| queue(queues, job));
        let answer = async move {
            queued?;
            answer.await.map_err(|_| StoreError::unavailable("the store was closed before the answer"))?
        };
        Box::pin(answer)
    }
}

/// Returns true if the directory has a store, even a damaged one.
#[must_use]
pub fn exists(directory: &Path) -> bool {
    files::database_path(directory).exists()
}

/// Backs up a file of an earlier release, if its migration is allowed. Returns the migration; `None` for a file of this
/// release.
fn back_up_before_migration(
    path: &Path,
    main: &Database,
    number: Option<u32>,
    upgrading: Upgrading,
) -> Result<Option<Migration>, StoreError> {
    let to = upgrading.schema.number();
    let Some(from) = number.filter(|number| *number < to) else { return Ok(None) };
    if !upgrading.at_start {
        schema::refuse_earlier(Some(from), upgrading.schema)?;
    }
    Ok(Some(Migration { from, to, backup: backup::write_migration_backup(path, from, &*main.clock)? }))
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    Builder::new()
        .name(name.into())
        .spawn(body)
        .map_err(|error| StoreError::unavailable(format!("cannot start a thread: {error}")))
}

impl Shared {
    fn close(&self) {
        drop(self.queues.write().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        writer::join(writer);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sqlite")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_a_twentieth_of_the_disk_up_to_64_megabytes() {
        let small = |free| is_below_reserve(free, 1_000, 4_096);
        assert!(small(49) && !small(50));
        let large = |free| is_below_reserve(free, 1 << 40, 4_096);
        assert!(large(16 * 1_024 - 1) && !large(16 * 1_024));
    }
}
