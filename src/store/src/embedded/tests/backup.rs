//! Backups that are made of a store's file and put in place of one.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use sakshi_domain::clock::Clock;

use super::{EmbeddedTestStore, open, test_store};
use crate::conformance::fixture::client_with;
use crate::embedded::backup::{BackupContents, QueuedWebhooks, SUM, backup, restore};
use crate::installation::test_ownership;
use crate::vault::test_vault;
use crate::{Credits as _, Ownership, StoreError, Vault};

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
    restore(file, &to.join("store"), with(test), Some(&test_ownership()), QueuedWebhooks::Drop, replace)
}

fn with(test: &EmbeddedTestStore) -> (Arc<dyn Clock>, Arc<Vault>) {
    (test.clock.clone(), Arc::clone(test.store.vault()))
}

/// Bytes, without the checksum beside them.
fn change(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
    let _ = fs::remove_file(file.with_extension(format!("db.{SUM}")));
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
    assert_eq!(restore(&file, &other.path().join("store"), wrong, None, QueuedWebhooks::Drop, false), Err(StoreError::WrongKey));
    assert!(!other.path().join("store").exists());
}

#[tokio::test]
async fn what_a_node_would_not_open_is_neither_backed_up_nor_restored() {
    let (test, file) = backed_up().await;
    let (store, to) = (test.directory.path().join("store"), tempfile::tempdir().unwrap());
    let other = Ownership { owner: "stage https://one.example".parse().unwrap(), takes_over: None };
    let refused = restore(&file, &to.path().join("store"), with(&test), Some(&other), QueuedWebhooks::Drop, false);
    assert!(matches!(refused, Err(StoreError::OtherInstallation { .. })), "{refused:?}");

    const NEWER: &str = "PRAGMA user_version = 1000";
    change(&file, NEWER);
    change(&store.join("sakshi.db"), NEWER);
    let refusal = open(test.directory.path()).unwrap_err();
    assert!(refusal.to_string().contains("schema 1000"), "{refusal}");
    assert_eq!(restored(&test, &file, to.path(), false), Err(refusal.clone()));
    assert!(!to.path().join("store").exists());
    let again = test.directory.path().join("again.db");
    let (clock, vault) = with(&test);
    assert_eq!(backup(&store, &again, clock, vault), Err(refusal));
}

#[tokio::test]
async fn a_backup_that_cannot_be_finished_leaves_no_file() {
    let (test, _) = backed_up().await;
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("b.db");
    fs::create_dir(file.with_extension(format!("db.{SUM}"))).unwrap();
    let (clock, vault) = with(&test);
    assert!(backup(&test.directory.path().join("store"), &file, clock, vault).is_err());
    let left: Vec<_> = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["b.db.sha256"], "the directory that was in the way");
}

#[tokio::test]
async fn what_root_restores_belongs_to_the_owner_of_the_directory() {
    let (test, file) = backed_up().await;
    let parent = tempfile::tempdir().unwrap();
    if parent.path().metadata().unwrap().uid() != 0 {
        return;
    }
    // As in a state directory of systemd.
    let (user, group) = (12_345, 12_346);
    chown(parent.path(), Some(user), Some(group)).unwrap();
    let deep = parent.path().join("new/deeper");
    for replace in [false, true] {
        restored(&test, &file, &deep, replace).unwrap();
        // What an earlier program left there is mended.
        chown(deep.join("store/sakshi.lock"), Some(0), Some(0)).unwrap();
    }
    restored(&test, &file, &deep, true).unwrap();
    let mut places = vec![parent.path().join("new"), deep.clone(), deep.join("store")];
    places.extend(fs::read_dir(deep.join("store")).unwrap().map(|entry| entry.unwrap().path()));
    assert!(places.len() >= 6, "a store, the one before it and the lock: {places:?}");
    for place in places {
        let found = place.metadata().unwrap();
        assert_eq!((found.uid(), found.gid()), (user, group), "{}", place.display());
    }
}

#[tokio::test]
async fn a_link_in_the_directory_gives_no_file_away() {
    let (test, file) = backed_up().await;
    let (parent, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    if parent.path().metadata().unwrap().uid() != 0 {
        return;
    }
    let store = parent.path().join("store");
    fs::create_dir(&store).unwrap();
    chown(&store, Some(12_345), Some(12_345)).unwrap();
    symlink(elsewhere.path(), store.join("sakshi.lock")).unwrap();
    restored(&test, &file, parent.path(), false).unwrap();
    assert_eq!(elsewhere.path().metadata().unwrap().uid(), 0);
}

#[tokio::test]
async fn a_log_whose_file_is_gone_is_not_applied_to_a_backup() {
    let (test, file) = backed_up().await;
    let to = tempfile::tempdir().unwrap();
    fs::create_dir(to.path().join("store")).unwrap();
    fs::write(to.path().join("store/sakshi.db-wal"), "a log").unwrap();
    assert!(restored(&test, &file, to.path(), false).is_err());
    restored(&test, &file, to.path(), true).unwrap();
    assert!(!to.path().join("store/sakshi.db-wal").exists());
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
