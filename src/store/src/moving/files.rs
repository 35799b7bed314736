//! The file of a move: the source, or the new store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::clock::{Clock, SystemClock};
use tokio::task::spawn_blocking;

use crate::Upgrading;
use crate::embedded::database::files::{
    LockedDirectory, database_path, file_error, file_length, holds_store, log_path,
};
use crate::embedded::sqlite::Sqlite;
use crate::embedded::{EmbeddedOptions, exists, inspect};
use crate::engine::Engine as _;
use crate::engine::embedded::EmbeddedEngine;
use crate::error::StoreError;
use crate::records::ALL;
use crate::redis::RedisOptions;

/// Bytes of the digest that make a mark.
const MARK_BYTES: usize = 16;
/// Maximum number of waiting calls.
const CALLS_MAX: usize = 4_096;

/// The open database file of a store, writable or read-only.
pub(super) struct StoreFile {
    sqlite: Sqlite,
    pub(super) engine: EmbeddedEngine,
}

/// The directory of the new store, locked for this move.
pub(super) struct TargetDirectory {
    directory: PathBuf,
    locked: LockedDirectory,
}

/// Runs work that may wait for a disk on a thread for such work.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err(StoreError::unavailable("the runtime is shutting down")))
}

/// Returns the options of a store in a directory, for a move from these servers or to them.
fn file_options(directory: &Path, servers: &RedisOptions) -> EmbeddedOptions {
    EmbeddedOptions {
        directory: directory.to_owned(),
        clock: clock(servers),
        vault: Arc::clone(&servers.vault),
        retention: servers.retention,
        max_waiting: CALLS_MAX,
        ownership: servers.ownership.clone(),
        upgrading: Upgrading { schema: servers.schema, at_start: false },
    }
}

/// Returns the clock of the options, or the system's.
fn clock(servers: &RedisOptions) -> Arc<dyn Clock> {
    servers.clock.clone().unwrap_or_else(|| Arc::new(SystemClock))
}

impl StoreFile {
    /// Returns the file with its engine.
    fn new(sqlite: Sqlite) -> Self {
        Self { engine: EmbeddedEngine::new(sqlite.clone(), ALL), sqlite }
    }

    /// Opens a backup, or the directory of a store, which no node can open meanwhile. Checks keys and installation.
    pub(super) async fn open_source(from: &Path, servers: &RedisOptions) -> Result<Self, StoreError> {
        let (from, options) = (from.to_owned(), file_options(from, servers));
        let open = move || {
            if !from.is_dir() {
                inspect(&from, Arc::clone(&options.clock), &options.vault, Some(&options.ownership))?;
                return Sqlite::read_only(&from, &options.clock, CALLS_MAX);
            }
            if !exists(&from) {
                return Err(StoreError::unavailable(format!("there is no store in {}", from.display())));
            }
            Sqlite::open(options, None)
        };
        run_blocking(open).await.map(Self::new)
    }

    /// Returns a mark that identifies this store: a digest of its canary.
    pub(super) async fn mark(&self) -> Result<String, StoreError> {
        let canary = self.sqlite.read(|db| db.first("SELECT box FROM canary", [], |row| row.get::<_, Vec<u8>>(0)));
        let canary = canary.await?.ok_or_else(|| StoreError::unreadable("the canary"))?;
        Ok(digest(&SHA256, &canary).as_ref()[..MARK_BYTES].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Closes the file.
    pub(super) async fn close(self) -> Result<(), StoreError> {
        run_blocking(move || {
            self.sqlite.close();
            Ok(())
        })
        .await
    }
}

impl TargetDirectory {
    /// Locks a directory that holds no store, and has never held one.
    pub(super) async fn lock(directory: &Path) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        let lock = move || {
            let locked = LockedDirectory::lock(&directory)?;
            if exists(&directory) {
                return Err(StoreError::InUse(format!("{}, which holds a store", directory.display())));
            }
            holds_store(&directory)?;
            Ok(Self { directory, locked })
        };
        run_blocking(lock).await
    }

    /// Returns the directory of the unfinished store.
    fn draft(&self) -> PathBuf {
        self.directory.join("unfinished")
    }

    /// Creates the store. Removes the remains of an earlier run.
    pub(super) async fn create(&self, servers: &RedisOptions) -> Result<StoreFile, StoreError> {
        let (draft, options) = (self.draft(), file_options(&self.draft(), servers));
        let create = move || match std::fs::remove_dir_all(&draft) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file_error("remove", &draft, &error)),
            _ => Sqlite::open(options, None),
        };
        run_blocking(create).await.map(StoreFile::new)
    }

    /// Closes the store, and durably moves its file to its final path.
    pub(super) async fn finish(mut self, store: StoreFile) -> Result<(), StoreError> {
        // Afterwards the database file has all records, and no log is needed.
        store.engine.purge().await?;
        store.close().await?;
        let rename = move || {
            let draft = self.draft();
            if file_length(&log_path(&draft))? > 0 {
                return Err(StoreError::unavailable(format!("there is a log left in {}", draft.display())));
            }
            let renamed = std::fs::rename(database_path(&draft), database_path(&self.directory))
                .and_then(|()| std::fs::remove_dir_all(&draft));
            let synced = renamed.and_then(|()| std::fs::File::open(&self.directory)?.sync_all());
            synced.map_err(|error| file_error("write", &self.directory, &error))?;
            self.locked.mark()
        };
        run_blocking(rename).await
    }
}
