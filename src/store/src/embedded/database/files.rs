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

/// What is told of a file with which something could not be done.
pub(crate) fn failed(what: &str, path: &Path, error: &std::io::Error) -> StoreError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return StoreError::Full;
    }
    StoreError::unavailable(format!("cannot {what} {}: {error}", path.display()))
}

fn private_file(path: &Path) -> Result<File, StoreError> {
    let open = || {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
        Ok(file)
    };
    open().map_err(|error| failed("open", path, &error))
}

/// Bytes of a file; 0 when there is none.
///
/// # Errors
/// It cannot be examined.
pub(crate) fn length(path: &Path) -> Result<u64, StoreError> {
    match path.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(failed("examine", path, &error)),
    }
}

impl LockedDirectory {
    /// Creates the directory if it does not exist (for its owner alone), and locks it.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when it is locked, [`StoreError::Unavailable`] when it cannot be created.
    pub(crate) fn lock(directory: &Path) -> Result<Self, StoreError> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| failed("create", directory, &error))?;
        let path = directory.join(LOCK);
        let lock = private_file(&path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory: directory.into(), lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory.display().to_string())),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path, &error)),
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
        self.lock.read_to_end(&mut mark).map_err(|error| failed("read", &self.directory.join(LOCK), &error))?;
        let empty = length(&path)? == 0;
        if empty && (mark == MARK || length(&self.directory.join(LOG))? > 0) {
            return Err(StoreError::Corrupt(format!("{} is missing or empty, but this directory has held a store", path.display())));
        }
        let mut head = Vec::new();
        let file = private_file(&path)?;
        file.take(16).read_to_end(&mut head).map_err(|error| failed("read", &path, &error))?;
        if !empty && head != SQLITE_MAGIC {
            return Err(StoreError::Corrupt(format!("{} is not a database", path.display())));
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
        write().map_err(|error| failed("write", &path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_examined_is_no_missing_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        assert_eq!(length(&file), Ok(0));
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(length(&file), Ok(3));
        assert!(matches!(length(&file.join("within")), Err(StoreError::Unavailable(_))));
    }

    #[test]
    fn a_disk_without_room_is_told_apart() {
        let told = |kind: std::io::ErrorKind| failed("write", Path::new("file"), &kind.into());
        assert_eq!(told(std::io::ErrorKind::StorageFull), StoreError::Full);
        assert_eq!(told(std::io::ErrorKind::PermissionDenied), StoreError::unavailable("cannot write file: permission denied"));
    }
}
