//! The embedded store under the properties of every store, and under what can happen to a file,
//! a disk and a process.

mod canary;
mod clock;
mod compiled;
mod damage;
mod durability;
mod faults;
mod files;
mod migration;
mod models;
mod plans;
mod retention;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock, ManualClock};
use sakshi_domain::time::Timestamp;
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::{EmbeddedOptions, EmbeddedStore};
use crate::Store;
use crate::StoreError;
use crate::Vault;
use crate::conformance::World;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// A store in a directory of its own, on a clock that the test moves.
struct Universe {
    store: EmbeddedStore,
    clock: Arc<ManualClock>,
    directory: TempDir,
}

fn options(directory: &Path, clock: Arc<ManualClock>) -> EmbeddedOptions {
    let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap());
    EmbeddedOptions { directory: directory.join("store"), clock, vault, max_waiting: 4_096, max_pages: None }
}

fn open(directory: &Path) -> Result<EmbeddedStore, StoreError> {
    EmbeddedStore::open(options(directory, Arc::new(ManualClock::starting_at(START))))
}

fn universe() -> Universe {
    universe_with(|_| {})
}

fn universe_with(change: impl FnOnce(&mut EmbeddedOptions)) -> Universe {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::starting_at(START));
    let mut options = options(directory.path(), Arc::clone(&clock));
    change(&mut options);
    Universe { store: EmbeddedStore::open(options).unwrap(), clock, directory }
}

impl World for Universe {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

mod conformance {
    use super::universe;

    crate::store_conformance!(universe());
}
