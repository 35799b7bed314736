//! The embedded store: one SQLite file, one thread that writes, a few that read.
//!
//! ```text
//! open, complete, claim … ──▶ bounded queue ──▶ writer ── one commit for all that waits ──▶ answers
//! load, find, list …      ──▶ bounded queue ──▶ readers ── one snapshot for a share      ──▶ answers
//! ```
//!
//! An answer to a write leaves after its commit is on the disk, so a later read sees it. What the
//! statements of each transition are is in the file named after it; what they mean is said by
//! [`crate::Store`].

mod checkpoint;
mod completion;
mod connection;
mod deliveries;
mod events;
mod fault;
mod files;
mod flows;
mod guests;
mod idempotency;
mod job;
mod keyring;
mod ledger;
mod opening;
mod readers;
mod retention;
mod schema;
mod sessions;
mod tenancy;
mod terms;
#[cfg(test)]
mod tests;
mod transitions;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{Builder, JoinHandle};

use sakshi_domain::clock::Clock;

use self::connection::{Role, connect};
use self::fault::{Health, open_error, unavailable};
use self::files::Held;
use self::job::{Job, Session, waiting};
use self::readers::{READERS, Reader, Reads};
use self::writer::Writer;
use crate::error::StoreError;
use crate::store::StoreFuture;
use crate::vault::Vault;

/// Where the store is, and how much it may take.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The directory of its files; made, for its owner alone, when there is none.
    pub directory: PathBuf,
    /// Decides expiry.
    pub clock: Arc<dyn Clock>,
    /// Seals what is personal or secret in terms, events and apps.
    pub vault: Arc<Vault>,
    /// Writes that may wait, and reads that may wait; further ones are refused at once.
    pub max_waiting: usize,
    /// Pages of 4 KiB that the file may have; as many as fit when `None`.
    pub max_pages: Option<u32>,
}

/// The store in one file. Clones share it; the last one to go stops its threads.
#[derive(Clone)]
pub struct EmbeddedStore {
    shared: Arc<Shared>,
}

struct Shared {
    vault: Arc<Vault>,
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
            TrySendError::Disconnected(_) => unavailable("it is closed"),
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

impl EmbeddedStore {
    /// Opens the store, or makes a new one in an empty directory.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process or handle has it, [`StoreError::Corrupt`] when
    /// its files are damaged, foreign or gone, [`StoreError::Full`] when there is no room for
    /// them, [`StoreError::WrongKey`] when they were written under keys that the vault does not
    /// have, [`StoreError::Unavailable`] when they cannot be reached or a newer program has
    /// written them. Nothing is removed or made anew in any of these cases.
    pub fn open(options: EmbeddedOptions) -> Result<Self, StoreError> {
        let EmbeddedOptions { directory, clock, vault, max_waiting, max_pages } = options;
        let mut held = Held::take(&directory)?;
        held.examine()?;
        let path = held.database();
        let mut main = connect(&path, Role::Writer(max_pages))?;
        schema::migrate(&mut main, &*clock, &vault)?;
        verify(&main, &held)?;
        held.mark()?;

        let health = Arc::new(Health::default());
        let (writer_side, thread_side) = checkpoint::pair(&mut main, connect(&path, Role::Checkpointer)?, Arc::clone(&health))?;
        let readers: Vec<_> = (0..READERS).map(|_| connect(&path, Role::Reader)).collect::<Result<_, _>>()?;
        let (writes, write_jobs) = sync_channel(max_waiting.max(1));
        let reads = Arc::new(Reads::new(max_waiting.max(1)));
        // Whatever fails from here on, the threads that have been started end with the queues.
        let queues = Queues { writes, reads: Arc::clone(&reads) };
        let mut others = Vec::new();
        for connection in readers {
            let (reader, reads) = (Reader { connection, clock: Arc::clone(&clock), health: Arc::clone(&health) }, Arc::clone(&reads));
            others.push(start("store-reader", move || reader.run(&reads))?);
        }
        others.push(start("store-checkpoint", move || thread_side.run())?);
        let writer = Writer { connection: main, clock, health, checkpoints: writer_side, others };
        let thread = start("store-writer", move || {
            writer.run(&write_jobs);
            // The lock is the last thing to go.
            drop(held);
        })?;
        Ok(Self { shared: Arc::new(Shared { vault, queues: RwLock::new(Some(queues)), writer: Mutex::new(Some(thread)) }) })
    }

    /// Finishes what waits, refuses what comes later, and ends the threads. Blocks until the
    /// files are closed; safe to call twice.
    pub fn close(&self) {
        self.shared.close();
    }

    fn vault(&self) -> &Arc<Vault> {
        &self.shared.vault
    }

    fn write<T, U>(
        &self,
        weight: usize,
        work: impl FnMut(&Session<'_>) -> rusqlite::Result<T> + Send + 'static,
        finish: impl FnOnce(T, &Vault) -> Result<U, StoreError> + Send + 'static,
    ) -> StoreFuture<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        self.submit(Queues::write, weight, work, finish)
    }

    fn read<T, U>(
        &self,
        work: impl FnMut(&Session<'_>) -> rusqlite::Result<T> + Send + 'static,
        finish: impl FnOnce(T, &Vault) -> Result<U, StoreError> + Send + 'static,
    ) -> StoreFuture<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        self.submit(Queues::read, 0, work, finish)
    }

    fn submit<T, U>(
        &self,
        queue: fn(&Queues, Box<dyn Job>) -> Result<(), StoreError>,
        weight: usize,
        work: impl FnMut(&Session<'_>) -> rusqlite::Result<T> + Send + 'static,
        finish: impl FnOnce(T, &Vault) -> Result<U, StoreError> + Send + 'static,
    ) -> StoreFuture<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        let (job, answer) = waiting(weight, work);
        let queues = self.shared.queues.read().unwrap_or_else(PoisonError::into_inner);
        let sent = queues.as_ref().map_or_else(|| Err(unavailable("it is closed")), |queues| queue(queues, job));
        let vault = Arc::clone(&self.shared.vault);
        Box::pin(async move {
            sent?;
            finish(answer.await.map_err(|_| unavailable("it closed before it could answer"))??, &vault)
        })
    }
}

/// Whether there is a store in this directory, damaged or not.
#[must_use]
pub fn exists(directory: &Path) -> bool {
    files::database(directory).exists()
}

/// Copies a log that an earlier life left behind, and compares the file with what it says.
fn verify(connection: &rusqlite::Connection, held: &Held) -> Result<(), StoreError> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|error| open_error(&error));
    number("PRAGMA wal_checkpoint(TRUNCATE)")?;
    let size = |number: i64| u64::try_from(number).unwrap_or(u64::MAX);
    held.check_length(size(number("PRAGMA page_count")?), size(number("PRAGMA page_size")?))
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    Builder::new().name(name.into()).spawn(body).map_err(|error| unavailable(format!("no thread: {error}")))
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

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedStore")
    }
}
