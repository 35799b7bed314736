//! The files of a store: its directory, its lock and its database, with the checks before SQLite opens them.
//!
//! SQLite takes an empty file for a new database and discards the log of a missing one. Here both
//! are damage: the lock file records that the directory has held a store.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

const DATABASE: &str = "sakshi.db";
const JOURNAL: &str = "sakshi.db-journal";
const LOG: &str = "sakshi.db-wal";
const INDEX: &str = "sakshi.db-shm";
const LOCK: &str = "sakshi.lock";
const MARK: &[u8] = b"This directory holds a sakshi store.\n";
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// The directory, locked by this process until dropped.
#[derive(Debug)]
pub(crate) struct LockedDirectory {
    directory: PathBuf,
    lock: File,
}

/// Returns the database file of the store in a directory.
pub(crate) fn database(directory: &Path) -> PathBuf {
    directory.join(DATABASE)
}

/// Returns the log of the store in a directory.
pub(crate) fn log(directory: &Path) -> PathBuf {
    directory.join(LOG)
}

/// Returns the index of that log, shared by every process that has the store open.
pub(crate) fn index(directory: &Path) -> PathBuf {
    directory.join(INDEX)
}

/// Returns the error for a failed file operation.
pub(crate) fn failed(what: &str, path: &Path, error: &std::io::Error) -> StoreError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return StoreError::Full;
    }
    StoreError::unavailable(format!("cannot {what} {}: {error}", path.display()))
}

/// Opens a file for its owner alone, and creates it if it does not exist. With `is_new`, it must not exist.
pub(crate) fn private(path: &Path, is_new: bool) -> Result<File, StoreError> {
    let open = || {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .create_new(is_new)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
        leave_to_owner(&file, path)?;
        Ok(file)
    };
    open().map_err(|error| failed("open", path, &error))
}

/// Creates a directory for its owner alone, with its parents.
fn private_directory(directory: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !here(path).exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    missing.into_iter().rev().try_for_each(|path| leave_to_owner(&File::open(path)?, path))
}

/// Gives a file created by root to the owner and the group of its directory, so the service there can open it. A link's
/// target stays root's, so the service cannot get hold of a file elsewhere.
fn leave_to_owner(file: &File, path: &Path) -> std::io::Result<()> {
    let (made, named) = (file.metadata()?, path.symlink_metadata()?);
    let directory = here(path.parent().unwrap_or(path)).metadata()?;
    let is_link = (made.dev(), made.ino()) != (named.dev(), named.ino()) || (made.is_file() && made.nlink() > 1);
    let is_roots = made.uid() == 0 && (made.uid(), made.gid()) != (directory.uid(), directory.gid());
    if is_roots && !is_link { fchown(file, Some(directory.uid()), Some(directory.gid())) } else { Ok(()) }
}

/// Returns the path itself; the working directory for an empty one.
pub(crate) fn here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Returns the size of a file in bytes; 0 when there is none.
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

/// Returns true if a directory holds a store.
///
/// # Errors
/// [`StoreError::Corrupt`] when the data is missing or is not a database.
pub(crate) fn holds_store(directory: &Path) -> Result<bool, StoreError> {
    let (path, lock) = (database(directory), directory.join(LOCK));
    if length(&path)? == 0 {
        if starts_with(&lock, MARK)? || length(&log(directory))? > 0 {
            return Err(StoreError::Corrupt(format!(
                "{} is missing or empty, but this directory has held a store",
                path.display()
            )));
        }
        return Ok(false);
    }
    if starts_with(&path, SQLITE_MAGIC)? {
        return Ok(true);
    }
    // The creation of a store was interrupted in its first page: SQLite rolls it back with its journal.
    if directory.join(JOURNAL).exists() && !starts_with(&lock, MARK)? {
        return Ok(false);
    }
    Err(StoreError::Corrupt(format!("{} is not a database", path.display())))
}

/// Returns true if a file begins with these bytes; false for a missing file.
fn starts_with(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let mut head = Vec::new();
    match File::open(path).and_then(|file| file.take(bytes.len() as u64).read_to_end(&mut head)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed("read", path, &error)),
        _ => Ok(head == bytes),
    }
}

impl LockedDirectory {
    /// Creates the directory if it does not exist (for its owner alone), and locks it.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when it is locked, [`StoreError::Unavailable`] when it cannot be created.
    pub(crate) fn lock(directory: &Path) -> Result<Self, StoreError> {
        private_directory(directory).map_err(|error| failed("create", directory, &error))?;
        let path = directory.join(LOCK);
        let lock = private(&path, false)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory: directory.into(), lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory.display().to_string())),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path, &error)),
        }
    }

    /// Returns the path of the database file, which may still be empty.
    pub(crate) fn database(&self) -> PathBuf {
        database(&self.directory)
    }

    /// Refuses files that SQLite would silently replace, and creates the file of a new store.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the data is missing or is not a database.
    pub(crate) fn check_files(&self) -> Result<(), StoreError> {
        holds_store(&self.directory)?;
        private(&self.database(), false).map(drop)
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
        assert_eq!(
            told(std::io::ErrorKind::PermissionDenied),
            StoreError::unavailable("cannot write file: permission denied")
        );
    }
}
