//! Opening a store under right and wrong keys.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use super::check::may_open;
use super::{open_when_free, options, test_store};
use crate::conformance::TestStore;
use crate::conformance::fixture::{build_opening, client_with, open_and_complete};
use crate::embedded::{EmbeddedStore, exists};
use crate::installation::test_ownership;
use crate::vault::test_vault;
use crate::{OpenError, StoreError};

/// Opens the store with test keys, each identified by a number. The first key seals; all of them open.
fn open(directory: &Path, keys: &[u8]) -> Result<EmbeddedStore, StoreError> {
    let mut options = options(directory, Arc::new(sakshi_domain::clock::ManualClock::starting_at(super::START)));
    options.vault = Arc::new(test_vault(keys));
    open_when_free(&options)
}

#[tokio::test]
async fn a_store_is_refused_unchanged_under_keys_that_did_not_write_it() {
    let test = test_store();
    let client = client_with(&test, 5).await;
    let (pending, _) = open_and_complete(&test, &client).await;
    test.store.close();
    let directory = test.directory.path();
    let file = || std::fs::read(directory.join("store/sakshi.db")).unwrap();
    let before = file();
    for keys in [&[8][..], &[8, 9]] {
        assert_eq!(open(directory, keys).unwrap_err(), StoreError::WrongKey);
    }
    assert!(file() == before);
    let store = open(directory, &[7]).unwrap();
    assert!(store.load_transaction(pending.id).await.unwrap().is_some());
}

#[tokio::test]
async fn an_empty_store_is_refused_under_another_key() {
    let test = test_store();
    test.store.close();
    assert_eq!(open(test.directory.path(), &[8]).unwrap_err(), StoreError::WrongKey);
    assert!(StoreError::WrongKey.to_string().contains("store.encryption_key"));
}

#[tokio::test]
async fn a_new_key_works_beside_the_old_one() {
    let test = test_store();
    let client = client_with(&test, 5).await;
    let (old, _) = open_and_complete(&test, &client).await;
    test.store.close();
    let directory = test.directory.path();
    let store = open(directory, &[8, 7]).unwrap();
    let new = build_opening(&test, &client);
    let id = new.pending.id;
    store.open_transaction(new).await.unwrap();
    assert!(store.load_transaction(old.id).await.unwrap().is_some());
    store.close();
    assert_eq!(open(directory, &[7]).unwrap_err(), StoreError::WrongKey, "the newest records would be unreadable");
    let store = open(directory, &[9, 8, 7]).unwrap();
    assert!(store.load_transaction(old.id).await.unwrap().is_some());
    assert!(store.load_transaction(id).await.unwrap().is_some());
    store.close();
    // Without the old keys only the values under these keys are unreadable.
    let store = open(directory, &[9]).unwrap();
    assert!(matches!(store.load_transaction(old.id).await, Err(StoreError::Corrupt(_))));
    assert!(store.balance(client).await.unwrap().is_some());
    assert!(test.now() >= super::START);
}

#[tokio::test]
async fn a_store_without_a_canary_is_refused_unchanged_under_any_key() {
    let test = test_store();
    let client = client_with(&test, 5).await;
    open_and_complete(&test, &client).await;
    test.store.close();
    let path = test.directory.path().join("store/sakshi.db");
    Connection::open(&path).unwrap().execute("DELETE FROM canary", []).unwrap();
    let before = std::fs::read(&path).unwrap();
    for keys in [&[7][..], &[8], &[8, 7]] {
        assert_eq!(open(test.directory.path(), keys).unwrap_err(), StoreError::unreadable("the canary"));
    }
    let inspected = may_open(&test.directory.path().join("store"), &test_ownership());
    assert_eq!(inspected, Err(OpenError::Refused(StoreError::unreadable("the canary"))));
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn a_directory_holds_a_store_after_the_first_opening() {
    let directory = tempfile::tempdir().unwrap();
    assert!(!exists(&directory.path().join("store")));
    open(directory.path(), &[7]).unwrap();
    assert!(exists(&directory.path().join("store")));
}
