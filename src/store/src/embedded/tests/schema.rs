//! Files with another schema number. A file of an earlier release is migrated after a backup; any other is refused
//! unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use sakshi_domain::ids::ClientId;

use super::{EmbeddedTestStore, open, open_when_free, options, test_store, vault};
use crate::conformance::fixture::{client_with, open_and_complete};
use crate::conformance::next_schema::{self, assert_migrated};
use crate::embedded::backup::{ExistingStore, QueuedWebhooks, backup, inspect, restore, restore_as};
use crate::embedded::database::check;
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::engine::embedded::EmbeddedEngine;
use crate::installation::test_ownership;
use crate::{FIRST, OpenError, SCHEMA, StoreError, Upgrading};

/// Returns a closed store of this release with records, and its client.
async fn closed_store() -> (EmbeddedTestStore, ClientId) {
    let test = test_store();
    let client = client_with(&test, 5).await;
    open_and_complete(&test, &client).await;
    test.store.close();
    (test, client)
}

/// Returns the path of the database file.
fn file(test: &EmbeddedTestStore) -> PathBuf {
    test.directory.path().join("store/sakshi.db")
}

/// Returns the schema number in a file.
fn user_version(file: &Path) -> u32 {
    Connection::open(file).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

fn set_user_version(file: &Path, number: u32) {
    Connection::open(file).unwrap().pragma_update(None, "user_version", number).unwrap();
}

/// Returns the options of a node of the next release that refuses an earlier file.
fn next_release_without_migration(test: &EmbeddedTestStore) -> EmbeddedOptions {
    let upgrading = Upgrading { schema: next_schema::next(), at_start: false };
    EmbeddedOptions { upgrading, ..next_release(test) }
}

/// Returns the options of a node of the next release that migrates an earlier file at its start.
fn next_release(test: &EmbeddedTestStore) -> EmbeddedOptions {
    let upgrading = Upgrading { schema: next_schema::next(), at_start: true };
    EmbeddedOptions { upgrading, ..options(test.directory.path(), Arc::clone(&test.clock)) }
}

/// Asserts that opening and checking a store refuse it with the same error and leave the file unchanged. Returns the
/// message.
fn assert_refused(test: &EmbeddedTestStore, options: &EmbeddedOptions) -> String {
    let before = fs::read(file(test)).unwrap();
    let refused = open_when_free(options).unwrap_err();
    let checked = check::may_open(&options.directory, Some(&vault()), &test_ownership(), options.upgrading);
    assert_eq!(checked, Err(OpenError::Refused(refused.clone())));
    assert!(matches!(refused, StoreError::OtherSchema(_)), "{refused}");
    assert!(fs::read(file(test)).unwrap() == before, "{refused}");
    refused.to_string()
}

/// Returns the paths of the backups in a store's directory.
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
async fn a_file_of_no_release_or_of_a_newer_one_is_refused_with_a_clear_message() {
    let (test, client) = closed_store().await;
    let this_release = options(test.directory.path(), Arc::clone(&test.clock));
    for (number, message) in [
        (0, "from before the first release"),
        (FIRST - 1, "from before the first release"),
        (SCHEMA.number() + 1, "of a newer release"),
        (1_000, "the store has schema 1000 of a newer release"),
    ] {
        set_user_version(&file(&test), number);
        let refused = assert_refused(&test, &this_release);
        assert!(refused.contains(message), "{refused}");
    }
    set_user_version(&file(&test), SCHEMA.number());
    assert_eq!(open(test.directory.path()).unwrap().balance(client).await, Ok(Some(4)));
}

#[tokio::test]
async fn the_next_release_migrates_a_file_after_a_backup_that_can_be_restored() {
    let (test, client) = closed_store().await;
    let refused = assert_refused(&test, &next_release_without_migration(&test));
    assert!(refused.contains("sakshi migrate") && refused.contains("store.upgrade_at_start"), "{refused}");
    assert_eq!(backups(&test), Vec::<PathBuf>::new());

    let upgraded = open_when_free(&next_release(&test)).unwrap();
    assert_migrated(&engine(&upgraded), &client).await;
    assert_eq!(upgraded.balance(client.clone()).await, Ok(Some(4)));
    upgraded.close();
    assert_eq!(user_version(&file(&test)), next_schema::next().number());
    let reopened = open_when_free(&next_release(&test)).unwrap();
    assert_migrated(&engine(&reopened), &client).await;
    reopened.close();
    let [backup] = &backups(&test)[..] else { panic!("{:?}", backups(&test)) };

    // This release refuses the upgraded store, and opens the restored backup.
    let this_release = options(test.directory.path(), Arc::clone(&test.clock));
    assert!(assert_refused(&test, &this_release).contains("of a newer release"));
    let clock_and_vault = (test.clock.clone() as _, vault());
    restore(
        backup,
        &this_release.directory,
        clock_and_vault,
        Some(&test_ownership()),
        QueuedWebhooks::Drop,
        ExistingStore::Replace,
    )
    .unwrap();
    assert_eq!(open_when_free(&this_release).unwrap().balance(client).await, Ok(Some(4)));
}

#[tokio::test]
async fn a_failed_migration_changes_nothing_in_the_file() {
    let (test, client) = closed_store().await;
    let failing = Upgrading { schema: next_schema::failing(), at_start: true };
    let refused = open_when_free(&EmbeddedOptions { upgrading: failing, ..next_release(&test) }).unwrap_err();
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
async fn a_file_under_other_keys_is_neither_backed_up_nor_migrated() {
    let (test, _) = closed_store().await;
    let other = EmbeddedOptions { vault: Arc::new(crate::vault::test_vault(&[9])), ..next_release(&test) };
    assert_eq!(open_when_free(&other).unwrap_err(), StoreError::WrongKey);
    assert_eq!((backups(&test), user_version(&file(&test))), (vec![], SCHEMA.number()));
}

#[tokio::test]
async fn a_restored_backup_of_another_release_is_migrated_or_refused() {
    let (test, client) = closed_store().await;
    let (backup_file, to) = (test.directory.path().join("backup.db"), tempfile::tempdir().unwrap());
    backup(&test.directory.path().join("store"), &backup_file, test.clock.clone(), &vault()).unwrap();
    let clock_and_vault = || (test.clock.clone() as _, vault());
    let directory = to.path().join("store");
    let ownership = test_ownership();
    let restore_with = |schema| {
        let webhooks = QueuedWebhooks::Drop;
        restore_as(schema, &backup_file, &directory, clock_and_vault(), Some(&ownership), webhooks, ExistingStore::Keep)
    };
    restore_with(next_schema::next()).unwrap();
    assert_eq!(user_version(&directory.join("sakshi.db")), next_schema::next().number());
    let upgraded =
        open_when_free(&EmbeddedOptions { directory: directory.clone(), ..next_release_without_migration(&test) })
            .unwrap();
    assert_migrated(&engine(&upgraded), &client).await;
    upgraded.close();

    // This release refuses a backup of the next release.
    let (newer, other) = (directory.join("sakshi.db"), to.path().join("other"));
    let refused =
        restore(&newer, &other, clock_and_vault(), None, QueuedWebhooks::Drop, ExistingStore::Keep).unwrap_err();
    assert!(matches!(&refused, StoreError::OtherSchema(why) if why.contains("newer release")), "{refused}");
    assert!(!other.exists());
    for refused in
        [inspect(&newer, test.clock.clone(), &vault(), None), backup(&directory, &other, test.clock.clone(), &vault())]
    {
        assert!(matches!(&refused, Err(StoreError::OtherSchema(_))), "{refused:?}");
    }
    assert!(!other.exists());
}
