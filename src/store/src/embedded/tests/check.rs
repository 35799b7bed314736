//! Checking whether a node would open a store.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;

use super::{EmbeddedTestStore, open, options, test_store};
use crate::conformance::fixture::{client_with, open_and_complete};
use crate::embedded::database::check;
use crate::installation::test_ownership;
use crate::vault::test_vault;
use crate::{OpenError, Ownership, StoreError, Upgrading};

/// Checks the store in a directory under the keys of these tests.
pub(super) fn may_open(directory: &Path, ownership: &Ownership) -> Result<(), OpenError> {
    check::may_open(directory, Some(&test_vault(&[7])), ownership, Upgrading::default())
}

fn file_names(directory: &Path) -> BTreeSet<OsString> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Returns a store with a log that is not checkpointed.
async fn store_with_log() -> EmbeddedTestStore {
    let test = test_store();
    let client = client_with(&test, 100).await;
    for _ in 0..100 {
        open_and_complete(&test, &client).await;
    }
    test
}

/// Copies the files of an open store, as a kill after the first page of a checkpoint leaves them.
fn copy_during_checkpoint(from: &EmbeddedTestStore, to: &Path) {
    let store = from.directory.path().join("store");
    for name in file_names(&store) {
        fs::copy(store.join(&name), to.join(&name)).unwrap();
    }
    from.store.close();
    let (page, mut file) = (fs::read(store.join("sakshi.db")).unwrap(), fs::read(to.join("sakshi.db")).unwrap());
    file[..4_096].copy_from_slice(&page[..4_096]);
    fs::write(to.join("sakshi.db"), file).unwrap();
}

#[tokio::test]
async fn a_partly_copied_log_is_accepted_with_and_without_its_index() {
    let directory = tempfile::tempdir().unwrap();
    copy_during_checkpoint(&store_with_log().await, directory.path());
    let alone = tempfile::tempdir().unwrap();
    fs::copy(directory.path().join("sakshi.db"), alone.path().join("sakshi.db")).unwrap();
    let refused = may_open(alone.path(), &test_ownership());
    assert!(
        matches!(refused, Err(OpenError::Refused(StoreError::Corrupt(_)))),
        "without its log the file is torn: {refused:?}"
    );

    let before = file_names(directory.path());
    let files = || before.iter().map(|name| fs::read(directory.path().join(name)).unwrap()).collect::<Vec<_>>();
    let bytes = files();
    assert_eq!(may_open(directory.path(), &test_ownership()), Ok(()));
    assert!(file_names(directory.path()) == before && files() == bytes, "nothing is written");
    fs::remove_file(directory.path().join("sakshi.db-shm")).unwrap();
    assert_eq!(may_open(directory.path(), &test_ownership()), Ok(()));
}

#[tokio::test]
async fn a_store_is_checked_while_a_node_writes() {
    let test = Arc::new(store_with_log().await);
    let (directory, busy) = (test.directory.path().join("store"), Arc::new(AtomicBool::new(true)));
    let checks = {
        let (directory, busy) = (directory.clone(), Arc::clone(&busy));
        tokio::task::spawn_blocking(move || {
            let before = file_names(&directory);
            let results: Vec<_> = (0..200).map(|_| may_open(&directory, &test_ownership())).collect();
            busy.store(false, Ordering::Relaxed);
            (before == file_names(&directory), results)
        })
    };
    let client = client_with(&*test, 1_000_000).await;
    while busy.load(Ordering::Relaxed) {
        open_and_complete(&*test, &client).await;
        test.store.sqlite().empty_log().await.unwrap();
    }
    let (is_same, results) = checks.await.unwrap();
    assert!(is_same);
    assert_eq!(results, vec![Ok(()); 200]);
}

#[tokio::test]
async fn checking_and_opening_refuse_with_the_same_error() {
    let test = store_with_log().await;
    let directory = test.directory.path().join("store");
    test.store.close();
    assert_eq!(may_open(&directory, &test_ownership()), Ok(()));
    let wrong = check::may_open(&directory, Some(&test_vault(&[9])), &test_ownership(), Upgrading::default());
    assert_eq!(wrong, Err(OpenError::Refused(StoreError::WrongKey)));

    let assert_refused = || {
        let refusal = open(test.directory.path()).unwrap_err();
        assert_eq!(may_open(&directory, &test_ownership()), Err(OpenError::Refused(refusal)));
    };
    let file = directory.join("sakshi.db");
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 1_000).unwrap();
    assert_refused();
    fs::write(&file, "something else that is no database").unwrap();
    assert_refused();
    fs::write(&file, "").unwrap();
    assert_refused();
    fs::remove_file(&file).unwrap();
    assert_refused();
}

#[tokio::test]
async fn an_inaccessible_store_is_reported_as_unreadable() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let inaccessible = may_open(&file.path().join("store"), &test_ownership());
    assert!(matches!(inaccessible, Err(OpenError::Unreadable(StoreError::Unavailable(_)))), "{inaccessible:?}");
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(may_open(&options(empty.path(), Arc::clone(&test_store().clock)).directory, &test_ownership()), Ok(()));
}
