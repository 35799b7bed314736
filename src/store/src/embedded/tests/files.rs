//! Access to the files, and the plain text that they contain.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use sakshi_domain::delivery::Attempt;

use super::durability::configure_child;
use super::{open, open_when_free, options, test_store};
use crate::conformance::fixture::{build_app, build_completion, client_with, open_and_complete, open_pending, sealed};
use crate::conformance::flow_fixture::{
    ShortReport, accept_report, create_client_app, locker_flow, open_flow, register_webhooks,
};
use crate::embedded::EmbeddedStore;
use crate::{CompleteTransaction, StoreError};

#[test]
fn a_second_handle_or_process_gets_the_in_use_error() {
    let test = test_store();
    let path = test.directory.path().join("store");
    let in_use = StoreError::InUse(path.display().to_string());
    assert_eq!(EmbeddedStore::open(options(test.directory.path(), Arc::clone(&test.clock))).unwrap_err(), in_use);
    let output = configure_child(&mut Command::new(std::env::current_exe().unwrap()), test.directory.path(), None)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.contains(&format!("refused {in_use}\n")), "{output}");
    test.store.close();
    open(test.directory.path()).unwrap();
}

#[test]
fn a_dropped_store_can_be_opened_immediately() {
    let test = test_store();
    let clone = test.store.clone();
    drop(test.store);
    let options = options(test.directory.path(), test.clock);
    assert!(EmbeddedStore::open(options.clone()).is_err(), "a clone still has the store open");
    drop(clone);
    open_when_free(&options).unwrap();
}

#[tokio::test]
async fn only_the_owner_can_access_the_files() {
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
async fn a_growing_log_is_copied_and_restarted() {
    const OUTCOME_BYTES: usize = 512 * 1_024;
    // The log is copied while the store writes, so its growth depends on the machine.
    const ROUNDS_MAX: usize = 1_000;
    let test = test_store();
    let client = client_with(&test, ROUNDS_MAX.try_into().unwrap()).await;
    let log = test.directory.path().join("store/sakshi.db-wal");
    for round in 1..=ROUNDS_MAX {
        let id = open_pending(&test, &client).await.id;
        let complete = CompleteTransaction { outcome: sealed(&"x".repeat(OUTCOME_BYTES)), ..build_completion(id, 1) };
        test.store.complete_transaction(complete).await.unwrap();
        if log.metadata().unwrap().len() < (round * OUTCOME_BYTES / 2).try_into().unwrap() {
            return;
        }
    }
    panic!("the log was never restarted");
}

#[tokio::test]
async fn the_delivery_of_a_large_report_does_not_write_the_report_again() {
    const REPORT_BYTES: usize = 1 << 20;
    let test = test_store();
    let client_app = create_client_app(&test).await;
    register_webhooks(&test, &client_app).await;
    let flow = open_flow(&test, locker_flow(&test, &client_app)).await;
    let report = accept_report(&test, &flow, ShortReport::Large(REPORT_BYTES)).await.unwrap();
    test.store.sqlite().empty_log().await.unwrap();
    assert_eq!(test.store.claim_delivery(report.id, report.subject).await, Ok(true));
    test.store.settle_delivery(report.id, report.subject, Attempt::from_status(200, 1)).await.unwrap();
    let written = test.directory.path().join("store/sakshi.db-wal").metadata().unwrap().len();
    assert!(0 < written && written < REPORT_BYTES as u64 / 4, "{written}");
}

#[tokio::test]
async fn names_and_secret_urls_are_sealed_in_every_file() {
    let test = test_store();
    let client = client_with(&test, 2).await;
    test.store.create_app(build_app(&test, &client)).await.unwrap();
    open_and_complete(&test, &client).await;
    let directory = test.directory.path().join("store");
    let contains = |needle: &str| {
        let bytes: Vec<u8> =
            directory.read_dir().unwrap().flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
        bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
    };
    assert!(contains("https://hooks.example"), "the outbox needs the plain origin");
    for secret in ["Asha Rao", "secret-path", "data.example"] {
        assert!(!contains(secret), "{secret}");
    }
    test.store.close();
    assert!(!directory.join("sakshi.db-wal").exists(), "closing leaves no log");
    assert!(contains("https://hooks.example") && !contains("Asha Rao"));
}
