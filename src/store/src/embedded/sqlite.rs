//! [`Sqlite`]: opening and closing the file, and handing work to its threads.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{Builder, JoinHandle};

use sakshi_domain::clock::Clock;
use tokio::task::spawn_blocking;

#[cfg(any(test, feature = "fuzzing"))]
use super::database::connection::keep_statements;
use super::database::connection::{Role, connect};
use super::database::files::{self, LockedDirectory};
use super::database::statements::Database;
use super::database::{log, pages, schema};
use super::errors::Health;
use super::threads::checkpoint;
#[cfg(any(test, feature = "fuzzing"))]
use super::threads::job::execute_all;
use super::threads::job::{Job, waiting};
use super::threads::readers::{self, READERS, Reads};
use super::threads::writer::{self, Writer};
use super::{EmbeddedOptions, Migrated, backup};
use crate::Upgrading;
use crate::error::{StoreError, StoreFuture};

/// Disk space reserved for ending records, in bytes: a twentieth of the disk, and at most this.
const RESERVE_MAX: u64 = 64 * 1_024 * 1_024;

/// Returns true if the free blocks have fewer bytes than the reserve.
const fn has_little_room(left: u64, blocks: u64, block_bytes: u64) -> bool {
    let twentieth = blocks.saturating_mul(block_bytes) / 20;
    let reserve = if twentieth < RESERVE_MAX { twentieth } else { RESERVE_MAX };
    left.saturating_mul(block_bytes) < reserve
}

/// An open file. Clones share it; dropping the last one stops its threads.
#[derive(Clone)]
pub(crate) struct Sqlite {
    shared: Arc<Shared>,
}

