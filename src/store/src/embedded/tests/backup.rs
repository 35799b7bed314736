//! Backups and restores of a store's file.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use sakshi_domain::clock::{Clock, ManualClock};
use sakshi_domain::delivery::{Attempt, QueuedDelivery};

use super::{EmbeddedTestStore, open, options, test_store, vault};
use crate::conformance::fixture::{
    EVENT_DURATION, RESULT_TTL, RETENTION, build_event, client_with, open_and_complete, open_pending, store_event,
};
use crate::conformance::flow_fixture::{self, ShortReport, accept_report};
use crate::embedded::EmbeddedStore;
use crate::embedded::backup::{
    BackupContents, CHECKSUM_EXTENSION, ExistingStore, QueuedWebhooks, backup, inspect, restore,
};
use crate::installation::test_ownership;
use crate::vault::test_vault;
use crate::{Backlog, Ownership, StoreError, Vault};

/// Returns a closed store with records, and its backup.
async fn store_with_backup() -> (EmbeddedTestStore, PathBuf) {
    let test = test_store();
    client_with(&test, 5).await;
    test.store.close();
    let file = test.directory.path().join("backup.db");
    backup(&test.directory.path().join("store"), &file, test.clock.clone(), &vault()).unwrap();
    (test, file)
}

/// Restores a backup, and drops its webhooks.
fn restore_backup(
    test: &EmbeddedTestStore,
    file: &Path,
    to: &Path,
    existing: ExistingStore,
) -> Result<(BackupContents, Option<PathBuf>), StoreError> {
    restore(file, &to.join("store"), clock_and_vault(test), Some(&test_ownership()), QueuedWebhooks::Drop, existing)
}

/// Returns the clock and the vault of a test, for a restore.
fn clock_and_vault(test: &EmbeddedTestStore) -> (Arc<dyn Clock>, Arc<Vault>) {
    (test.clock.clone(), vault())
}

/// Executes SQL on a backup, and removes its checksum file.
fn execute_sql(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
    let _ = fs::remove_file(file.with_extension(format!("db.{CHECKSUM_EXTENSION}")));
}

#[tokio::test]
async fn an_empty_file_does_not_count_as_a_store() {
    let (test, file) = store_with_backup().await;
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("store")).unwrap();
    fs::write(other.path().join("store/sakshi.db"), b"").unwrap();
    let refused = backup(&other.path().join("store"), &other.path().join("b.db"), test.clock.clone(), &vault());
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.starts_with("there is no store in")));
    assert_eq!(restore_backup(&test, &file, other.path(), ExistingStore::Keep).unwrap().1, None);
    let balances: Vec<_> =
        open(other.path()).unwrap().audit().await.unwrap().iter().map(|audit| audit.balance).collect();
    assert_eq!(balances, [5]);
}

#[tokio::test]
async fn a_backup_under_other_keys_is_refused() {
    let (test, file) = store_with_backup().await;
    let other = tempfile::tempdir().unwrap();
    let wrong = (test.clock.clone() as Arc<dyn Clock>, Arc::new(test_vault(&[9])));
    assert_eq!(
        restore(&file, &other.path().join("store"), wrong, None, QueuedWebhooks::Drop, ExistingStore::Keep),
        Err(StoreError::WrongKey)
    );
    assert!(!other.path().join("store").exists());
}

#[tokio::test]
async fn a_store_that_a_node_would_refuse_is_neither_backed_up_nor_restored() {
    let (test, file) = store_with_backup().await;
    let (store, to) = (test.directory.path().join("store"), tempfile::tempdir().unwrap());
    let other = Ownership { owner: "stage https://one.example".parse().unwrap(), takes_over: None };
    let refused = restore(
        &file,
        &to.path().join("store"),
        clock_and_vault(&test),
        Some(&other),
        QueuedWebhooks::Drop,
        ExistingStore::Keep,
    );
    assert!(matches!(refused, Err(StoreError::OtherInstallation { .. })), "{refused:?}");

    const NEWER: &str = "PRAGMA user_version = 1000";
    execute_sql(&file, NEWER);
    execute_sql(&store.join("sakshi.db"), NEWER);
    let refusal = open(test.directory.path()).unwrap_err();
    assert!(refusal.to_string().contains("schema 1000"), "{refusal}");
    assert_eq!(restore_backup(&test, &file, to.path(), ExistingStore::Keep), Err(refusal.clone()));
    assert!(!to.path().join("store").exists());
    let second = test.directory.path().join("second.db");
    let (clock, vault) = clock_and_vault(&test);
    assert_eq!(backup(&store, &second, clock, &vault), Err(refusal));
}

