//! Transitions that fail, too many of them, no room for them, and none after the end.

use std::sync::mpsc::channel;

use futures_util::future::join_all;
use sakshi_domain::ids::{ClientId, TxnId};

use super::{Universe, open, options, universe, universe_with};
use crate::OpenOutcome;
use crate::StoreError;
use crate::conformance::World;
use crate::conformance::fixture::{RESULT_TTL, RETENTION, audited_balance, client_with, opening, opening_with_hook};
use crate::embedded::EmbeddedStore;
use crate::embedded::database::statements::Database;
use crate::{Credits as _, StoreFuture, Transactions as _, Upkeep as _};

/// Keeps the writer busy until the returned sender is dropped, so that what follows waits together.
async fn occupied(universe: &Universe) -> (std::sync::mpsc::Sender<()>, StoreFuture<()>) {
    let (release, released) = channel();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let mut begin = Some(begin);
    let work = move |_: &Database<'_>| {
        begin.take().map(|begin| begin.send(()));
        let _ = released.recv();
        Ok(())
    };
    let busy = universe.store.write(0, work, |(), _| Ok(()));
    begun.await.unwrap();
    (release, busy)
}

fn open_some(universe: &Universe, client: &ClientId, count: usize) -> Vec<StoreFuture<OpenOutcome>> {
    (0..count).map(|_| universe.store.open_transaction(opening(universe, client))).collect()
}

#[tokio::test]
async fn a_transition_that_panics_or_is_refused_by_the_database_fails_alone() {
    let universe = universe();
    let client = client_with(&universe, 100).await;
    let (release, busy) = occupied(&universe).await;
    let before = open_some(&universe, &client, 10);
    let panics = universe.store.write(0, |_| -> rusqlite::Result<()> { panic!("a bug") }, |(), _| Ok(()));
    let refused = universe.store.write(0, |db| db.change("UPDATE clients SET balance = -1", []), |_, _| Ok(()));
    let after = open_some(&universe, &client, 10);
    drop(release);
    busy.await.unwrap();
    for outcome in join_all(before.into_iter().chain(after)).await {
        assert!(matches!(outcome, Ok(OpenOutcome::Opened { .. })), "{outcome:?}");
    }
    assert_eq!(panics.await, Err(StoreError::Unavailable("an operation panicked".into())));
    assert!(matches!(refused.await, Err(StoreError::Unavailable(_))));
    assert_eq!(audited_balance(&universe, &client).await, 80);
    let read = universe.store.read(|_| -> rusqlite::Result<()> { panic!("a bug") }, |(), _| Ok(())).await;
    assert_eq!(read, Err(StoreError::Unavailable("an operation panicked".into())));
    assert_eq!(audited_balance(&universe, &client).await, 80);
}

#[tokio::test]
async fn what_exceeds_the_waiting_room_is_refused_at_once_and_the_rest_is_served() {
    let universe = universe_with(|options| options.max_waiting = 4);
    let client = client_with(&universe, 100).await;
    let (release, busy) = occupied(&universe).await;
    let waiting = open_some(&universe, &client, 4);
    for refused in open_some(&universe, &client, 3) {
        assert_eq!(refused.await, Err(StoreError::Overloaded));
    }
    drop(release);
    busy.await.unwrap();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    assert_eq!(audited_balance(&universe, &client).await, 96);
}

#[tokio::test]
async fn closing_finishes_what_waits_and_refuses_what_comes_later() {
    let universe = universe();
    let client = client_with(&universe, 1_000).await;
    let waiting = open_some(&universe, &client, 700);
    universe.store.close();
    universe.store.close();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    for refused in open_some(&universe, &client, 2) {
        assert!(matches!(refused.await, Err(StoreError::Unavailable(_))));
    }
    assert!(matches!(universe.store.balance(client.clone()).await, Err(StoreError::Unavailable(_))));
    let again = open(universe.directory.path()).unwrap();
    assert_eq!(again.balance(client).await, Ok(Some(300)));
}

/// Opens transactions, each without a webhook, until the store is full.
async fn fill(universe: &Universe, client: &ClientId) -> Vec<TxnId> {
    let mut answered = Vec::new();
    loop {
        let opens: Vec<_> = (0..16).map(|_| opening_with_hook(universe, client, None)).collect();
        let ids: Vec<_> = opens.iter().map(|open| open.pending.id).collect();
        let outcomes = join_all(opens.into_iter().map(|open| universe.store.open_transaction(open))).await;
        let mut full = false;
        for (id, outcome) in ids.into_iter().zip(outcomes) {
            match outcome {
                Ok(OpenOutcome::Opened { .. }) => answered.push(id),
                other => {
                    assert_eq!(other, Err(StoreError::Full));
                    assert_eq!(universe.store.load_transaction(id).await, Ok(None));
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
    let universe = universe_with(|options| options.max_pages = Some(120));
    let client = client_with(&universe, 1_000_000).await;
    let answered = fill(&universe, &client).await;
    assert!(answered.len() > 100);
    assert_eq!(universe.store.check().await, Err(StoreError::Full));
    for id in &answered {
        assert!(universe.store.load_transaction(*id).await.unwrap().is_some());
    }
    assert_eq!(audited_balance(&universe, &client).await, 1_000_000 - answered.len() as u64);

    universe.advance(RESULT_TTL);
    assert_eq!(universe.store.sweep(RETENTION, 10_000).await.unwrap().transactions, answered.len() as u64);
    assert_eq!(universe.store.check().await, Ok(()));
    let outcome = universe.store.open_transaction(opening(&universe, &client)).await.unwrap();
    assert_eq!(outcome, OpenOutcome::Opened { balance: 1_000_000 - answered.len() as u64 - 1 });

    fill(&universe, &client).await;
    universe.store.close();
    let roomier = EmbeddedStore::open(options(universe.directory.path(), universe.clock.clone())).unwrap();
    assert_eq!(roomier.check().await, Ok(()));
    assert!(roomier.audit().await.unwrap().iter().all(crate::Audit::is_clean));
}
