//! Servers that refuse writes, because they are full or a replica.

use std::sync::Arc;

use futures_util::future::join_all;
use sakshi_domain::client_log::Action;
use sakshi_domain::clock::{Clock, ManualClock, SystemClock};
use sakshi_domain::delivery::Attempt;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::tenancy::{ClientPatch, KeyDigest};
use sakshi_domain::transaction::CredentialIdentity;

use super::server::{RedisServer, TIMEOUT};
use super::{options, standalone, test_store, test_store_with_config};
use crate::StoreError;
use crate::conformance::client_log::build_log_entry;
use crate::conformance::fixture::{
    RETENTION, audited_balance, build_completion, build_opening, client_with, open_and_complete, open_pending,
};
use crate::conformance::operators::build_operator;
use crate::conformance::tenancy::build_key;
use crate::conformance::{TestStore, run};
use crate::redis::RedisStore;
use crate::{CompleteOutcome, CompleteTransaction, Erased, KeyEnd, OpenOutcome, PresentedCredential};

#[test]
fn a_full_server_refuses_new_records_and_lets_deliveries_end() {
    run(async {
        let test = &test_store_with_config(&["maxmemory-policy noeviction"], RETENTION);
        let client = client_with(test, 10).await;
        let pending = open_pending(test, &client).await;
        let (delivered, id) = open_and_complete(test, &client).await;
        test.server.answer(&["CONFIG", "SET", "maxmemory", "1"]);
        let credential = Some(PresentedCredential { digest: CredentialIdentity([3; 32]), holder_bound: false });
        let complete = CompleteTransaction { credential, ..build_completion(pending.id, 1) };
        for _ in 0..3 {
            assert_eq!(test.store().open_transaction(build_opening(test, &client)).await, Err(StoreError::Full));
            assert_eq!(test.store().complete_transaction(complete.clone()).await, Err(StoreError::Full));
            assert_eq!(test.store().check().await, Err(StoreError::Full));
        }
        assert!(test.store().load_transaction(pending.id).await.unwrap().is_some());
        assert_eq!(audited_balance(test, &client).await, 8);
        assert!(test.store().claim_delivery(id, delivered.id.into()).await.unwrap());
        let attempt = Attempt::from_status(200, 1);
        test.store().settle_delivery(id, delivered.id.into(), attempt).await.unwrap();
        assert_eq!(test.store().load_delivery(delivered.id.into()).await.unwrap().unwrap().attempt, Some(attempt));
        test.server.answer(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(test.store().check().await, Ok(()));
        let outcome = test.store().complete_transaction(complete).await.unwrap();
        assert!(matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }), "{outcome:?}");
    });
}

#[test]
fn a_full_server_lets_access_end_and_data_be_erased_with_their_entries() {
    run(async {
        let test = &test_store_with_config(&["maxmemory-policy noeviction"], RETENTION);
        let (store, client) = (test.store(), client_with(test, 10).await);
        let pending = open_pending(test, &client).await;
        let (key, operator) = (build_key(test, &client, vec![]), build_operator(test, "Asha Rao"));
        assert!(store.create_key(key.clone(), KeyDigest([1; 32])).await.unwrap());
        store.add_operator(operator.clone(), KeyDigest([2; 32])).await.unwrap();
        test.server.answer(&["CONFIG", "SET", "maxmemory", "1"]);
        store.append_audit("asked".to_owned()).await.unwrap();
        let revoked = store.retire_key(key.key_id, KeyEnd::Revoked(test.now())).await.unwrap().unwrap();
        assert_eq!(revoked.revoked_at, Some(test.now()));
        store.append_client_log(client.clone(), build_log_entry(test, Action::KeyRevoked)).await.unwrap();
        let operator = store.revoke_operator(operator.operator_id, test.now()).await.unwrap().unwrap();
        assert_eq!(operator.revoked_at, Some(test.now()));
        let suspend = ClientPatch { suspended: Some(true), ..ClientPatch::default() };
        assert!(store.patch_client(client.clone(), suspend, test.now()).await.unwrap().unwrap().suspended_at.is_some());
        let erased = store.erase(ErasureSubject::Transaction(pending.id)).await.unwrap();
        assert_eq!(erased, Erased { transactions: 1, ..Erased::default() });
        store.append_audit("answered".to_owned()).await.unwrap();
        let sign_in = build_log_entry(test, Action::SignedIn);
        assert_eq!(store.append_client_log(client.clone(), sign_in).await, Err(StoreError::Full));
        assert_eq!(store.create_key(build_key(test, &client, vec![]), KeyDigest([3; 32])).await, Err(StoreError::Full));
    });
}