#[tokio::test]
async fn a_backup_that_cannot_be_finished_leaves_no_file() {
    let (test, _) = store_with_backup().await;
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("b.db");
    fs::create_dir(file.with_extension(format!("db.{CHECKSUM_EXTENSION}"))).unwrap();
    let (clock, vault) = clock_and_vault(&test);
    assert!(backup(&test.directory.path().join("store"), &file, clock, &vault).is_err());
    let remaining: Vec<_> = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(remaining, ["b.db.sha256"], "the obstructing directory");
}

#[tokio::test]
async fn files_restored_by_root_belong_to_the_owner_of_the_directory() {
    let (test, file) = store_with_backup().await;
    let parent = tempfile::tempdir().unwrap();
    if parent.path().metadata().unwrap().uid() != 0 {
        return;
    }
    // The owner of a state directory of systemd.
    let (user, group) = (12_345, 12_346);
    chown(parent.path(), Some(user), Some(group)).unwrap();
    let deep = parent.path().join("new/deeper");
    for existing in [ExistingStore::Keep, ExistingStore::Replace] {
        restore_backup(&test, &file, &deep, existing).unwrap();
        // A restore repairs a wrong owner.
        chown(deep.join("store/sakshi.lock"), Some(0), Some(0)).unwrap();
    }
    restore_backup(&test, &file, &deep, ExistingStore::Replace).unwrap();
    let mut paths = vec![parent.path().join("new"), deep.clone(), deep.join("store")];
    paths.extend(fs::read_dir(deep.join("store")).unwrap().map(|entry| entry.unwrap().path()));
    assert!(paths.len() >= 6, "the store, the replaced store and the lock: {paths:?}");
    for path in paths {
        let metadata = path.metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (user, group), "{}", path.display());
    }
}

#[tokio::test]
async fn the_target_of_a_link_stays_with_root() {
    let (test, file) = store_with_backup().await;
    let (parent, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    if parent.path().metadata().unwrap().uid() != 0 {
        return;
    }
    let store = parent.path().join("store");
    fs::create_dir(&store).unwrap();
    chown(&store, Some(12_345), Some(12_345)).unwrap();
    symlink(elsewhere.path(), store.join("sakshi.lock")).unwrap();
    restore_backup(&test, &file, parent.path(), ExistingStore::Keep).unwrap();
    assert_eq!(elsewhere.path().metadata().unwrap().uid(), 0);
}

#[tokio::test]
async fn a_log_or_journal_without_its_database_is_not_applied_to_a_restored_file() {
    let (test, file) = store_with_backup().await;
    for name in ["sakshi.db-wal", "sakshi.db-journal"] {
        let to = tempfile::tempdir().unwrap();
        let leftover = to.path().join("store").join(name);
        fs::create_dir(to.path().join("store")).unwrap();
        fs::write(&leftover, "a log").unwrap();
        assert!(restore_backup(&test, &file, to.path(), ExistingStore::Keep).is_err(), "{name}");
        restore_backup(&test, &file, to.path(), ExistingStore::Replace).unwrap();
        assert!(!leftover.exists(), "{name}");
    }
}

#[tokio::test]
async fn a_restore_replaces_a_store_only_on_request_and_renames_it_with_its_log() {
    let (test, file) = store_with_backup().await;
    let directory = test.directory.path().join("store");
    assert!(restore_backup(&test, &file, test.directory.path(), ExistingStore::Keep).is_err());
    fs::write(directory.join("sakshi.db-wal"), "a log").unwrap();
    fs::write(directory.join("sakshi.db-journal"), "a journal").unwrap();
    // A reader creates this file; a closing node removes it.
    fs::remove_file(directory.join("sakshi.db-shm")).unwrap();
    let replaced = restore_backup(&test, &file, test.directory.path(), ExistingStore::Replace).unwrap().1.unwrap();
    let seconds = test.clock.now().seconds();
    assert_eq!(replaced, directory.join(format!("sakshi.db.before-{seconds}")));
    assert!(replaced.exists());
    assert_eq!(fs::read_to_string(directory.join(format!("sakshi.db.before-{seconds}-wal"))).unwrap(), "a log");
    assert!(!directory.join("sakshi.db-wal").exists(), "the old log is not applied to the backup");
    let journal = directory.join(format!("sakshi.db.before-{seconds}-journal"));
    assert_eq!(fs::read_to_string(journal).unwrap(), "a journal");
    assert!(!directory.join("sakshi.db-journal").exists(), "nor is the old journal");
}

#[tokio::test]
async fn a_store_that_cannot_be_renamed_is_not_replaced() {
    let (test, file) = store_with_backup().await;
    let directory = test.directory.path().join("store");
    fs::create_dir(directory.join(format!("sakshi.db.before-{}", test.clock.now().seconds()))).unwrap();
    let before = fs::read(directory.join("sakshi.db")).unwrap();
    let refused = restore_backup(&test, &file, test.directory.path(), ExistingStore::Replace);
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.starts_with("cannot rename")));
    assert!(fs::read(directory.join("sakshi.db")).unwrap() == before);
}

