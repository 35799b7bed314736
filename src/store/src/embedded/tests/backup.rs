//! Backups that are made of a store's file and put in place of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sakshi_domain::clock::Clock;

use super::{EmbeddedTestStore, open, test_store};
use crate::Credits as _;
use crate::StoreError;
use crate::conformance::fixture::client_with;
use crate::embedded::backup::{BackupContents, QueuedWebhooks, SUM, backup, restore};
use crate::vault::test_vault;

/// A store that was used and closed, and a backup of it.
async fn backed_up() -> (EmbeddedTestStore, PathBuf) {
    let test = test_store();
    client_with(&test, 5).await;
    test.store.close();
    let file = test.directory.path().join("backup.db");
    backup(&test.directory.path().join("store"), &file, test.clock.clone(), Arc::clone(test.store.vault())).unwrap();
    (test, file)
}

fn restored(test: &EmbeddedTestStore, file: &Path, to: &Path, replace: bool) -> Result<(BackupContents, Option<PathBuf>), StoreError> {
    restore(file, &to.join("store"), (test.clock.clone(), Arc::clone(test.store.vault())), QueuedWebhooks::Drop, replace)
}

#[tokio::test]
async fn an_empty_file_is_no_store_to_back_up_and_none_to_replace() {
    let (test, file) = backed_up().await;
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("store")).unwrap();
    fs::write(other.path().join("store/sakshi.db"), b"").unwrap();
    let refused = backup(&other.path().join("store"), &other.path().join("b.db"), test.clock.clone(), Arc::clone(test.store.vault()));
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.starts_with("there is no store in")));
    assert_eq!(restored(&test, &file, other.path(), false).unwrap().1, None);
    let balances: Vec<_> = open(other.path()).unwrap().audit().await.unwrap().iter().map(|audit| audit.balance).collect();
    assert_eq!(balances, [5]);
}

#[tokio::test]
async fn a_backup_under_other_keys_is_refused() {
    let (test, file) = backed_up().await;
    let other = tempfile::tempdir().unwrap();
    let wrong = (test.clock.clone() as Arc<dyn Clock>, Arc::new(test_vault(&[9])));
    assert_eq!(restore(&file, &other.path().join("store"), wrong, QueuedWebhooks::Drop, false), Err(StoreError::WrongKey));
    assert!(!other.path().join("store").exists());
}

#[tokio::test]
async fn a_store_is_replaced_on_purpose_alone_and_kept_with_its_log() {
    let (test, file) = backed_up().await;
    let directory = test.directory.path().join("store");
    assert!(restored(&test, &file, test.directory.path(), false).is_err());
    fs::write(directory.join("sakshi.db-wal"), "a log").unwrap();
    // Whoever reads the file leaves it there; a node that closes does not.
    fs::remove_file(directory.join("sakshi.db-shm")).unwrap();
    let kept = restored(&test, &file, test.directory.path(), true).unwrap().1.unwrap();
    let seconds = test.clock.now().seconds();
    assert_eq!(kept, directory.join(format!("sakshi.db.before-{seconds}")));
    assert!(kept.exists());
    assert_eq!(fs::read_to_string(directory.join(format!("sakshi.db.before-{seconds}-wal"))).unwrap(), "a log");
    assert!(!directory.join("sakshi.db-wal").exists(), "the log is not that of the backup");
}

#[tokio::test]
async fn a_store_that_cannot_be_kept_is_not_replaced() {
    let (test, file) = backed_up().await;
    let directory = test.directory.path().join("store");
    fs::create_dir(directory.join(format!("sakshi.db.before-{}", test.clock.now().seconds()))).unwrap();
    let before = fs::read(directory.join("sakshi.db")).unwrap();
    let refused = restored(&test, &file, test.directory.path(), true);
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.starts_with("cannot rename")));
    assert!(fs::read(directory.join("sakshi.db")).unwrap() == before);
}

#[tokio::test]
async fn a_backup_without_a_checksum_is_restored_and_one_whose_checksum_cannot_be_read_is_not() {
    let (test, file) = backed_up().await;
    let sum = file.with_extension(format!("db.{SUM}"));
    fs::remove_file(&sum).unwrap();
    let to = tempfile::tempdir().unwrap();
    restored(&test, &file, to.path(), false).unwrap();
    fs::create_dir(&sum).unwrap();
    let to = tempfile::tempdir().unwrap();
    let refused = restored(&test, &file, to.path(), false);
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.starts_with("cannot read")));
    assert!(!to.path().join("store").exists());
}
