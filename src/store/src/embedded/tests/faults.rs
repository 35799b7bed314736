//! Failing and refused calls, too many calls, a full disk, and calls after closing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use futures_util::future::join_all;
use sakshi_domain::ids::{ClientId, TxnId};

use super::{EmbeddedTestStore, open, open_when_free, options, test_store, test_store_with, test_store_within};
use crate::OpenOutcome;
use crate::StoreError;
use crate::StoreFuture;
use crate::conformance::TestStore;
use crate::conformance::fixture::{RESULT_TTL, audited_balance, build_opening, build_opening_with_hook, client_with};
use crate::embedded::database::statements::Database;

/// Keeps the writer busy until the returned sender is dropped, so that later calls queue up.
async fn occupy_writer(test: &EmbeddedTestStore) -> (std::sync::mpsc::Sender<()>, StoreFuture<()>) {
    let (release, released) = channel();
    let (started, has_started) = tokio::sync::oneshot::channel();
    let mut started = Some(started);
    let work = move |_: &Database| {
        started.take().map(|started| started.send(()));
        let _ = released.recv();
        Ok(())
    };
    let busy = test.store.sqlite().write(0, work);
    has_started.await.unwrap();
    (release, busy)
}

/// Starts calls that open transactions.
fn open_transactions(test: &EmbeddedTestStore, client: &ClientId, count: usize) -> Vec<StoreFuture<OpenOutcome>> {
    (0..count).map(|_| test.store.open_transaction(build_opening(test, client))).collect()
}

#[tokio::test]
async fn a_job_that_panics_or_is_refused_does_not_affect_others() {
    let test = test_store();
    let client = client_with(&test, 100).await;
    let (release, busy) = occupy_writer(&test).await;
    let before = open_transactions(&test, &client, 10);
    let panics = test.store.sqlite().write(0, |_| -> rusqlite::Result<()> { panic!("a bug") });
    let refused = test.store.sqlite().write(0, |db| db.change("UPDATE client_record SET _version = NULL", []));
    let after = open_transactions(&test, &client, 10);
    drop(release);
    busy.await.unwrap();
    for outcome in join_all(before.into_iter().chain(after)).await {
        assert!(matches!(outcome, Ok(OpenOutcome::Opened { .. })), "{outcome:?}");
    }
    assert_eq!(panics.await, Err(StoreError::Unavailable("an operation panicked".into())));
    assert!(matches!(refused.await, Err(StoreError::Unavailable(_))));
    assert_eq!(audited_balance(&test, &client).await, 80);
    let executions = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&executions);
    let alone = test.store.sqlite().write(0, move |db| {
        counter.fetch_add(1, Ordering::Relaxed);
        db.change("UPDATE client_record SET _version = NULL", [])
    });
    assert!(alone.await.is_err());
    assert_eq!(executions.load(Ordering::Relaxed), 1, "a job that is alone is not executed again");
    let read = test.store.sqlite().read(|_| -> rusqlite::Result<()> { panic!("a bug") }).await;
    assert_eq!(read, Err(StoreError::Unavailable("an operation panicked".into())));
    assert_eq!(audited_balance(&test, &client).await, 80);
}

#[tokio::test]
async fn calls_beyond_the_queue_limit_are_refused_immediately() {
    let test = test_store_with(|options| options.max_waiting = 4);
    let client = client_with(&test, 100).await;
    let (release, busy) = occupy_writer(&test).await;
    let waiting = open_transactions(&test, &client, 4);
    for refused in open_transactions(&test, &client, 3) {
        assert_eq!(refused.await, Err(StoreError::Overloaded));
    }
    drop(release);
    busy.await.unwrap();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    assert_eq!(audited_balance(&test, &client).await, 96);
}

#[tokio::test]
async fn closing_finishes_waiting_calls_and_refuses_later_ones() {
    let test = test_store();
    let client = client_with(&test, 1_000).await;
    let waiting = open_transactions(&test, &client, 700);
    test.store.close();
    test.store.close();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    for refused in open_transactions(&test, &client, 2) {
        assert!(matches!(refused.await, Err(StoreError::Unavailable(_))));
    }
    assert!(matches!(test.store.balance(client.clone()).await, Err(StoreError::Unavailable(_))));
    let reopened = open(test.directory.path()).unwrap();
    assert_eq!(reopened.balance(client).await, Ok(Some(300)));
}

/// Opens transactions without webhooks until the store is full. Returns the opened ones.
async fn fill_store(test: &EmbeddedTestStore, client: &ClientId) -> Vec<TxnId> {
    let mut opened = Vec::new();
    loop {
        let opens: Vec<_> = (0..16).map(|_| build_opening_with_hook(test, client, None)).collect();
        let ids: Vec<_> = opens.iter().map(|open| open.pending.id).collect();
        let outcomes = join_all(opens.into_iter().map(|open| test.store.open_transaction(open))).await;
        let mut is_full = false;
        for (id, outcome) in ids.into_iter().zip(outcomes) {
            match outcome {
                Ok(OpenOutcome::Opened { .. }) => opened.push(id),
                other => {
                    assert_eq!(other, Err(StoreError::Full));
                    assert_eq!(test.store.load_transaction(id).await, Ok(None));
                    is_full = true;
                }
            }
        }
        if is_full {
            return opened;
        }
    }
}

#[tokio::test]
async fn a_full_store_reports_it_loses_nothing_and_recovers() {
    const SMALL_DISK_PAGES: Option<u32> = Some(300);
    let test = test_store_within(|_| {}, SMALL_DISK_PAGES);
    let client = client_with(&test, 1_000_000).await;
    let opened = fill_store(&test, &client).await;
    assert!(opened.len() > 100);
    assert_eq!(test.store.check().await, Err(StoreError::Full));
    for id in &opened {
        assert!(test.store.load_transaction(*id).await.unwrap().is_some());
    }
    assert_eq!(audited_balance(&test, &client).await, 1_000_000 - opened.len() as u64);

    test.advance(RESULT_TTL);
    assert_eq!(test.store.sweep(test.now(), 10_000).await.unwrap().transactions, opened.len() as u64);
    assert_eq!(test.store.check().await, Ok(()));
    let outcome = test.store.open_transaction(build_opening(&test, &client)).await.unwrap();
    assert_eq!(outcome, OpenOutcome::Opened { balance: 1_000_000 - opened.len() as u64 - 1 });

    fill_store(&test, &client).await;
    test.store.close();
    let with_more_room = open_when_free(&options(test.directory.path(), test.clock.clone())).unwrap();
    assert_eq!(with_more_room.check().await, Ok(()));
    assert!(with_more_room.audit().await.unwrap().iter().all(crate::Audit::is_clean));
}
