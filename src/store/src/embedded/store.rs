//! [`EmbeddedStore`]: the store of a single node in one SQLite file.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use sakshi_domain::clock::Clock;

use super::sqlite::Sqlite;
#[cfg(any(test, feature = "fuzzing"))]
use crate::SCHEMA;
use crate::engine::embedded::EmbeddedEngine;
use crate::error::StoreError;
use crate::operations::Store;
use crate::redis::NodeId;
use crate::upkeep::Retention;
use crate::vault::Vault;
use crate::{Ownership, Schema, Upgrading};

/// The settings of a store in a file.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Directory of the files. A missing directory is created with access for its owner only.
    pub directory: PathBuf,
    /// Clock that decides expiry.
    pub clock: Arc<dyn Clock>,
    /// Vault that seals personal and secret data.
    pub vault: Arc<Vault>,
    /// Retention of records.
    pub retention: Retention,
    /// Maximum number of waiting writes, and of waiting reads; further calls are refused immediately.
    pub max_waiting: usize,
    /// The installation that owns the store.
    pub ownership: Ownership,
    /// The schema, and the treatment of a file of an earlier release.
    pub upgrading: Upgrading,
}

/// The upgrade of a file from the schema of an earlier release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Schema number before.
    pub from: u32,
    /// Schema number now.
    pub to: u32,
    /// Backup made before the upgrade.
    pub backup: PathBuf,
}

/// Upgrades the file of a store that no node has open; `None` if it is of this release already.
///
/// # Errors
/// As [`EmbeddedStore::open`].
pub fn migrate(options: EmbeddedOptions) -> Result<Option<Migration>, StoreError> {
    let upgrading = Upgrading { at_start: true, ..options.upgrading };
    let store = EmbeddedStore::open(EmbeddedOptions { upgrading, ..options })?;
    store.close();
    Ok(store.migration().cloned())
}

/// A store in one file. Clones share it; dropping the last clone stops its threads.
#[derive(Clone)]
pub struct EmbeddedStore {
    store: Store,
    sqlite: Sqlite,
}

impl EmbeddedStore {
    /// Opens the store, or creates a store in an empty directory.
    ///
    /// # Errors
    /// Nothing is removed or created after an error:
    ///
    /// - [`StoreError::InUse`] if another process or handle has the store open
    /// - [`StoreError::Corrupt`] if files are damaged, missing or not of a store
    /// - [`StoreError::Full`] if the disk is full
    /// - [`StoreError::WrongKey`] if the store was written under keys that the vault does not have
    /// - [`StoreError::OtherInstallation`] if the store belongs to another installation
    /// - [`StoreError::OtherSchema`] if the store is of another release
    /// - [`StoreError::Unavailable`] if the files cannot be accessed
    pub fn open(options: EmbeddedOptions) -> Result<Self, StoreError> {
        Self::open_within(options, None)
    }

    /// Opens the store with at most `max_pages` pages of 4 KiB in the file, to simulate a small disk.
    pub(crate) fn open_within(options: EmbeddedOptions, max_pages: Option<u32>) -> Result<Self, StoreError> {
        let (vault, retention, schema) = (Arc::clone(&options.vault), options.retention, options.upgrading.schema);
        Ok(Self::from_sqlite(Sqlite::open(options, max_pages)?, vault, retention, schema))
    }

    /// Opens a store in memory. Each call takes effect on the caller's thread before it returns.
    ///
    /// # Errors
    /// Any error of SQLite.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn in_memory(
        clock: Arc<dyn Clock>,
        vault: Arc<Vault>,
        retention: Retention,
        ownership: &Ownership,
    ) -> Result<Self, StoreError> {
        Ok(Self::from_sqlite(Sqlite::in_memory(clock, &vault, ownership)?, vault, retention, &SCHEMA))
    }

    /// Builds the operations on an open file.
    fn from_sqlite(sqlite: Sqlite, vault: Arc<Vault>, retention: Retention, schema: &Schema) -> Self {
        let engine = Box::new(EmbeddedEngine::new(sqlite.clone(), schema.tables));
        Self { store: Store::new(engine, vault, retention, NodeId::ALONE, None), sqlite }
    }

    /// Returns the upgrade that opening the store made, if the file was of an earlier release.
    #[must_use]
    pub fn migration(&self) -> Option<&Migration> {
        self.sqlite.migration()
    }

    /// Finishes queued calls, refuses further calls, and ends the threads. Blocks until the files are closed; safe to
    /// call twice.
    pub fn close(&self) {
        self.sqlite.close();
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) const fn sqlite(&self) -> &Sqlite {
        &self.sqlite
    }
}

impl Deref for EmbeddedStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedStore")
    }
}
