//! The files of a store: its directory, its lock and its database, and what is checked before SQLite
//! opens them.
//!
//! SQLite takes an empty file for a new database and discards the log of a missing one. Here both
//! are damage: the lock file records that the directory has held a store.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

const DATABASE: &str = "sakshi.db";
const LOG: &str = "sakshi.db-wal";
const LOCK: &str = "sakshi.lock";
const MARK: &[u8] = b"This directory holds a sakshi store.\n";
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// The directory, locked by this process until dropped.
#[derive(Debug)]
pub(crate) struct LockedDirectory {
    directory: PathBuf,
    lock: File,
}

/// The database file of the store in a directory.
pub(crate) fn database(directory: &Path) -> PathBuf {
    directory.join(DATABASE)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> StoreError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return StoreError::Full;
    }
    StoreError::unavailable(format!("{what} {}: {error}", path.display()))
}

fn private_file(path: &Path) -> Result<File, StoreError> {
    let open = || {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
        Ok(file)
    };
    open().map_err(|error| failed("cannot open", path, &error))
}

fn length(path: &Path) -> Result<u64, StoreError> {
    match path.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(failed("cannot examine", path, &error)),
    }
}

impl LockedDirectory {
    /// Creates the directory if it does not exist (for its owner alone), and locks it.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when it is locked, [`StoreError::Unavailable`] when it cannot be created.
    pub(crate) fn lock(directory: &Path) -> Result<Self, StoreError> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| failed("cannot create", directory, &error))?;
        let path = directory.join(LOCK);
        let lock = private_file(&path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory: directory.into(), lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory.display().to_string())),
            Err(TryLockError::Error(error)) => Err(failed("cannot lock", &path, &error)),
        }
    }

    /// The database file, which may be empty still.
    pub(crate) fn database(&self) -> PathBuf {
        database(&self.directory)
    }

    /// Refuses files that SQLite would silently replace, and creates the file of a new store.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the data is missing or is not a database.
    pub(crate) fn check_files(&mut self) -> Result<(), StoreError> {
        let path = self.database();
        let mut mark = Vec::new();
        self.lock.read_to_end(&mut mark).map_err(|error| failed("cannot read", &self.directory.join(LOCK), &error))?;
        let empty = length(&path)? == 0;
        if empty && (mark == MARK || length(&self.directory.join(LOG))? > 0) {
            return Err(StoreError::Corrupt(format!("{} is missing or empty, but this directory has held a store", path.display())));
        }
        let mut head = Vec::new();
        let file = private_file(&path)?;
        file.take(16).read_to_end(&mut head).map_err(|error| failed("cannot read", &path, &error))?;
        if !empty && head != SQLITE_MAGIC {
            return Err(StoreError::Corrupt(format!("{} is not a database", path.display())));
        }
        Ok(())
    }

    /// Compares the length of the file with its number of pages. The log must have been copied into
    /// the file before.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the end of the file is missing.
    pub(crate) fn check_length(&self, pages: u64, page_bytes: u64) -> Result<(), StoreError> {
        let path = self.database();
        if length(&path)? < pages.saturating_mul(page_bytes) {
            return Err(StoreError::Corrupt(format!("the end of {} is missing", path.display())));
        }
        Ok(())
    }

    /// Records in the lock file that there is a store in this directory.
    ///
    /// # Errors
    /// When the record cannot be made durable.
    pub(crate) fn mark(&mut self) -> Result<(), StoreError> {
        let path = self.directory.join(LOCK);
        let mut write = || {
            self.lock.rewind()?;
            self.lock.write_all(MARK)?;
            self.lock.sync_all()?;
            File::open(&self.directory)?.sync_all()
        };
        write().map_err(|error| failed("cannot write", &path, &error))
    }
}
