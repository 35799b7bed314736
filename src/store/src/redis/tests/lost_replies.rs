//! The properties of every store while replies are lost, as `redis::lost_replies` does it, and the answers to retries.

use std::sync::Arc;

use sakshi_kit::redis::groups::Sentinels;
use sakshi_kit::waiting::eventually;

use super::server::{RedisServer, TIMEOUT};
use super::{connected, options, standalone};
use crate::conformance::fixture::{RETENTION, WINDOW, client_with, completing, kept, opening, scope};
use crate::conformance::run;
use crate::redis::{RedisOptions, RedisStore};
use crate::{CompleteOutcome, OpenOutcome, OpenTransaction, StoreError, TransactionRecord};

mod conformance {
    use std::sync::atomic::Ordering;

    use super::super::{RedisTestStore, test_store};

    fn losing() -> RedisTestStore {
        let test = test_store();
        test.store.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
        test
    }

    crate::store_conformance!(losing());
}

/// The former primary, which has no followers any more, lacks the later writes.
#[test]
fn a_replaced_master_cannot_report_a_record_as_missing_or_expired() {
    run(async {
        let master = RedisServer::start(&[]);
        let replica = RedisServer::start(&[&format!("replicaof 127.0.0.1 {}", master.port())]);
        let test = &connected((), standalone(&master.url()), RETENTION);
        let client = client_with(test, 5).await;
        let waiting = |url: &str, replicas| RedisOptions {
            wait_replicas: replicas,
            ..options(standalone(url), Arc::clone(&test.clock), RETENTION)
        };
        let behind =
            eventually("the replica", TIMEOUT, || async { RedisStore::open(waiting(&master.url(), 1)).await.ok() })
                .await;
        let open = opening(test, &client);
        let (id, unknown) = (open.pending.id, opening(test, &client).pending.id);
        behind.open_transaction(open).await.unwrap();
        assert_eq!(behind.load_transaction(unknown).await, Ok(None));

        replica.answer(&["REPLICAOF", "NO", "ONE"]);
        let ahead = RedisStore::open(waiting(&replica.url(), 0)).await.unwrap();
        ahead.complete_transaction(completing(id, 1)).await.unwrap();
        let since = opening(test, &client);
        let unknown = since.pending.id;
        ahead.open_transaction(since).await.unwrap();
        assert!(matches!(behind.load_transaction(unknown).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(behind.complete_transaction(completing(unknown, 2)).await, Err(StoreError::Unavailable(_))));
        test.clock.advance(WINDOW);
        assert!(matches!(behind.load_transaction(id).await, Err(StoreError::Unavailable(_))), "it has not expired");
    });
}

/// A failover would lose their answers.
#[test]
fn another_node_does_not_report_changes_that_no_replica_has_yet() {
    run(async {
        let group = Sentinels::start(1, &[]);
        let master = group.master().url();
        let test = &connected(group, standalone(&master), RETENTION);
        let client = client_with(test, 5).await;
        let open = OpenTransaction { idempotency: Some(kept(test, &client, 1, 1)), ..opening(test, &client) };
        let waiting =
            || RedisOptions { wait_replicas: 1, ..options(standalone(&master), Arc::clone(&test.clock), RETENTION) };
        let [one, other] = [RedisStore::open(waiting()).await.unwrap(), RedisStore::open(waiting()).await.unwrap()];
        let asked = || other.load_idempotent_answer(scope(&client, 1));
        assert_eq!(asked().await, Ok(None));

        let replica = test.server.replicas().next().unwrap();
        replica.pause();
        assert!(matches!(one.open_transaction(open.clone()).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(asked().await, Err(StoreError::Unavailable(_))));
        replica.resume();
        let answer = eventually("the answer", TIMEOUT, || async { asked().await.ok().flatten() }).await;
        assert_eq!(Some(answer), open.idempotency);
        let id = open.pending.id;
        assert!(matches!(one.open_transaction(open).await, Ok(OpenOutcome::Opened { balance: 4 })));

        replica.pause();
        assert!(matches!(one.complete_transaction(completing(id, 1)).await, Err(StoreError::Unavailable(_))));
        // With a node that waits for no replica, the end is on the master alone.
        let completed = test.store.complete_transaction(completing(id, 1)).await;
        assert!(matches!(completed, Ok(CompleteOutcome::Completed { .. })), "{completed:?}");
        assert!(matches!(other.load_transaction(id).await, Err(StoreError::Unavailable(_))));
        replica.resume();
        let seen = eventually("the end", TIMEOUT, || async { other.load_transaction(id).await.ok() }).await;
        assert!(matches!(seen, Some(TransactionRecord::Completed(_))), "{seen:?}");
    });
}
