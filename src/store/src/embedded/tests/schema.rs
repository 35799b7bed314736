//! Files with another schema number: migrated from an earlier release, after a backup; otherwise refused with a message
//! and left unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use sakshi_domain::ids::ClientId;

use super::{EmbeddedTestStore, open, open_when_free, options, test_store, vault};
use crate::conformance::fixture::{client_with, completed};
use crate::conformance::next_schema::{self, is_walked_up};
use crate::embedded::backup::{QueuedWebhooks, backup, inspect, restore, restore_as};
use crate::embedded::database::check;
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::engine::embedded::EmbeddedEngine;
use crate::installation::test_ownership;
use crate::{FIRST, OpenError, SCHEMA, StoreError, Upgrading};

/// Returns a store of this release that was used and closed, and its client.
async fn used() -> (EmbeddedTestStore, ClientId) {
    let test = test_store();
    let client = client_with(&test, 5).await;
    completed(&test, &client).await;
    test.store.close();
    (test, client)
}

fn file(test: &EmbeddedTestStore) -> PathBuf {
    test.directory.path().join("store/sakshi.db")
}

fn user_version(file: &Path) -> u32 {
    Connection::open(file).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

fn set_user_version(file: &Path, number: u32) {
    Connection::open(file).unwrap().pragma_update(None, "user_version", number).unwrap();
}

/// Returns the options of the next release.
fn next(test: &EmbeddedTestStore, at_start: bool) -> EmbeddedOptions {
    let upgrading = Upgrading { schema: next_schema::next(), at_start };
    EmbeddedOptions { upgrading, ..options(test.directory.path(), Arc::clone(&test.clock)) }
}

/// Returns the refusal of opening a store, which inspecting it gives as well. The file stays byte for byte.
fn refusal(test: &EmbeddedTestStore, options: &EmbeddedOptions) -> String {
    let before = fs::read(file(test)).unwrap();
    let refused = open_when_free(options).unwrap_err();
    let looked = check::may_open(&options.directory, Some(&vault()), &test_ownership(), options.upgrading);
    assert_eq!(looked, Err(OpenError::Refused(refused.clone())));
    assert!(matches!(refused, StoreError::OtherSchema(_)), "{refused}");
    assert!(fs::read(file(test)).unwrap() == before, "{refused}");
    refused.to_string()
}

/// Returns the backups in a store's directory.
fn backups(test: &EmbeddedTestStore) -> Vec<PathBuf> {
    let files = fs::read_dir(test.directory.path().join("store")).unwrap().map(|entry| entry.unwrap().path());
    let is_backup =
        |path: &PathBuf| path.to_str().unwrap().contains(".schema-") && path.extension().unwrap() != "sha256";
    files.filter(is_backup).collect()
}

fn engine(store: &EmbeddedStore) -> EmbeddedEngine {
    EmbeddedEngine::new(store.sqlite().clone(), next_schema::next().tables)
}

#[tokio::test]
async fn a_file_of_no_release_or_of_a_newer_one_is_refused_in_a_sentence() {
    let (test, client) = used().await;
    let own = options(test.directory.path(), Arc::clone(&test.clock));
    for (found, sentence) in [
        (0, "from before the first release"),
        (FIRST - 1, "from before the first release"),
        (SCHEMA.number() + 1, "of a newer release"),
        (1_000, "the store has schema 1000 of a newer release"),
    ] {
        set_user_version(&file(&test), found);
        let refused = refusal(&test, &own);
        assert!(refused.contains(sentence), "{refused}");
    }
    set_user_version(&file(&test), SCHEMA.number());
    assert_eq!(open(test.directory.path()).unwrap().balance(client).await, Ok(Some(4)));
}

#[tokio::test]
async fn the_next_release_walks_a_file_up_after_a_backup_that_goes_back() {
    let (test, client) = used().await;
    let before = refusal(&test, &next(&test, false));
    assert!(before.contains("sakshi migrate") && before.contains("store.upgrade_at_start"), "{before}");
    assert_eq!(backups(&test), Vec::<PathBuf>::new());

    let upgraded = open_when_free(&next(&test, true)).unwrap();
    is_walked_up(&engine(&upgraded), &client).await;
    assert_eq!(upgraded.balance(client.clone()).await, Ok(Some(4)));
    upgraded.close();
    assert_eq!(user_version(&file(&test)), next_schema::next().number());
    let again = open_when_free(&next(&test, true)).unwrap();
    is_walked_up(&engine(&again), &client).await;
    again.close();
    let [kept] = &backups(&test)[..] else { panic!("{:?}", backups(&test)) };

    // The release before refuses it, and can be restored with the backup.
    let own = options(test.directory.path(), Arc::clone(&test.clock));
    assert!(refusal(&test, &own).contains("of a newer release"));
    let with = (test.clock.clone() as _, vault());
    restore(kept, &own.directory, with, Some(&test_ownership()), QueuedWebhooks::Drop, true).unwrap();
    assert_eq!(open_when_free(&own).unwrap().balance(client).await, Ok(Some(4)));
}

#[tokio::test]
async fn a_walk_that_fails_changes_nothing_of_the_file() {
    let (test, client) = used().await;
    let failing = Upgrading { schema: next_schema::failing(), at_start: true };
    let refused = open_when_free(&EmbeddedOptions { upgrading: failing, ..next(&test, true) }).unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused}");
    let columns = |table: &str| {
        let count = format!("SELECT count(*) FROM pragma_table_info('{table}') WHERE name IN ('tier', 'words')");
        Connection::open(file(&test)).unwrap().query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(
        (user_version(&file(&test)), columns("client_record"), columns("motto_record")),
        (SCHEMA.number(), 0, 0)
    );
    assert_eq!(open(test.directory.path()).unwrap().balance(client).await, Ok(Some(4)));
}

#[tokio::test]
async fn a_file_under_other_keys_is_neither_copied_nor_walked_up() {
    let (test, _) = used().await;
    let other = EmbeddedOptions { vault: Arc::new(crate::vault::test_vault(&[9])), ..next(&test, true) };
    assert_eq!(open_when_free(&other).unwrap_err(), StoreError::WrongKey);
    assert_eq!((backups(&test), user_version(&file(&test))), (vec![], SCHEMA.number()));
}

#[tokio::test]
async fn a_backup_of_another_release_is_walked_up_or_refused_when_it_is_restored() {
    let (test, client) = used().await;
    let (kept, to) = (test.directory.path().join("kept.db"), tempfile::tempdir().unwrap());
    backup(&test.directory.path().join("store"), &kept, test.clock.clone(), &vault()).unwrap();
    let with = || (test.clock.clone() as _, vault());
    let directory = to.path().join("store");
    let restored =
        |schema| restore_as(schema, &kept, &directory, with(), Some(&test_ownership()), QueuedWebhooks::Drop, false);
    restored(next_schema::next()).unwrap();
    assert_eq!(user_version(&directory.join("sakshi.db")), next_schema::next().number());
    let upgraded = open_when_free(&EmbeddedOptions { directory: directory.clone(), ..next(&test, false) }).unwrap();
    is_walked_up(&engine(&upgraded), &client).await;
    upgraded.close();

    // As a backup it is of a newer release than this one.
    let (newer, other) = (directory.join("sakshi.db"), to.path().join("other"));
    let refused = restore(&newer, &other, with(), None, QueuedWebhooks::Drop, false).unwrap_err();
    assert!(matches!(&refused, StoreError::OtherSchema(why) if why.contains("newer release")), "{refused}");
    assert!(!other.exists());
    for refused in
        [inspect(&newer, test.clock.clone(), &vault(), None), backup(&directory, &other, test.clock.clone(), &vault())]
    {
        assert!(matches!(&refused, Err(StoreError::OtherSchema(_))), "{refused:?}");
    }
    assert!(!other.exists());
}
