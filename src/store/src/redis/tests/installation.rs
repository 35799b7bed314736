//! A server and the installation of its store.

use std::sync::Arc;

use futures_util::future::join_all;
use sakshi_domain::clock::ManualClock;
use sakshi_domain::time::Timestamp;

use super::server::RedisServer;
use super::{options, standalone};
use crate::conformance::fixture::RETENTION;
use crate::conformance::run;
use crate::redis::{RedisOptions, RedisStore};
use crate::vault::test_vault;
use crate::{OpenError, Ownership, StoreError};

fn of(text: &str) -> Ownership {
    Ownership { owner: text.parse().unwrap(), takes_over: None }
}

fn of_node(server: &RedisServer, ownership: &Ownership) -> RedisOptions {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(0)));
    RedisOptions { ownership: ownership.clone(), ..options(standalone(&server.url()), clock, RETENTION) }
}

async fn open(server: &RedisServer, ownership: &Ownership) -> Result<RedisStore, StoreError> {
    RedisStore::open(of_node(server, ownership)).await
}

async fn may_open(server: &RedisServer, ownership: &Ownership) -> Result<(), OpenError> {
    crate::redis::may_open(of_node(server, ownership)).await
}

/// Checks that opening and inspecting it are refused in the same words.
async fn is_refused(server: &RedisServer, ownership: &Ownership) {
    let refusal = open(server, ownership).await.err().unwrap();
    assert!(matches!(refusal, StoreError::OtherInstallation { .. }), "{refusal}");
    assert_eq!(may_open(server, ownership).await, Err(OpenError::Refused(refusal)));
}

fn contents(server: &RedisServer) -> [Option<String>; 3] {
    let text = |key| server.answer(&["GET", key]).text();
    [text("canary"), text("installation"), server.answer(&["ZCARD", "{nodes}beats"]).text()]
}

#[test]
fn a_node_of_another_profile_or_authority_is_refused_and_writes_nothing() {
    let server = RedisServer::start(&[]);
    run(async {
        let stage = of("stage https://one.example");
        assert_eq!(may_open(&server, &stage).await, Ok(()), "there is no store yet");
        assert_eq!(server.answer(&["DBSIZE"]).text().as_deref(), Some("0"), "nothing is written");
        open(&server, &stage).await.unwrap();
        let before = contents(&server);
        is_refused(&server, &of("production https://one.example")).await;
        is_refused(&server, &of("stage https://other.example")).await;
        assert_eq!(contents(&server), before);
        open(&server, &stage).await.unwrap();
    });
}

#[test]
fn a_store_without_an_installation_belongs_to_the_first_that_opens_it() {
    let server = RedisServer::start(&[]);
    run(async {
        open(&server, &of("production https://one.example")).await.unwrap();
        server.answer(&["DEL", "installation"]);
        open(&server, &of("stage https://one.example")).await.unwrap();
        is_refused(&server, &of("production https://one.example")).await;
    });
}

#[test]
fn only_one_of_two_installations_starting_concurrently_opens_the_store() {
    let server = RedisServer::start(&[]);
    run(async {
        let kinds = ["stage https://one.example", "production https://two.example"].map(of);
        let opened = join_all((0..12).map(|number| open(&server, &kinds[number % 2]))).await;
        let kinds = [0, 1].map(|kind| opened.iter().skip(kind).step_by(2).map(Result::is_ok).collect::<Vec<_>>());
        assert!(kinds == [vec![true; 6], vec![false; 6]] || kinds == [vec![false; 6], vec![true; 6]], "{kinds:?}");
    });
}

#[test]
fn a_store_is_taken_over_by_another_installation_and_not_given_back() {
    let server = RedisServer::start(&[]);
    run(async {
        let before = of("stage https://one.example");
        open(&server, &before).await.unwrap();
        let moving = Ownership { takes_over: Some(before.owner.clone()), ..of("stage https://two.example") };
        for ownership in [&moving, &moving, &of("stage https://two.example")] {
            assert_eq!(may_open(&server, ownership).await, Ok(()));
            open(&server, ownership).await.unwrap();
        }
        is_refused(&server, &before).await;
    });
}

#[test]
fn a_silent_server_is_no_refusal() {
    let server = RedisServer::start(&[]);
    let options = of_node(&server, &of("stage https://one.example"));
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
        let stage = of("stage https://one.example");
        open(&server, &stage).await.unwrap();
        let other = || RedisOptions { vault: Arc::new(test_vault(&[9])), ..of_node(&server, &stage) };
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
