//! Permissions of the files, and their readable contents.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::durability::run_child;
use super::{open, open_when_free, options, test_store};
use crate::CompleteTransaction;
use crate::StoreError;
use crate::conformance::fixture::{app, client_with, completed, completing, opened, sealed};
use crate::embedded::EmbeddedStore;

#[test]
fn a_second_handle_and_a_second_process_are_told_that_the_store_is_in_use() {
    let test = test_store();
    let path = test.directory.path().join("store");
    let in_use = StoreError::InUse(path.display().to_string());
    assert_eq!(EmbeddedStore::open(options(test.directory.path(), Arc::clone(&test.clock))).unwrap_err(), in_use);
    let told = run_child(&mut Command::new(std::env::current_exe().unwrap()), test.directory.path(), None)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains(&format!("refused {in_use}\n")), "{told}");
    test.store.close();
    open(test.directory.path()).unwrap();
}

#[test]
fn a_store_that_is_dropped_can_be_opened_at_once() {
    let test = test_store();
    let clone = test.store.clone();
    drop(test.store);
    let options = options(test.directory.path(), test.clock);
    assert!(EmbeddedStore::open(options.clone()).is_err(), "a clone still has it");
    drop(clone);
    open_when_free(&options).unwrap();
}

#[tokio::test]
async fn the_files_are_for_their_owner_alone() {
    let test = test_store();
    client_with(&test, 1).await;
    let directory = test.directory.path().join("store");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let mut names = Vec::new();
    for file in directory.read_dir().unwrap() {
        let file = file.unwrap();
        assert_eq!(mode(&file.path()), 0o600, "{:?}", file.file_name());
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["sakshi.db", "sakshi.db-shm", "sakshi.db-wal", "sakshi.lock"]);
}

#[tokio::test]
async fn a_log_is_copied_as_it_grows_and_begins_anew() {
    const OUTCOME: usize = 512 * 1_024;
    // The log is copied while writes go on, so its growth depends on the machine; without a limit it would hold all of
    // them.
    const MOST: usize = 1_000;
    let test = test_store();
    let client = client_with(&test, MOST.try_into().unwrap()).await;
    let log = test.directory.path().join("store/sakshi.db-wal");
    for round in 1..=MOST {
        let id = opened(&test, &client).await.id;
        let complete = CompleteTransaction { outcome: sealed(&"x".repeat(OUTCOME)), ..completing(id, 1) };
        test.store.complete_transaction(complete).await.unwrap();
        if log.metadata().unwrap().len() < (round * OUTCOME / 2).try_into().unwrap() {
            return;
        }
    }
    panic!("the log has never begun anew");
}

#[tokio::test]
async fn names_and_secret_addresses_are_sealed_in_every_file() {
    let test = test_store();
    let client = client_with(&test, 2).await;
    test.store.create_app(app(&test, &client)).await.unwrap();
    completed(&test, &client).await;
    let directory = test.directory.path().join("store");
    let holds = |needle: &str| {
        let bytes: Vec<u8> =
            directory.read_dir().unwrap().flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
        bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
    };
    assert!(holds("https://hooks.example"), "the origin is what the outbox is sorted by");
    for secret in ["Asha Rao", "secret-path", "data.example"] {
        assert!(!holds(secret), "{secret}");
    }
    test.store.close();
    assert!(!directory.join("sakshi.db-wal").exists(), "closing leaves no log");
    assert!(holds("https://hooks.example") && !holds("Asha Rao"));
}
