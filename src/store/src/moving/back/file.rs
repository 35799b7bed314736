//! The new store, while it is filled: each batch of rows is one transaction of SQLite.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Params};
use sakshi_domain::clock::SystemClock;
use tokio::task::spawn_blocking;

use super::super::interrupted;
use crate::Ownership;
use crate::embedded::database::connection::{Role, connect};
use crate::embedded::database::files::{LockedDirectory, database, failed};
use crate::embedded::{EmbeddedOptions, EmbeddedStore, exists};
use crate::error::StoreError;
use crate::vault::Vault;

/// Calls that may wait while the store is created: there is none.
const CALLS: usize = 1;
/// What later rows need of earlier ones: a guest's registration, and what a report's webhook tells.
const NOTES: &str = "CREATE TEMP TABLE guests (txn BLOB PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID; \
     CREATE TEMP TABLE tellings (report BLOB PRIMARY KEY, tells TEXT) WITHOUT ROWID;";
/// Transactions after which the log is copied into the file.
const CHECKPOINT: u32 = 100;

/// The directory of the new store, which nobody else uses meanwhile.
pub(super) struct Place {
    directory: PathBuf,
    locked: LockedDirectory,
}

impl Place {
    /// Locks a directory that holds no store, and has not held one.
    pub(super) fn lock(directory: &Path) -> Result<Self, StoreError> {
        let locked = LockedDirectory::lock(directory)?;
        if exists(directory) {
            return Err(StoreError::InUse(format!("{}, which holds a store", directory.display())));
        }
        locked.check_files()?;
        std::fs::remove_file(database(directory)).map_err(|error| failed("remove", directory, &error))?;
        Ok(Self { directory: directory.to_owned(), locked })
    }

    /// Where the store is until it is whole.
    pub(super) fn draft(&self) -> PathBuf {
        self.directory.join("unfinished")
    }

    /// Gives the store its name, durably.
    pub(super) fn keep(mut self) -> Result<(), StoreError> {
        let draft = self.draft();
        let renamed = std::fs::rename(database(&draft), database(&self.directory)).and_then(|()| std::fs::remove_dir_all(&draft));
        let synced = renamed.and_then(|()| std::fs::File::open(&self.directory)?.sync_all());
        synced.map_err(|error| failed("write", &self.directory, &error))?;
        self.locked.mark()
    }
}

/// A store that nothing else has open.
pub(super) struct NewStore {
    rows: Arc<Mutex<Rows>>,
}

/// The connection that writes.
pub(super) struct Rows {
    connection: Connection,
    transactions: u32,
}

impl NewStore {
    /// Creates it; what an earlier run left there is removed.
    pub(super) async fn create(draft: &Path, vault: Arc<Vault>, ownership: &Ownership) -> Result<Self, StoreError> {
        let (directory, ownership) = (draft.to_owned(), ownership.clone());
        let create = move || {
            match std::fs::remove_dir_all(&directory) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed("remove", &directory, &error)),
                _ => {}
            }
            let clock = Arc::new(SystemClock);
            EmbeddedStore::open(EmbeddedOptions { directory: directory.clone(), clock, vault, max_waiting: CALLS, ownership })?.close();
            let connection = connect(&database(&directory), Role::Writer(None))?;
            connection.execute_batch(NOTES)?;
            Ok(Self { rows: Arc::new(Mutex::new(Rows { connection, transactions: 0 })) })
        };
        spawn_blocking(create).await.map_err(|_| interrupted())?
    }

    /// Writes rows in one transaction.
    pub(super) async fn write(&self, work: impl FnOnce(&Rows) -> Result<(), StoreError> + Send + 'static) -> Result<(), StoreError> {
        let rows = Arc::clone(&self.rows);
        let write = move || {
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.connection.execute_batch("BEGIN")?;
            work(&rows)?;
            rows.connection.execute_batch("COMMIT")?;
            rows.transactions += 1;
            if rows.transactions.is_multiple_of(CHECKPOINT) { rows.empty_log() } else { Ok(()) }
        };
        spawn_blocking(write).await.map_err(|_| interrupted())?
    }

    /// Closes it, when everything is in the file.
    pub(super) async fn close(self) -> Result<(), StoreError> {
        self.write(|_| Ok(())).await?;
        let rows = self.rows;
        spawn_blocking(move || rows.lock().unwrap_or_else(PoisonError::into_inner).empty_log()).await.map_err(|_| interrupted())?
    }
}

impl Rows {
    pub(super) fn put(&self, sql: &str, values: impl Params) -> Result<(), StoreError> {
        self.connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// The number of the row that was written last.
    pub(super) fn last(&self) -> i64 {
        self.connection.last_insert_rowid()
    }

    /// A number that a query finds.
    pub(super) fn find(&self, sql: &str, values: impl Params) -> Result<Option<i64>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = statement.query(values)?;
        Ok(found.next()?.map(|row| row.get(0)).transpose()?)
    }

    fn empty_log(&self) -> Result<(), StoreError> {
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }
}
