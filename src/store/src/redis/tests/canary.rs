//! A node without the keys of the store.

use std::sync::Arc;

use futures_util::future::join_all;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::ids::TxnId;
use sakshi_domain::tenancy::KeyDigest;
use zeroize::Zeroizing;

use super::server::RedisServer;
use super::{options, standalone, test_store};
use crate::StoreError;
use crate::Vault;
use crate::conformance::TestStore;
use crate::conformance::fixture::{
    RETENTION, build_app, build_completion, build_event, build_opening, client_with, open_pending,
};
use crate::conformance::flow_fixture::{ShortReport, build_report, create_client_app, locker_flow};
use crate::redis::{RedisOptions, RedisStore};

/// Returns options with test keys, each identified by a number. The first key seals; all of them open.
fn options_with_keys(server: &RedisServer, keys: &[u8]) -> RedisOptions {
    let clock =
        Arc::new(sakshi_domain::clock::ManualClock::starting_at(sakshi_domain::time::Timestamp::from_millis(0)));
    let keys: Vec<_> = keys.iter().map(|byte| Zeroizing::new(vec![*byte; 32])).collect();
    RedisOptions { vault: Arc::new(Vault::new(&keys).unwrap()), ..options(standalone(&server.url()), clock, RETENTION) }
}

#[test]
fn a_node_without_the_key_is_refused_and_writes_nothing() {
    let test = test_store();
    crate::conformance::run(async {
        let client = client_with(&test, 5).await;
        open_pending(&test, &client).await;
        let before = test.server.answer(&["DBSIZE"]);
        assert_eq!(RedisStore::open(options_with_keys(&test.server, &[9])).await.err(), Some(StoreError::WrongKey));
        assert_eq!(test.server.answer(&["DBSIZE"]), before);
        assert!(
            RedisStore::open(options_with_keys(&test.server, &[9, 7])).await.is_ok(),
            "the old key is among the previous ones"
        );
        assert_eq!(
            RedisStore::open(options_with_keys(&test.server, &[7])).await.err(),
            Some(StoreError::WrongKey),
            "the store is now written under the new key"
        );
        assert_eq!(test.store().balance(client).await, Ok(Some(4)));
    });
}

#[test]
fn only_one_of_two_keys_starting_concurrently_opens_an_empty_server() {
    let server = RedisServer::start(&[]);
    crate::conformance::run(async {
        let opened =
            join_all((0..12).map(|number| RedisStore::open(options_with_keys(&server, &[1 + number % 2])))).await;
        let admitted = [0, 1].map(|first| opened.iter().skip(first).step_by(2).map(Result::is_ok).collect::<Vec<_>>());
        assert!(
            admitted == [vec![true; 6], vec![false; 6]] || admitted == [vec![false; 6], vec![true; 6]],
            "{admitted:?}"
        );
    });
}

#[test]
fn an_emptied_server_is_unhealthy_and_reports_nothing_as_missing() {
    let test = test_store();
    crate::conformance::run(async {
        assert_eq!(test.store.check().await, Ok(()));
        let client = client_with(&test, 1).await;
        let (app, client_app) = (build_app(&test, &client), create_client_app(&test).await);
        assert!(test.store.create_app(app.clone()).await.unwrap());
        let unknown = TxnId::generate(client.partition(), 0);
        let unknown_key = test.store.find_key(KeyDigest([1; 32]), app.app_id.clone()).await;
        assert!(
            unknown_key == Ok(None) && test.store.load_transaction(unknown).await == Ok(None),
            "an unknown key is reported as unknown"
        );
        test.server.answer(&["FLUSHALL"]);
        let assert_lost =
            |error: Option<StoreError>| assert!(matches!(error, Some(StoreError::DataLost(_))), "{error:?}");
        let (store, event) = (&test.store, build_event(&test, &client, 1));
        assert_lost(store.check().await.err());
        assert_lost(store.find_key(KeyDigest([1; 32]), app.app_id.clone()).await.err());
        assert_lost(store.load_transaction(unknown).await.err());
        assert_lost(store.open_transaction(build_opening(&test, &client)).await.err());
        assert_lost(store.complete_transaction(build_completion(unknown, 1)).await.err());
        assert_lost(store.load_event(event.id).await.err());
        assert_lost(store.open_flow(locker_flow(&test, &client_app).opening(&test)).await.err());
        assert_lost(
            store
                .report_flow(build_report(
                    &locker_flow(&test, &client_app),
                    ShortReport::Locker { status: "Fetched", content: 1 },
                ))
                .await
                .err(),
        );
        assert_lost(store.webhook_urls(app.app_id.clone()).await.err());
        assert_lost(store.set_webhook_url(app.app_id, ApiType::ESign, None).await.err());
    });
}
