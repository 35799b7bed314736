//! The files of a store: its directory, its lock and its database, with the checks before SQLite opens them.
//!
//! SQLite treats an empty file as a new database, and discards the log of a missing file. Here both count as damage:
//! the lock file records that the directory has held a store.

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
/// Content of the lock file once the directory holds a store.
const MARK: &[u8] = b"This directory holds a sakshi store.\n";
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// A directory that this process has locked until the value is dropped.
#[derive(Debug)]
pub(crate) struct LockedDirectory {
    directory: PathBuf,
    lock: File,
}

/// Returns the path of the database file in a store's directory.
pub(crate) fn database_path(directory: &Path) -> PathBuf {
    directory.join(DATABASE)
}

/// Returns the path of the journal in a store's directory, which an interrupted creation leaves.
pub(crate) fn journal_path(directory: &Path) -> PathBuf {
    directory.join(JOURNAL)
}

/// Returns the path of the log in a store's directory.
pub(crate) fn log_path(directory: &Path) -> PathBuf {
    directory.join(LOG)
}

/// Returns the path of the log's index, which all processes with an open store share.
pub(crate) fn index_path(directory: &Path) -> PathBuf {
    directory.join(INDEX)
}

/// Returns the error for a failed file operation.
pub(crate) fn file_error(operation: &str, path: &Path, error: &std::io::Error) -> StoreError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return StoreError::Full;
    }
    StoreError::unavailable(format!("cannot {operation} {}: {error}", path.display()))
}

/// Opens a file that only its owner can access, and creates it if it does not exist.
pub(crate) fn open_private(path: &Path) -> Result<File, StoreError> {
    open_private_with(path, OpenOptions::new().create(true))
}

/// Creates a file that only its owner can access. Fails if it exists.
pub(crate) fn create_private(path: &Path) -> Result<File, StoreError> {
    open_private_with(path, OpenOptions::new().create_new(true))
}

/// Opens a file for reading and writing with these further options, and makes it private.
fn open_private_with(path: &Path, options: &mut OpenOptions) -> Result<File, StoreError> {
    let mut open = || {
        let file = options.read(true).write(true).truncate(false).mode(0o600).open(path)?;
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
        hand_to_directory_owner(&file, path)?;
        Ok(file)
    };
    open().map_err(|error| file_error("open", path, &error))
}

/// Creates a directory that only its owner can access, with its parents.
fn create_private_directory(directory: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !non_empty(path).exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    missing.into_iter().rev().try_for_each(|path| hand_to_directory_owner(&File::open(path)?, path))
}

/// Gives a file created by root to the owner and group of its directory, so that the service can open it. The target of
/// a link stays with root, so that the service cannot gain access to a file elsewhere.
fn hand_to_directory_owner(file: &File, path: &Path) -> std::io::Result<()> {
    let (opened, named) = (file.metadata()?, path.symlink_metadata()?);
    let directory = non_empty(path.parent().unwrap_or(path)).metadata()?;
    let is_link =
        (opened.dev(), opened.ino()) != (named.dev(), named.ino()) || (opened.is_file() && opened.nlink() > 1);
    let belongs_to_root = opened.uid() == 0 && (opened.uid(), opened.gid()) != (directory.uid(), directory.gid());
    if belongs_to_root && !is_link { fchown(file, Some(directory.uid()), Some(directory.gid())) } else { Ok(()) }
}

/// Returns the path, or `.` for an empty path.
pub(crate) fn non_empty(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Returns the size of a file in bytes; 0 for a missing file.
///
/// # Errors
/// [`StoreError::Unavailable`] if the file cannot be examined.
pub(crate) fn file_length(path: &Path) -> Result<u64, StoreError> {
    match path.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(file_error("examine", path, &error)),
    }
}

/// Returns true if a directory holds a store.
///
/// # Errors
/// [`StoreError::Corrupt`] if the database file is missing, empty or not a database.
pub(crate) fn holds_store(directory: &Path) -> Result<bool, StoreError> {
    let (path, lock) = (database_path(directory), directory.join(LOCK));
    if file_length(&path)? == 0 {
        if starts_with(&lock, MARK)? || file_length(&log_path(directory))? > 0 {
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
    // The creation of a store was interrupted: SQLite rolls it back with its journal.
    if journal_path(directory).exists() && !starts_with(&lock, MARK)? {
        return Ok(false);
    }
    Err(StoreError::Corrupt(format!("{} is not a database", path.display())))
}

/// Returns true if a file begins with these bytes; false for a missing file.
fn starts_with(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let mut head = Vec::new();
    match File::open(path).and_then(|file| file.take(bytes.len() as u64).read_to_end(&mut head)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file_error("read", path, &error)),
        _ => Ok(head == bytes),
    }
}

impl LockedDirectory {
    /// Locks a directory, and creates it with access for its owner only if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has locked it, [`StoreError::Unavailable`] if it cannot be created.
    pub(crate) fn lock(directory: &Path) -> Result<Self, StoreError> {
        create_private_directory(directory).map_err(|error| file_error("create", directory, &error))?;
        let path = directory.join(LOCK);
        let lock = open_private(&path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory: directory.into(), lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory.display().to_string())),
            Err(TryLockError::Error(error)) => Err(file_error("lock", &path, &error)),
        }
    }

    /// Returns the path of the database file, which may still be empty.
    pub(crate) fn database(&self) -> PathBuf {
        database_path(&self.directory)
    }

    /// Refuses files that SQLite would silently replace, and creates the file of a new store.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the database file of a store is missing, empty or not a database.
    pub(crate) fn check_files(&self) -> Result<(), StoreError> {
        holds_store(&self.directory)?;
        open_private(&self.database()).map(drop)
    }

    /// Records in the lock file that the directory holds a store.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Unavailable`] if the file cannot be written.
    pub(crate) fn mark(&mut self) -> Result<(), StoreError> {
        let path = self.directory.join(LOCK);
        let mut write = || {
            self.lock.rewind()?;
            self.lock.write_all(MARK)?;
            self.lock.sync_all()?;
            File::open(&self.directory)?.sync_all()
        };
        write().map_err(|error| file_error("write", &path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_examined_does_not_count_as_missing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        assert_eq!(file_length(&file), Ok(0));
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(file_length(&file), Ok(3));
        assert!(matches!(file_length(&file.join("within")), Err(StoreError::Unavailable(_))));
    }

    #[test]
    fn a_full_disk_has_its_own_error() {
        let error = |kind: std::io::ErrorKind| file_error("write", Path::new("file"), &kind.into());
        assert_eq!(error(std::io::ErrorKind::StorageFull), StoreError::Full);
        assert_eq!(
            error(std::io::ErrorKind::PermissionDenied),
            StoreError::unavailable("cannot write file: permission denied")
        );
    }
}