#[test]
fn a_nearly_full_server_opens_no_transaction_and_lets_others_end() {
    run(async {
        let test = &test_store_with_config(&["maxmemory-policy noeviction", "maxmemory 64mb"], RETENTION);
        let client = client_with(test, 10).await;
        let pending = open_pending(test, &client).await;
        let set_maxmemory = |bytes: &str| test.server.answer(&["CONFIG", "SET", "maxmemory", bytes]);
        // A fiftieth of this is more than the buffers of connections vary by.
        test.server.answer(&["SETRANGE", "ballast", "30000000", "x"]);
        let used: u64 = {
            let info = test.server.answer(&["INFO", "memory"]);
            info.text()
                .unwrap()
                .lines()
                .find_map(|line| line.strip_prefix("used_memory:"))
                .unwrap()
                .trim()
                .parse()
                .unwrap()
        };
        // A fiftieth of the memory is left.
        set_maxmemory(&(used + used / 49).to_string());
        // Only one of several health checks reads the memory of the servers.
        for _ in 0..25 {
            assert_eq!(test.store().check().await, Ok(()));
        }
        assert_eq!(test.store().open_transaction(build_opening(test, &client)).await, Err(StoreError::Full));
        let outcome = test.store().complete_transaction(build_completion(pending.id, 1)).await.unwrap();
        assert!(matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }), "{outcome:?}");
        set_maxmemory("64mb");
        assert_eq!(test.store().check().await, Ok(()));
        open_pending(test, &client).await;
    });
}

#[test]
fn a_server_that_fills_up_charges_only_for_opened_transactions() {
    run(async {
        let test = &test_store_with_config(&["maxmemory-policy noeviction", "maxmemory 6mb"], RETENTION);
        let client = client_with(test, 100_000).await;
        let (mut opened, mut full) = (0, 0);
        while full < 200 {
            let opens = (0..200).map(|_| test.store().open_transaction(build_opening(test, &client)));
            for outcome in join_all(opens).await {
                match outcome {
                    Ok(OpenOutcome::Opened { .. }) => opened += 1,
                    Err(StoreError::Full) => full += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(opened > 0);
        assert_eq!(audited_balance(test, &client).await, 100_000 - opened);
    });
}

#[test]
fn a_server_that_became_a_replica_is_unavailable() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 3).await;
        test.server.answer(&["CONFIG", "SET", "replica-serve-stale-data", "yes"]);
        test.server.answer(&["REPLICAOF", "127.0.0.1", "1"]);
        let checked = test.store().check().await;
        assert!(matches!(checked, Err(StoreError::Unavailable(_))), "{checked:?}");
        test.server.answer(&["REPLICAOF", "NO", "ONE"]);
        let back = async {
            while test.store().check().await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, back).await.unwrap();
        open_pending(test, &client).await;
        assert_eq!(audited_balance(test, &client).await, 2);
    });
}

#[test]
fn a_server_that_evicts_keys_is_refused_at_opening() {
    run(async {
        let server = RedisServer::start(&["maxmemory 64mb", "maxmemory-policy allkeys-lru"]);
        let clock = Arc::new(ManualClock::starting_at(SystemClock.now()));
        let refused = RedisStore::open(options(standalone(&server.url()), clock, RETENTION)).await.map(drop);
        assert!(
            matches!(&refused, Err(StoreError::Unavailable(reason)) if reason.contains("noeviction")),
            "{refused:?}"
        );
    });
}
