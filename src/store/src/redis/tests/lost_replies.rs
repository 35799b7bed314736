//! The conformance suite while `redis::lost_replies` loses replies, and answers that depend on replicas.

use std::sync::Arc;

use sakshi_kit::redis::groups::Sentinels;
use sakshi_kit::waiting::eventually;

use super::server::{RedisServer, TIMEOUT};
use super::{connect_store, options, standalone};
use crate::conformance::fixture::{
    RETENTION, WINDOW, build_completion, build_idempotent_answer, build_opening, client_with, idempotency_scope,
};
use crate::conformance::run;
use crate::redis::{RedisOptions, RedisStore};
use crate::{CompleteOutcome, OpenOutcome, OpenTransaction, StoreError, TransactionRecord};

mod conformance {
    use std::sync::atomic::Ordering;

    use super::super::{RedisTestStore, test_store};

    /// Returns a store that loses the first reply to every script.
    fn store_with_lost_replies() -> RedisTestStore {
        let test = test_store();
        test.store.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
        test
    }

    crate::store_conformance!(store_with_lost_replies());
}

/// The former master, which no replica follows any more, lacks the later writes.
#[test]
fn a_replaced_master_cannot_report_a_record_as_missing_or_expired() {
    run(async {
        let master = RedisServer::start(&[]);
        let replica = RedisServer::start(&[&format!("replicaof 127.0.0.1 {}", master.port())]);
        let test = &connect_store((), standalone(&master.url()), RETENTION);
        let client = client_with(test, 5).await;
        let options_for_replicas = |url: &str, replicas| RedisOptions {
            wait_replicas: replicas,
            ..options(standalone(url), Arc::clone(&test.clock), RETENTION)
        };
        let former = eventually("the replica", TIMEOUT, || async {
            RedisStore::open(options_for_replicas(&master.url(), 1)).await.ok()
        })
        .await;
        let open = build_opening(test, &client);
        let (id, unknown) = (open.pending.id, build_opening(test, &client).pending.id);
        former.open_transaction(open).await.unwrap();
        assert_eq!(former.load_transaction(unknown).await, Ok(None));

        replica.answer(&["REPLICAOF", "NO", "ONE"]);
        let promoted = RedisStore::open(options_for_replicas(&replica.url(), 0)).await.unwrap();
        promoted.complete_transaction(build_completion(id, 1)).await.unwrap();
        let later = build_opening(test, &client);
        let unknown = later.pending.id;
        promoted.open_transaction(later).await.unwrap();
        assert!(matches!(former.load_transaction(unknown).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(
            former.complete_transaction(build_completion(unknown, 2)).await,
            Err(StoreError::Unavailable(_))
        ));
        test.clock.advance(WINDOW);
        assert!(matches!(former.load_transaction(id).await, Err(StoreError::Unavailable(_))), "it has not expired");
    });
}

/// A failover would lose these changes.
#[test]
fn another_node_does_not_report_changes_that_no_replica_has_yet() {
    run(async {
        let group = Sentinels::start(1, &[]);
        let master = group.master().url();
        let test = &connect_store(group, standalone(&master), RETENTION);
        let client = client_with(test, 5).await;
        let open = OpenTransaction {
            idempotency: Some(build_idempotent_answer(test, &client, 1, 1)),
            ..build_opening(test, &client)
        };
        let options_for_replicas =
            || RedisOptions { wait_replicas: 1, ..options(standalone(&master), Arc::clone(&test.clock), RETENTION) };
        let [first, second] = [
            RedisStore::open(options_for_replicas()).await.unwrap(),
            RedisStore::open(options_for_replicas()).await.unwrap(),
        ];
        let load_answer = || second.load_idempotent_answer(idempotency_scope(&client, 1));
        assert_eq!(load_answer().await, Ok(None));

        let replica = test.server.replicas().next().unwrap();
        replica.pause();
        assert!(matches!(first.open_transaction(open.clone()).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(load_answer().await, Err(StoreError::Unavailable(_))));
        replica.resume();
        let answer = eventually("the answer", TIMEOUT, || async { load_answer().await.ok().flatten() }).await;
        assert_eq!(Some(answer), open.idempotency);
        let id = open.pending.id;
        assert!(matches!(first.open_transaction(open).await, Ok(OpenOutcome::Opened { balance: 4 })));

        replica.pause();
        assert!(matches!(first.complete_transaction(build_completion(id, 1)).await, Err(StoreError::Unavailable(_))));
        // This node waits for no replica, so the completion is on the master alone.
        let completed = test.store.complete_transaction(build_completion(id, 1)).await;
        assert!(matches!(completed, Ok(CompleteOutcome::Completed { .. })), "{completed:?}");
        assert!(matches!(second.load_transaction(id).await, Err(StoreError::Unavailable(_))));
        replica.resume();
        let seen = eventually("the end", TIMEOUT, || async { second.load_transaction(id).await.ok() }).await;
        assert!(matches!(seen, Some(TransactionRecord::Completed(_))), "{seen:?}");
    });
}