#[tokio::test]
async fn a_backup_without_a_checksum_is_restored_but_not_with_an_unreadable_one() {
    let (test, file) = store_with_backup().await;
    let sum = file.with_extension(format!("db.{CHECKSUM_EXTENSION}"));
    fs::remove_file(&sum).unwrap();
    let to = tempfile::tempdir().unwrap();
    restore_backup(&test, &file, to.path(), ExistingStore::Keep).unwrap();
    fs::create_dir(&sum).unwrap();
    let to = tempfile::tempdir().unwrap();
    let refused = restore_backup(&test, &file, to.path(), ExistingStore::Keep);
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.starts_with("cannot read")));
    assert!(!to.path().join("store").exists());
}

/// Returns a store with six webhooks and its backup: three webhooks wait, two attempts are in flight, and one has
/// ended.
async fn store_with_webhooks() -> (EmbeddedTestStore, PathBuf, Vec<QueuedDelivery>) {
    let test = test_store();
    let client = client_with(&test, 10).await;
    for _ in 0..4 {
        open_and_complete(&test, &client).await;
    }
    let client_app = flow_fixture::create_client_app(&test).await;
    for _ in 0..2 {
        let flow = flow_fixture::open_flow(
            &test,
            flow_fixture::document_flow(&test, &client_app, Some("https://own.example/in")),
        )
        .await;
        accept_report(&test, &flow, ShortReport::Document("Rejected")).await.unwrap();
    }
    let due = test.store.first_due_deliveries(10).await.unwrap();
    for claimed in &due[2..5] {
        assert!(test.store.claim_delivery(claimed.id, claimed.subject).await.unwrap());
    }
    let attempt = Attempt::from_status(200, 3);
    test.store.settle_delivery(due[2].id, due[2].subject, attempt).await.unwrap();
    test.store.close();
    let file = test.directory.path().join("backup.db");
    let contents = backup(&test.directory.path().join("store"), &file, test.clock.clone(), &vault()).unwrap();
    assert_eq!((contents.queued_webhooks, contents.transactions, contents.ledger_entries), (3, 4, 5));
    (test, file, due)
}

/// Returns a store that was restored from a backup one minute later.
fn restored_store(test: &EmbeddedTestStore, file: &Path, webhooks: QueuedWebhooks) -> EmbeddedTestStore {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::starting_at(test.clock.now() + Duration::from_secs(60)));
    let clock_and_vault = (clock.clone() as Arc<dyn Clock>, vault());
    let (contents, _) = restore(
        file,
        &directory.path().join("store"),
        clock_and_vault,
        Some(&test_ownership()),
        webhooks,
        ExistingStore::Keep,
    )
    .unwrap();
    assert_eq!(contents.queued_webhooks, 3, "the contents of the backup");
    let store = EmbeddedStore::open(options(directory.path(), clock.clone())).unwrap();
    EmbeddedTestStore { store, clock, directory }
}

