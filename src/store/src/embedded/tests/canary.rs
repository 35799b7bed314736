//! A store and the keys that it was written under.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use zeroize::Zeroizing;

use super::{open_when_free, options, test_store};
use crate::StoreError;
use crate::Vault;
use crate::conformance::TestStore;
use crate::conformance::fixture::{app, client_with, completed, created, event, opening};
use crate::embedded::{EmbeddedStore, exists};
use crate::{Credits as _, Tenancy as _, Transactions as _};

fn open(directory: &Path, keys: &[u8]) -> Result<EmbeddedStore, StoreError> {
    let mut options = options(directory, Arc::new(sakshi_domain::clock::ManualClock::starting_at(super::START)));
    let keys: Vec<_> = keys.iter().map(|byte| Zeroizing::new(vec![*byte; 32])).collect();
    options.vault = Arc::new(Vault::new(&keys).unwrap());
    open_when_free(&options)
}

fn version(directory: &Path) -> i64 {
    let file = Connection::open(directory.join("store/sakshi.db")).unwrap();
    file.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Makes the file one of version 2, which has no canary.
pub(super) fn set_back(directory: &Path) {
    let file = Connection::open(directory.join("store/sakshi.db")).unwrap();
    file.execute_batch(include_str!("version_2.sql")).unwrap();
    file.pragma_update(None, "user_version", 2).unwrap();
}

#[tokio::test]
async fn a_store_is_refused_under_keys_that_did_not_write_it_and_nothing_changes() {
    let test = test_store();
    let client = client_with(&test, 5).await;
    let (pending, _) = completed(&test, &client).await;
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
async fn even_a_store_without_a_record_is_refused_under_another_key() {
    let test = test_store();
    test.store.close();
    assert_eq!(open(test.directory.path(), &[8]).unwrap_err(), StoreError::WrongKey);
    assert!(StoreError::WrongKey.to_string().contains("store.encryption_key"));
}

#[tokio::test]
async fn keys_are_changed_by_keeping_the_old_one_beside_the_new_one() {
    let test = test_store();
    let client = client_with(&test, 5).await;
    let (old, _) = completed(&test, &client).await;
    test.store.close();
    let directory = test.directory.path();
    let store = open(directory, &[8, 7]).unwrap();
    let new = opening(&test, &client);
    let id = new.pending.id;
    store.open_transaction(new).await.unwrap();
    assert!(store.load_transaction(old.id).await.unwrap().is_some());
    store.close();
    assert_eq!(open(directory, &[7]).unwrap_err(), StoreError::WrongKey, "the newest records would be unreadable");
    let store = open(directory, &[9, 8, 7]).unwrap();
    assert!(store.load_transaction(old.id).await.unwrap().is_some());
    assert!(store.load_transaction(id).await.unwrap().is_some());
    store.close();
    // Without the old keys only what they sealed is lost.
    let store = open(directory, &[9]).unwrap();
    assert!(matches!(store.load_transaction(old.id).await, Err(StoreError::Corrupt(_))));
    assert!(store.balance(client).await.unwrap().is_some());
    assert!(test.now() >= super::START);
}

#[tokio::test]
async fn a_store_from_before_the_canary_is_known_by_any_record_that_it_holds() {
    for kind in ["transaction", "event", "app", "none"] {
        let test = test_store();
        let client = client_with(&test, 5).await;
        match kind {
            "transaction" => drop(test.store.open_transaction(opening(&test, &client)).await.unwrap()),
            "event" => drop(created(&test, event(&test, &client, 5)).await),
            "app" => assert!(test.store.create_app(app(&test, &client)).await.unwrap()),
            _ => {}
        }
        test.store.close();
        let directory = test.directory.path();
        set_back(directory);
        if kind != "none" {
            assert_eq!(open(directory, &[8]).unwrap_err(), StoreError::WrongKey, "{kind}");
            assert_eq!(version(directory), 2, "a refused file is not migrated");
        }
        open(directory, &[7]).unwrap().close();
        assert_eq!(version(directory), 17);
        assert_eq!(open(directory, &[8]).unwrap_err(), StoreError::WrongKey, "{kind}: it has a canary now");
    }
}

#[test]
fn a_directory_holds_a_store_from_its_first_opening_on() {
    let directory = tempfile::tempdir().unwrap();
    assert!(!exists(&directory.path().join("store")));
    open(directory.path(), &[7]).unwrap();
    assert!(exists(&directory.path().join("store")));
}
