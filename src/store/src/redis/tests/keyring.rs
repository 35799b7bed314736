//! A node without the keys of the store.

use std::sync::Arc;

use futures_util::future::join_all;
use zeroize::Zeroizing;

use super::server::RedisServer;
use super::{options, universe};
use crate::conformance::World;
use crate::conformance::fixture::{RETENTION, client_with, opened};
use crate::error::StoreError;
use crate::redis::{RedisOptions, RedisStore};
use crate::store::Store;
use crate::vault::Vault;

fn with_keys(server: &RedisServer, keys: &[u8]) -> RedisOptions {
    let clock = Arc::new(sakshi_domain::clock::ManualClock::starting_at(sakshi_domain::time::Timestamp::from_millis(0)));
    let keys: Vec<_> = keys.iter().map(|byte| Zeroizing::new(vec![*byte; 32])).collect();
    RedisOptions { vault: Arc::new(Vault::new(&keys).unwrap()), ..options(server.url().parse().unwrap(), clock, RETENTION) }
}

#[test]
fn a_node_without_the_key_is_refused_and_writes_nothing() {
    let world = universe();
    crate::conformance::run(async {
        let client = client_with(&world, 5).await;
        opened(&world, &client).await;
        let before = world.server.answer(&["DBSIZE"]);
        assert_eq!(RedisStore::open(with_keys(&world.server, &[9])).await.err(), Some(StoreError::WrongKey));
        assert_eq!(world.server.answer(&["DBSIZE"]), before);
        assert!(RedisStore::open(with_keys(&world.server, &[9, 7])).await.is_ok(), "the old key is among the previous ones");
        assert_eq!(
            RedisStore::open(with_keys(&world.server, &[7])).await.err(),
            Some(StoreError::WrongKey),
            "since then the store is written under the new one"
        );
        assert_eq!(world.store().balance(client).await, Ok(Some(4)));
    });
}

#[test]
fn of_nodes_with_different_keys_that_start_at_once_on_an_empty_server_one_kind_gets_in() {
    let server = RedisServer::start(&[]);
    crate::conformance::run(async {
        let opened = join_all((0..12).map(|number| RedisStore::open(with_keys(&server, &[1 + number % 2])))).await;
        let kinds = [0, 1].map(|kind| opened.iter().skip(kind).step_by(2).map(Result::is_ok).collect::<Vec<_>>());
        assert!(kinds == [vec![true; 6], vec![false; 6]] || kinds == [vec![false; 6], vec![true; 6]], "{kinds:?}");
    });
}

#[test]
fn a_server_that_was_emptied_is_not_fit() {
    let world = universe();
    crate::conformance::run(async {
        assert_eq!(world.store.check().await, Ok(()));
        world.server.answer(&["FLUSHALL"]);
        assert!(matches!(world.store.check().await, Err(StoreError::Unavailable(_))));
    });
}