#[tokio::test]
async fn pending_webhooks_in_a_backup_are_recorded_as_unknown() {
    let (before, file, due) = store_with_webhooks().await;
    let backup_time = before.clock.now();
    let test = restored_store(&before, &file, QueuedWebhooks::Drop);
    assert_eq!(test.store.first_due_deliveries(10).await, Ok(vec![]));
    assert_eq!(test.store.backlog().await, Ok(Backlog::default()));
    let unknown = Some(Attempt::unknown());
    for delivery in [&due[0], &due[1], &due[5]] {
        let record = test.store.load_delivery(delivery.subject).await.unwrap().unwrap();
        assert_eq!((record.id, record.queued_at), (delivery.id, backup_time));
        assert_eq!((record.claimed_at, record.attempt), (Some(test.clock.now()), unknown));
        assert_eq!(test.store.claim_delivery(delivery.id, delivery.subject).await, Ok(false));
    }
    // Attempts that were begun or ended before the backup keep their times.
    let ended = test.store.load_delivery(due[2].subject).await.unwrap().unwrap();
    assert_eq!((ended.claimed_at, ended.attempt.map(|attempt| attempt.status)), (Some(backup_time), Some(Some(200))));
    for claimed in &due[3..5] {
        let record = test.store.load_delivery(claimed.subject).await.unwrap().unwrap();
        assert_eq!((record.claimed_at, record.attempt), (Some(backup_time), unknown));
    }
    assert_eq!(test.store.abandon_attempts().await, Ok(0));
    // The transactions expire normally, and new deliveries have higher ids.
    test.clock.advance(RESULT_TTL);
    let swept = test.store.sweep(test.clock.now(), 100).await.unwrap();
    assert_eq!(swept.transactions, 4);
    let clients = test.store.audit().await.unwrap();
    let client = clients.iter().find(|audit| audit.balance > 0).unwrap();
    assert!(open_and_complete(&test, &client.client).await.1 > due[5].id);
}

#[tokio::test]
async fn pending_webhooks_in_a_backup_are_sent_on_request() {
    let (before, file, due) = store_with_webhooks().await;
    let test = restored_store(&before, &file, QueuedWebhooks::Send);
    // A starting node abandons unfinished attempts.
    assert_eq!(test.store.abandon_attempts().await, Ok(2));
    let pending = test.store.first_due_deliveries(10).await.unwrap();
    assert_eq!(pending, [due[0].clone(), due[1].clone(), due[5].clone()]);
    for delivery in pending {
        assert_eq!(test.store.claim_delivery(delivery.id, delivery.subject).await, Ok(true));
    }
}

#[tokio::test]
async fn a_file_with_a_wrong_or_unreadable_ledger_is_refused() {
    let (test, file) = store_with_backup().await;
    let whole = fs::read(&file).unwrap();
    let (clock, vault) = clock_and_vault(&test);
    let inspected = || inspect(&file, Arc::clone(&clock), &vault, None);
    assert_eq!(inspected().map(|contents| (contents.clients, contents.ledger_entries)), Ok((1, 1)));
    for damage in [
        "UPDATE client_record SET balance = 6",
        "UPDATE ledger_list SET amount = 6",
        "UPDATE ledger_list SET balance_after = 6",
        "UPDATE ledger_list SET _entry = 2",
        "UPDATE ledger_list SET kind = 'gift'",
        "UPDATE ledger_list SET kind = NULL",
        "UPDATE ledger_list SET kind = CAST(x'ff' AS TEXT)",
        "UPDATE client_record SET _id = x'00'",
        "DELETE FROM ledger_list",
    ] {
        execute_sql(&file, damage);
        assert!(matches!(inspected(), Err(StoreError::Corrupt(_))), "{damage}: {:?}", inspected());
        fs::write(&file, &whole).unwrap();
    }
}

#[tokio::test]
async fn expired_records_are_not_counted_before_they_are_swept() {
    let test = test_store();
    let client = client_with(&test, 10).await;
    open_pending(&test, &client).await;
    store_event(&test, build_event(&test, &client, 5)).await;
    let store = test.directory.path().join("store");
    let contents = |name: &str| {
        let contents = backup(&store, &test.directory.path().join(name), test.clock.clone(), &vault()).unwrap();
        (contents.transactions, contents.events)
    };
    assert_eq!(contents("before"), (1, 1));
    test.clock.advance(EVENT_DURATION + RETENTION.events);
    assert_eq!(contents("after"), (0, 0));
}
