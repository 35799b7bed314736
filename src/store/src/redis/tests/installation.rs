//! A server and the installation of its store.

use std::sync::Arc;

use futures_util::future::join_all;
use sakshi_domain::clock::ManualClock;
use sakshi_domain::time::Timestamp;

use super::server::RedisServer;
use super::{options, standalone};
use crate::conformance::fixture::RETENTION;
use crate::conformance::run;
use crate::installation::ownership;
use crate::redis::{RedisOptions, RedisStore};
use crate::vault::test_vault;
use crate::{OpenError, Ownership, StoreError};

fn node_options(server: &RedisServer, ownership: &Ownership) -> RedisOptions {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(0)));
    RedisOptions { ownership: ownership.clone(), ..options(standalone(&server.url()), clock, RETENTION) }
}

async fn open(server: &RedisServer, ownership: &Ownership) -> Result<RedisStore, StoreError> {
    RedisStore::open(node_options(server, ownership)).await
}

/// Checks that a node of an installation would open the store. Nothing is written.
async fn may_open(server: &RedisServer, ownership: &Ownership) -> Result<(), OpenError> {
    crate::redis::may_open(node_options(server, ownership)).await
}

/// Checks that opening a store and `may_open` refuse in the same words.
async fn assert_refused(server: &RedisServer, ownership: &Ownership) {
    let refusal = open(server, ownership).await.err().unwrap();
    assert!(matches!(refusal, StoreError::OtherInstallation { .. }), "{refusal}");
    assert_eq!(may_open(server, ownership).await, Err(OpenError::Refused(refusal)));
}

/// Returns what opening a store writes: the canary (a sealed text that shows a wrong encryption key), the installation,
/// and the number of nodes with a heartbeat.
fn marks(server: &RedisServer) -> [Option<String>; 3] {
    let text = |key| server.answer(&["GET", key]).text();
    [text("canary"), text("installation"), server.answer(&["ZCARD", "{nodes}beats"]).text()]
}

#[test]
fn a_node_of_another_profile_or_authority_is_refused_and_writes_nothing() {
    let server = RedisServer::start(&[]);
    run(async {
        let stage = ownership("stage https://one.example");
        assert_eq!(may_open(&server, &stage).await, Ok(()), "there is no store yet");
        assert_eq!(server.answer(&["DBSIZE"]).text().as_deref(), Some("0"), "nothing is written");
        open(&server, &stage).await.unwrap();
        let before = marks(&server);
        assert_refused(&server, &ownership("production https://one.example")).await;
        assert_refused(&server, &ownership("stage https://other.example")).await;
        assert_eq!(marks(&server), before);
        open(&server, &stage).await.unwrap();
    });
}

#[test]
fn a_store_without_an_installation_belongs_to_the_first_that_opens_it() {
    let server = RedisServer::start(&[]);
    run(async {
        open(&server, &ownership("production https://one.example")).await.unwrap();
        server.answer(&["DEL", "installation"]);
        open(&server, &ownership("stage https://one.example")).await.unwrap();
        assert_refused(&server, &ownership("production https://one.example")).await;
    });
}

#[test]
fn only_one_of_two_installations_starting_concurrently_opens_the_store() {
    let server = RedisServer::start(&[]);
    run(async {
        let installations = ["stage https://one.example", "production https://two.example"].map(ownership);
        let opened = join_all((0..12).map(|number| open(&server, &installations[number % 2]))).await;
        let admitted = [0, 1].map(|first| opened.iter().skip(first).step_by(2).map(Result::is_ok).collect::<Vec<_>>());
        assert!(
            admitted == [vec![true; 6], vec![false; 6]] || admitted == [vec![false; 6], vec![true; 6]],
            "{admitted:?}"
        );
    });
}

#[test]
fn a_store_is_taken_over_by_another_installation_and_not_given_back() {
    let server = RedisServer::start(&[]);
    run(async {
        let before = ownership("stage https://one.example");
        open(&server, &before).await.unwrap();
        let moving = Ownership { takes_over: Some(before.owner.clone()), ..ownership("stage https://two.example") };
        for ownership in [&moving, &moving, &ownership("stage https://two.example")] {
            assert_eq!(may_open(&server, ownership).await, Ok(()));
            open(&server, ownership).await.unwrap();
        }
        assert_refused(&server, &before).await;
    });
}

#[test]
fn a_silent_server_is_no_refusal() {
    let server = RedisServer::start(&[]);
    let options = node_options(&server, &ownership("stage https://one.example"));
    server.kill9();
    run(async {
        let checked = crate::redis::may_open(options).await;
        assert!(matches!(checked, Err(OpenError::Unreadable(StoreError::Unavailable(_)))), "{checked:?}");
    });
}

#[test]
fn may_open_refuses_wrong_keys_moves_and_eviction_as_opening_does() {
    let server = RedisServer::start(&[]);
    run(async {
        let stage = ownership("stage https://one.example");
        open(&server, &stage).await.unwrap();
        let other = || RedisOptions { vault: Arc::new(test_vault(&[9])), ..node_options(&server, &stage) };
        assert_eq!(crate::redis::may_open(other()).await, Err(OpenError::Refused(StoreError::WrongKey)));
        assert_eq!(RedisStore::open(other()).await.err(), Some(StoreError::WrongKey));
        for commands in [
            &["SET", "moving", "some store"][..],
            &["CONFIG", "SET", "maxmemory", "64mb", "maxmemory-policy", "allkeys-lru"],
        ] {
            server.answer(commands);
            let before = server.answer(&["DBSIZE"]).text();
            let refusal = open(&server, &stage).await.err().unwrap();
            assert_eq!(may_open(&server, &stage).await, Err(OpenError::Refused(refusal)), "{commands:?}");
            assert_eq!(server.answer(&["DBSIZE"]).text(), before);
            server.answer(&["DEL", "moving"]);
        }
        server.answer(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        assert_eq!(may_open(&server, &stage).await, Ok(()));
    });
}
