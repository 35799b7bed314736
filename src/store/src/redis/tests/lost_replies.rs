//! The conformance suite while `redis::lost_replies` loses replies, and answers that depend on replicas.

use std::sync::Arc;

use sakshi_domain::grant_request::GrantState;
use sakshi_domain::tenancy::{ClientPatch, KeyDigest};
use sakshi_kit::redis::groups::Sentinels;
use sakshi_kit::waiting::eventually;

use super::server::{RedisServer, TIMEOUT};
use super::{connect_store, options, standalone};
use crate::conformance::console::{build_grant_request, signatory};
use crate::conformance::fixture::{
    RETENTION, WINDOW, build_app, build_client, build_completion, build_event, build_idempotent_answer, build_opening,
    client_with, idempotency_scope, open_pending, register_guest, sealed, store_event,
};
use crate::conformance::flow_fixture::{
    ShortReport, accept_report, build_report, create_client_app, locker_flow, open_flow,
};
use crate::conformance::tenancy::build_key;
use crate::conformance::users::build_user;
use crate::conformance::{TestStore as _, run};
use crate::redis::{RedisOptions, RedisStore};
use crate::{
    CompleteOutcome, CompleteTransaction, DecideGrant, InviteDigest, OpenOutcome, OpenTransaction, Rows, Store,
    StoreError, TransactionRecord,
};

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

/// Whatever was erased since the failover is still there.
#[test]
fn a_replaced_master_returns_no_personal_data() {
    run(async {
        let master = RedisServer::start(&[]);
        let replica = RedisServer::start(&[&format!("replicaof 127.0.0.1 {}", master.port())]);
        let test = &connect_store((), standalone(&master.url()), RETENTION);
        let client = client_with(test, 5).await;
        let event = store_event(test, build_event(test, &client, 5)).await;
        register_guest(test, &event).await;
        let id = open_pending(test, &client).await.id;
        let complete = CompleteTransaction { evidence: Some(sealed("a proof")), ..build_completion(id, 1) };
        test.store().complete_transaction(complete).await.unwrap();
        let client_app = create_client_app(test).await;
        let flow = open_flow(test, locker_flow(test, &client_app)).await;
        accept_report(test, &flow, ShortReport::Locker { status: "Fetched", content: 1 }).await;
        let former =
            RedisOptions { wait_replicas: 1, ..options(standalone(&master.url()), Arc::clone(&test.clock), RETENTION) };
        let former = eventually("the replica", TIMEOUT, || async { RedisStore::open(former.clone()).await.ok() }).await;
        let rows = Rows { offset: 0, limit: 10, max_bytes: usize::MAX };
        let read = async || {
            [
                ("a result", former.load_transaction(id).await.map(drop)),
                ("a list", former.summarise_transactions(vec![id]).await.map(drop)),
                ("evidence", former.load_evidence(id).await.map(drop)),
                ("guests", former.list_guests(event.id, rows).await.map(drop)),
                ("registrations", former.list_registrations(event.id, rows).await.map(drop)),
                ("a flow", former.load_flow(flow.id, flow.app.clone()).await.map(drop)),
            ]
        };
        let before = read().await;
        assert!(before.iter().all(|(_, outcome)| outcome.is_ok()), "{before:?}");
        replica.answer(&["REPLICAOF", "NO", "ONE"]);
        let after = read().await;
        let is_unavailable = |outcome: &_| matches!(outcome, Err(StoreError::Unavailable(_)));
        assert!(after.iter().all(|(_, outcome)| is_unavailable(outcome)), "{after:?}");
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

/// A failover would lose these changes, and nobody would make them again.
#[test]
fn a_repeated_change_is_reported_as_done_only_once_replicas_have_it() {
    run(async {
        let group = Sentinels::start(1, &[]);
        let master = group.master().url();
        let test = &connect_store(group, standalone(&master), RETENTION);
        let waiting = RedisStore::open(RedisOptions {
            wait_replicas: 1,
            ..options(standalone(&master), Arc::clone(&test.clock), RETENTION)
        })
        .await
        .unwrap();
        let client_app = create_client_app(test).await;
        let (known, flow) = (&client_app.client, open_flow(test, locker_flow(test, &client_app)).await);
        let request = build_grant_request(signatory("op_1"), 500);
        test.store().ask_grant(request.clone()).await.unwrap();
        let (client, app) = (build_client(test), build_app(test, known));
        let (key, user) = (build_key(test, known, vec![]), build_user(test, known, "planted-one@example.com"));
        let renamed = ClientPatch { name: Some("Bank of Repetition".into()), ..ClientPatch::default() };
        let until = test.now() + WINDOW;
        let make_changes = async |store: &Store| {
            let report = build_report(&flow, ShortReport::Locker { status: "Fetched", content: 1 });
            let decision =
                DecideGrant { id: request.id.clone(), by: signatory("op_2"), decision: GrantState::Confirmed };
            [
                ("a client", store.create_client(client.clone()).await.map(drop)),
                ("an app", store.create_app(app.clone()).await.map(drop)),
                ("a key", store.create_key(key.clone(), KeyDigest([1; 32])).await.map(drop)),
                ("a new name", store.patch_client(known.clone(), renamed.clone(), test.now()).await.map(drop)),
                ("a user", store.invite_user(user.clone(), InviteDigest([1; 32]), until).await.map(drop)),
                ("a decision", store.decide_grant(decision).await.map(drop)),
                ("a report", store.report_flow(report).await.map(drop)),
            ]
        };

        let replica = test.server.replicas().next().unwrap();
        replica.pause();
        // This node waits for no replica, so the changes are on the master alone.
        let made = make_changes(test.store()).await;
        assert!(made.iter().all(|(_, outcome)| outcome.is_ok()), "{made:?}");
        let reported = make_changes(&waiting).await;
        let is_unavailable = |outcome: &_| matches!(outcome, Err(StoreError::Unavailable(_)));
        assert!(reported.iter().all(|(_, outcome)| is_unavailable(outcome)), "{reported:?}");
        replica.resume();
        eventually("the replica", TIMEOUT, || async {
            make_changes(&waiting).await.iter().all(|(_, outcome)| outcome.is_ok()).then_some(())
        })
        .await;
    });
}
