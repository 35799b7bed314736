//! An embedded store in a temporary directory, for tests.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::Clock;
use sakshi_domain::profile::Profile;
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{Ownership, Retention, Upgrading, Vault};
use tempfile::TempDir;

/// The retention of every test store.
pub(crate) const RETENTION: Retention = Retention {
    expired: Duration::from_secs(3_600),
    events: Duration::from_secs(3_600),
    consents: Duration::from_secs(3_600),
};

/// Opens a store, which lasts as long as the directory.
pub(crate) fn store(clock: Arc<dyn Clock>) -> (TempDir, EmbeddedStore) {
    let directory = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        directory: directory.path().join("store"),
        clock,
        vault: Arc::new(Vault::new(&[vec![7; 32].into()]).unwrap()),
        retention: RETENTION,
        max_waiting: 64,
        ownership: Ownership::new(Profile::Sandbox, "https://issuer.test"),
        upgrading: Upgrading::default(),
    };
    (directory, EmbeddedStore::open(options).unwrap())
}