struct Shared {
    /// Database of a store in memory, which works on the caller's thread.
    #[cfg(any(test, feature = "fuzzing"))]
    in_memory: Option<Mutex<Database>>,
    /// The database file.
    path: PathBuf,
    migrated: Option<Migrated>,
    queues: RwLock<Option<Queues>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct Queues {
    writes: SyncSender<Box<dyn Job>>,
    reads: Arc<Reads>,
}

impl Queues {
    fn write(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.writes.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Overloaded,
            TrySendError::Disconnected(_) => StoreError::unavailable("it is closed"),
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
    /// Returns true if little room is left on the disk for the file and its log. A store in memory has no disk.
    pub(crate) fn is_nearly_full(&self) -> bool {
        rustix::fs::statvfs(&self.shared.path)
            .is_ok_and(|disk| has_little_room(disk.f_bavail, disk.f_blocks, disk.f_frsize))
    }

    /// Opens the file, limited to `max_pages` pages of 4 KiB, or creates one in an empty directory.
    ///
    /// # Errors
    /// Those of [`EmbeddedStore::open`](super::EmbeddedStore::open).
    pub(crate) fn open(options: EmbeddedOptions, max_pages: Option<u32>) -> Result<Self, StoreError> {
        let EmbeddedOptions { directory, clock, vault, max_waiting, ownership, upgrading, .. } = options;
        let mut locked = LockedDirectory::lock(&directory)?;
        locked.check_files()?;
        let (path, log_left) = (locked.database(), files::log(&directory));
        let ended_in_order = !log_left.exists();
        log::check(&log_left)?;
        let health = Arc::new(Health::default());
        let database = |connection| Database { connection, clock: Arc::clone(&clock), health: Arc::clone(&health) };
        let mut main = database(connect(&path, Role::Writer(max_pages))?);
        let found = schema::verify(&main.connection, Some(&vault), Some(&ownership), upgrading.schema)?;
        if !ended_in_order {
            pages::check(&mut main.connection, &path)?;
        }
        let migrated = keep_earlier(&path, &main, found, upgrading)?;
        schema::open(&main, &vault, &ownership, upgrading.schema)?;
        checkpoint::at_start(&main.connection)?;
        locked.mark()?;

        let (writer_side, thread_side) =
            checkpoint::pair(&mut main.connection, database(connect(&path, Role::Checkpointer)?))?;
        let readers: Vec<_> =
            (0..READERS).map(|_| connect(&path, Role::Reader).map(database)).collect::<Result<_, _>>()?;
        let (writes, write_jobs) = sync_channel(max_waiting.max(1));
        let reads = Arc::new(Reads::new(max_waiting.max(1)));
        // If anything fails from here on, the started threads end with the queues.
        let queues = Queues { writes, reads: Arc::clone(&reads) };
        let mut others = Vec::new();
        for db in readers {
            let reads = Arc::clone(&reads);
            others.push(start("store-reader", move || readers::run(&db, &reads))?);
        }
        others.push(start("store-checkpoint", move || thread_side.run())?);
        let writer = Writer { db: main, checkpoints: writer_side, others };
        let thread = start("store-writer", move || {
            writer.run(&write_jobs);
            // The lock is released last.
            drop(locked);
        })?;
        Ok(Self {
            shared: Arc::new(Shared {
                #[cfg(any(test, feature = "fuzzing"))]
                in_memory: None,
                path,
                migrated,
                queues: RwLock::new(Some(queues)),
                writer: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Opens a file that no process writes, such as a backup, for reading only.
    ///
    /// # Errors
    /// The error of SQLite.
    pub(crate) fn read_only(path: &Path, clock: &Arc<dyn Clock>, max_waiting: usize) -> Result<Self, StoreError> {
        let reads = Arc::new(Reads::new(max_waiting.max(1)));
        // There is no writer to take these jobs.
        let queues = Queues { writes: sync_channel(1).0, reads: Arc::clone(&reads) };
        for _ in 0..READERS {
            let db =
                Database { connection: connect(path, Role::Reader)?, clock: Arc::clone(clock), health: Arc::default() };
            let reads = Arc::clone(&reads);
            start("store-reader", move || readers::run(&db, &reads))?;
        }
        Ok(Self {
            shared: Arc::new(Shared {
                #[cfg(any(test, feature = "fuzzing"))]
                in_memory: None,
                path: path.to_owned(),
                migrated: None,
                queues: RwLock::new(Some(queues)),
                writer: Mutex::default(),
            }),
        })
    }

    /// Opens a database in memory. Each call takes effect on the caller's thread before it returns, so the result
    /// depends on the order of the calls alone.
    ///
    /// # Errors
    /// The error of SQLite.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn in_memory(
        clock: Arc<dyn Clock>,
        vault: &crate::Vault,
        ownership: &crate::Ownership,
    ) -> Result<Self, StoreError> {
        let connection = rusqlite::Connection::open_in_memory()?;
        keep_statements(&connection)?;
        let database = Database { connection, clock, health: Arc::default() };
        schema::open(&database, vault, ownership, &crate::SCHEMA)?;
        let in_memory = Some(Mutex::new(database));
        Ok(Self {
            shared: Arc::new(Shared {
                in_memory,
                path: PathBuf::new(),
                migrated: None,
                queues: RwLock::default(),
                writer: Mutex::default(),
            }),
        })
    }

    /// Finishes queued calls, refuses later ones, and ends the threads. Blocks until the files are closed; safe to call
    /// twice.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    pub(crate) fn migrated(&self) -> Option<&Migrated> {
        self.shared.migrated.as_ref()
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn is_in_memory(&self) -> bool {
        self.shared.in_memory.is_some()
    }

    #[cfg(feature = "fuzzing")]
    pub(crate) fn in_memory_database(&self) -> Option<&Mutex<Database>> {
        self.shared.in_memory.as_ref()
    }

    /// Copies the log into the database file and empties it, so that it keeps no deleted data.
    pub(crate) fn empty_log(&self) -> StoreFuture<()> {
        #[cfg(any(test, feature = "fuzzing"))]
        if self.is_in_memory() {
            return Box::pin(std::future::ready(Ok(())));
        }
        let path = self.shared.path.clone();
        Box::pin(async move {
            spawn_blocking(move || checkpoint::empty(&path))
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

    fn submit<T: Send + 'static>(
        &self,
        queue: fn(&Queues, Box<dyn Job>) -> Result<(), StoreError>,
        weight: usize,
        work: impl FnMut(&Database) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (job, answer) = waiting(weight, work);
        #[cfg(any(test, feature = "fuzzing"))]
        if let Some(database) = &self.shared.in_memory {
            execute_all("BEGIN IMMEDIATE", &database.lock().unwrap_or_else(PoisonError::into_inner), vec![job]);
            return Box::pin(async move {
                answer.await.map_err(|_| StoreError::unavailable("it closed before it could answer"))?
            });
        }
        let queues = self.shared.queues.read().unwrap_or_else(PoisonError::into_inner);
        let sent =
            queues.as_ref().map_or_else(|| Err(StoreError::unavailable("it is closed")), |queues| queue(queues, job));
        let answer = async move {
            sent?;
            answer.await.map_err(|_| StoreError::unavailable("it closed before it could answer"))?
        };
        Box::pin(answer)
    }
}

/// Returns true if the directory has a store, damaged or not.
#[must_use]
pub fn exists(directory: &Path) -> bool {
    files::database(directory).exists()
}

/// Writes a backup of a file of an earlier release, if its migration is allowed.
fn keep_earlier(
    path: &Path,
    main: &Database,
    found: Option<u32>,
    upgrading: Upgrading,
) -> Result<Option<Migrated>, StoreError> {
    let to = upgrading.schema.number();
    let Some(from) = found.filter(|found| *found < to) else { return Ok(None) };
    if !upgrading.at_start {
        schema::refuse_earlier(Some(from), upgrading.schema)?;
    }
    Ok(Some(Migrated { from, to, backup: backup::keep_earlier(path, from, &*main.clock)? }))
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    Builder::new().name(name.into()).spawn(body).map_err(|error| StoreError::unavailable(format!("no thread: {error}")))
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
    fn a_twentieth_of_a_disk_is_kept_for_what_ends_and_64_megabytes_at_most() {
        let small = |left| has_little_room(left, 1_000, 4_096);
        assert!(small(49) && !small(50));
        let large = |left| has_little_room(left, 1 << 40, 4_096);
        assert!(large(16 * 1_024 - 1) && !large(16 * 1_024));
    }
}
