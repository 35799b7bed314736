//! [`EmbeddedStore`]: the store of one node, in one SQLite file.

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

/// Location and limits of the store.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The directory of its files. It is created, for its owner alone, if it does not exist.
    pub directory: PathBuf,
    /// Clock that decides expiry.
    pub clock: Arc<dyn Clock>,
    /// Vault that seals personal and secret data.
    pub vault: Arc<Vault>,
    /// Retention of records after their use.
    pub retention: Retention,
    /// Maximum number of waiting writes, and of waiting reads; further ones are refused at once.
    pub max_waiting: usize,
    /// The installation to which the store belongs.
    pub ownership: Ownership,
    /// The schema, and the treatment of a file of an earlier release.
    pub upgrading: Upgrading,
}

/// An upgrade of a file from an earlier release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Schema number before.
    pub from: u32,
    /// Schema number now.
    pub to: u32,
    /// Backup made before the upgrade.
    pub backup: PathBuf,
}

/// Upgrades the file of a store that no node has open; `None` when it is already of this release.
///
/// # Errors
/// Those of [`EmbeddedStore::open`].
pub fn migrate(options: EmbeddedOptions) -> Result<Option<Migrated>, StoreError> {
    let upgrading = Upgrading { at_start: true, ..options.upgrading };
    let store = EmbeddedStore::open(EmbeddedOptions { upgrading, ..options })?;
    store.close();
    Ok(store.migrated().cloned())
}

/// The store in one file. Clones share it; dropping the last one stops its threads.
#[derive(Clone)]
pub struct EmbeddedStore {
    store: Store,
    sqlite: Sqlite,
}

impl EmbeddedStore {
    /// Opens the store, or creates one in an empty directory.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process or handle has it open, [`StoreError::Corrupt`] when its files are
    /// damaged, missing or not a store's, [`StoreError::Full`] when there is no room for them, [`StoreError::WrongKey`]
    /// when they were written under keys that the vault does not have, [`StoreError::OtherInstallation`] when they
    /// belong to another installation, [`StoreError::OtherSchema`] when they are of another release,
    /// [`StoreError::Unavailable`] when they cannot be reached. Nothing is removed or created in any of these cases.
    pub fn open(options: EmbeddedOptions) -> Result<Self, StoreError> {
        Self::open_within(options, None)
    }

    /// Opens the store with at most `max_pages` pages of 4 KiB in the file, as on a small disk.
    pub(crate) fn open_within(options: EmbeddedOptions, max_pages: Option<u32>) -> Result<Self, StoreError> {
        let (vault, retention, schema) = (Arc::clone(&options.vault), options.retention, options.upgrading.schema);
        Ok(Self::over(Sqlite::open(options, max_pages)?, vault, retention, schema))
    }

    /// Opens a store in memory. Each call takes effect on the caller's thread before it returns.
    ///
    /// # Errors
    /// The error of SQLite.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn in_memory(
        clock: Arc<dyn Clock>,
        vault: Arc<Vault>,
        retention: Retention,
        ownership: &Ownership,
    ) -> Result<Self, StoreError> {
        Ok(Self::over(Sqlite::in_memory(clock, &vault, ownership)?, vault, retention, &SCHEMA))
    }

    fn over(sqlite: Sqlite, vault: Arc<Vault>, retention: Retention, schema: &Schema) -> Self {
        let engine = Box::new(EmbeddedEngine::new(sqlite.clone(), schema.tables));
        Self { store: Store::new(engine, vault, retention, NodeId::ALONE, None), sqlite }
    }

    /// Returns the upgrade made by opening, if the file was of an earlier release.
    #[must_use]
    pub fn migrated(&self) -> Option<&Migrated> {
        self.sqlite.migrated()
    }

    /// Finishes queued calls, refuses later ones, and ends the threads. Blocks until the files are closed; safe to call
    /// twice.
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
