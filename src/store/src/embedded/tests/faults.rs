//! Failing operations, too many of them, a full disk, and operations after closing.

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
use crate::conformance::fixture::{RESULT_TTL, audited_balance, client_with, opening, opening_with_hook};
use crate::embedded::database::statements::Database;

/// Keeps the writer busy until the returned sender is dropped, so that later calls wait together.
async fn occupied(test: &EmbeddedTestStore) -> (std::sync::mpsc::Sender<()>, StoreFuture<()>) {
    let (release, released) = channel();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let mut begin = Some(begin);
    let work = move |_: &Database| {
        begin.take().map(|begin| begin.send(()));
        let _ = released.recv();
        Ok(())
    };
    let busy = test.store.sqlite().write(0, work);
    begun.await.unwrap();
    (release, busy)
}

fn open_some(test: &EmbeddedTestStore, client: &ClientId, count: usize) -> Vec<StoreFuture<OpenOutcome>> {
    (0..count).map(|_| test.store.open_transaction(opening(test, client))).collect()
}

#[tokio::test]
async fn a_transition_that_panics_or_is_refused_by_the_database_fails_alone() {
    let test = test_store();
    let client = client_with(&test, 100).await;
    let (release, busy) = occupied(&test).await;
    let before = open_some(&test, &client, 10);
    let panics = test.store.sqlite().write(0, |_| -> rusqlite::Result<()> { panic!("a bug") });
    let refused = test.store.sqlite().write(0, |db| db.change("UPDATE client_record SET _version = NULL", []));
    let after = open_some(&test, &client, 10);
    drop(release);
    busy.await.unwrap();
    for outcome in join_all(before.into_iter().chain(after)).await {
        assert!(matches!(outcome, Ok(OpenOutcome::Opened { .. })), "{outcome:?}");
    }
    assert_eq!(panics.await, Err(StoreError::Unavailable("an operation panicked".into())));
    assert!(matches!(refused.await, Err(StoreError::Unavailable(_))));
    assert_eq!(audited_balance(&test, &client).await, 80);
    let times = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&times);
    let alone = test.store.sqlite().write(0, move |db| {
        counted.fetch_add(1, Ordering::Relaxed);
        db.change("UPDATE client_record SET _version = NULL", [])
    });
    assert!(alone.await.is_err());
    assert_eq!(times.load(Ordering::Relaxed), 1, "nobody else made it fail");
    let read = test.store.sqlite().read(|_| -> rusqlite::Result<()> { panic!("a bug") }).await;
    assert_eq!(read, Err(StoreError::Unavailable("an operation panicked".into())));
    assert_eq!(audited_balance(&test, &client).await, 80);
}

#[tokio::test]
async fn what_exceeds_the_waiting_room_is_refused_at_once_and_the_rest_is_served() {
    let test = test_store_with(|options| options.max_waiting = 4);
    let client = client_with(&test, 100).await;
    let (release, busy) = occupied(&test).await;
    let waiting = open_some(&test, &client, 4);
    for refused in open_some(&test, &client, 3) {
        assert_eq!(refused.await, Err(StoreError::Overloaded));
    }
    drop(release);
    busy.await.unwrap();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    assert_eq!(audited_balance(&test, &client).await, 96);
}

#[tokio::test]
async fn closing_finishes_what_waits_and_refuses_what_comes_later() {
    let test = test_store();
    let client = client_with(&test, 1_000).await;
    let waiting = open_some(&test, &client, 700);
    test.store.close();
    test.store.close();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    for refused in open_some(&test, &client, 2) {
        assert!(matches!(refused.await, Err(StoreError::Unavailable(_))));
    }
    assert!(matches!(test.store.balance(client.clone()).await, Err(StoreError::Unavailable(_))));
    let again = open(test.directory.path()).unwrap();
    assert_eq!(again.balance(client).await, Ok(Some(300)));
}

/// Opens transactions, each without a webhook, until the store is full.
async fn fill(test: &EmbeddedTestStore, client: &ClientId) -> Vec<TxnId> {
    let mut answered = Vec::new();
    loop {
        let opens: Vec<_> = (0..16).map(|_| opening_with_hook(test, client, None)).collect();
        let ids: Vec<_> = opens.iter().map(|open| open.pending.id).collect();
        let outcomes = join_all(opens.into_iter().map(|open| test.store.open_transaction(open))).await;
        let mut full = false;
        for (id, outcome) in ids.into_iter().zip(outcomes) {
            match outcome {
                Ok(OpenOutcome::Opened { .. }) => answered.push(id),
                other => {
                    assert_eq!(other, Err(StoreError::Full));
                    assert_eq!(test.store.load_transaction(id).await, Ok(None));
                    full = true;
                }
            }
        }
        if full {
            return answered;
        }
    }
}

#[tokio::test]
async fn a_full_store_says_so_loses_nothing_and_recovers_when_there_is_room() {
    let test = test_store_within(|_| {}, Some(300));
    let client = client_with(&test, 1_000_000).await;
    let answered = fill(&test, &client).await;
    assert!(answered.len() > 100);
    assert_eq!(test.store.check().await, Err(StoreError::Full));
    for id in &answered {
        assert!(test.store.load_transaction(*id).await.unwrap().is_some());
    }
    assert_eq!(audited_balance(&test, &client).await, 1_000_000 - answered.len() as u64);

    test.advance(RESULT_TTL);
    assert_eq!(test.store.sweep(test.now(), 10_000).await.unwrap().transactions, answered.len() as u64);
    assert_eq!(test.store.check().await, Ok(()));
    let outcome = test.store.open_transaction(opening(&test, &client)).await.unwrap();
    assert_eq!(outcome, OpenOutcome::Opened { balance: 1_000_000 - answered.len() as u64 - 1 });

    fill(&test, &client).await;
    test.store.close();
    let roomier = open_when_free(&options(test.directory.path(), test.clock.clone())).unwrap();
    assert_eq!(roomier.check().await, Ok(()));
    assert!(roomier.audit().await.unwrap().iter().all(crate::Audit::is_clean));
}
