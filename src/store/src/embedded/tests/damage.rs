//! Damaged, foreign, newer and missing files: opening them reports an error and changes nothing.

use std::fs;
use std::path::PathBuf;

use super::{EmbeddedTestStore, open, test_store};
use crate::conformance::fixture::{audited_balance, build_event, client_with, open_pending, store_event};
use crate::{PageRequest, StoreError};

/// Returns a closed store with records, and the path of its database file.
async fn closed_store() -> (EmbeddedTestStore, PathBuf) {
    let test = test_store();
    let client = client_with(&test, 500).await;
    for _ in 0..400 {
        open_pending(&test, &client).await;
    }
    test.store.close();
    let path = test.directory.path().join("store/sakshi.db");
    (test, path)
}

/// Asserts that opening is refused and leaves the file unchanged. Returns the message.
fn assert_refused(test: &EmbeddedTestStore, path: &PathBuf) -> String {
    let before = fs::read(path).ok();
    let error = open(test.directory.path()).unwrap_err();
    assert_eq!(fs::read(path).ok(), before, "the file was changed");
    match error {
        StoreError::Corrupt(why) | StoreError::Unavailable(why) | StoreError::OtherSchema(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let (test, path) = closed_store().await;
    let whole = fs::read(&path).unwrap();
    for length in [whole.len() - 4_096, whole.len() / 2, 4_096, 1_000, 10] {
        fs::write(&path, &whole[..length]).unwrap();
        assert_refused(&test, &path);
    }
    fs::write(&path, &whole).unwrap();
    let store = open(test.directory.path()).unwrap();
    assert!(store.audit().await.unwrap()[0].is_clean());
}

#[tokio::test]
async fn an_emptied_or_removed_file_is_not_created_again() {
    let (test, path) = closed_store().await;
    fs::write(&path, b"").unwrap();
    assert!(assert_refused(&test, &path).contains("missing or empty"));
    fs::remove_file(&path).unwrap();
    assert!(assert_refused(&test, &path).contains("missing or empty"));
    assert!(!path.exists());
}

#[tokio::test]
async fn a_log_without_its_database_is_not_deleted() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("store")).unwrap();
    let log = directory.path().join("store/sakshi.db-wal");
    fs::write(&log, b"frames").unwrap();
    assert!(matches!(open(directory.path()), Err(StoreError::Corrupt(_))));
    assert_eq!(fs::read(&log).unwrap(), b"frames");
}

#[tokio::test]
async fn a_foreign_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("store")).unwrap();
    let path = directory.path().join("store/sakshi.db");
    fs::write(&path, b"This is a text, and a rather important one.").unwrap();
    assert!(matches!(open(directory.path()), Err(StoreError::Corrupt(_))));
    fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE accounts (id)").unwrap();
    let error = open(directory.path()).unwrap_err();
    assert_eq!(error, StoreError::Corrupt("the database file is not a sakshi store".into()));
    let tables: i64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM accounts", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 0);
}

#[tokio::test]
async fn a_file_of_a_newer_release_is_refused() {
    let (test, path) = closed_store().await;
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(assert_refused(&test, &path).contains("newer release"));
}

#[tokio::test]
async fn damage_found_by_a_read_stops_the_store_and_fails_every_later_call() {
    let (test, path) = closed_store().await;
    let query_number =
        |sql: &str| -> u32 { rusqlite::Connection::open(&path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap() };
    let first_byte =
        (query_number("SELECT rootpage FROM sqlite_schema WHERE name = 'ledger_list'") as usize - 1) * 4_096;
    let mut bytes = fs::read(&path).unwrap();
    bytes[first_byte..first_byte + 4_096].fill(0xA5);
    fs::write(&path, &bytes).unwrap();
    let store = open(test.directory.path()).unwrap();
    assert_eq!(store.check().await, Ok(()), "the damage is not found yet");
    let damage = store.audit().await.unwrap_err();
    assert!(matches!(damage, StoreError::Corrupt(_)), "{damage:?}");
    assert_eq!(store.check().await, Err(damage.clone()), "even a call that reads no damaged page");
    assert_eq!(store.sqlite().read(|_| Ok(())).await, Err(damage));
    store.close();
    assert!(path.exists());
}

#[tokio::test]
async fn a_list_of_events_with_damaged_values_is_unreadable() {
    let test = test_store();
    let client = client_with(&test, 5).await;
    let event = store_event(&test, build_event(&test, &client, 5)).await;
    let page = PageRequest { page: 1, page_size: 20 };
    assert_eq!(test.store.list_events(event.app.clone(), page).await.unwrap().total, 1);
    let change = |sql: String| test.store.sqlite().write(0, move |db| db.connection.execute_batch(&sql));
    let (max, min) = (i64::MAX.to_string(), i64::MIN.to_string());
    for (table, column, value) in [
        ("event_record", "registrations", "-1"),
        ("event_record", "registrations", &max),
        ("event_record", "registrations", &min),
        ("event_record", "scans", "-1"),
        ("event_record", "scans", &min),
        ("event_record", "abandoned", "-1"),
        ("event_record", "abandoned", &min),
        ("event_record", "scans", "'many'"),
        ("event_record", "app", "x'01'"),
        ("event_record", "app", "CAST(x'ff' AS TEXT)"),
        ("events_index", "_member", "x'01'"),
    ] {
        change(format!("CREATE TABLE kept AS SELECT {column} FROM {table}; UPDATE {table} SET {column} = {value}"))
            .await
            .unwrap();
        let listed = test.store.list_events(event.app.clone(), page).await;
        assert!(matches!(listed, Err(StoreError::Corrupt(_) | StoreError::Broken(_))), "{column} {value}: {listed:?}");
        change(format!("UPDATE {table} SET {column} = (SELECT {column} FROM kept); DROP TABLE kept")).await.unwrap();
    }
    assert_eq!(test.store.list_events(event.app.clone(), page).await.unwrap().items, [event]);
}

#[tokio::test]
async fn a_reopened_store_has_all_records() {
    let (test, _) = closed_store().await;
    let store = open(test.directory.path()).unwrap();
    let client = store.audit().await.unwrap()[0].client.clone();
    let reopened = EmbeddedTestStore { store, clock: test.clock.clone(), directory: tempfile::tempdir().unwrap() };
    assert_eq!(audited_balance(&reopened, &client).await, 100);
    open_pending(&reopened, &client).await;
    assert_eq!(audited_balance(&reopened, &client).await, 99);
}
