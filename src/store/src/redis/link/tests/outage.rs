//! A server that dies, hangs, loads or is down for long.

use sakshi_kit::waiting::assert_within;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::harness::{DURABLE, RedisServer, TIMEOUT, eventually};
use super::{
    COUNT, NoteWriter, SLACK, await_recovery, call_concurrently, increment, integer, link, options, with_short_limits,
};
use crate::StoreError;
use crate::redis::link::{Link, LinkOptions, RedisServers, RedisTopology};
use crate::redis::script::Script;

fn is_unavailable(outcome: &Result<i64, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Unavailable(_)))
}

#[tokio::test]
async fn kills_under_load_lose_no_answered_call_and_execute_none_twice() {
    let server = RedisServer::start(DURABLE);
    let link = link(&server.url());
    let note_writer = NoteWriter::start(&link, 16, |worker| format!("n{worker}"));
    for round in 1..=5 {
        await_recovery(&link, "round", SLACK * 5).await;
        let has_worked = || server.answer(&["SCARD", "n0"]).integer().filter(|&ids| ids >= round * 20);
        eventually("work between the kills", TIMEOUT, has_worked);
        server.restart();
    }
    let answered_ids = note_writer.stop();
    assert!(answered_ids.len() > 100, "{}", answered_ids.len());
    for worker in 0..16 {
        let key = format!("n{worker}");
        let members = server.answer(&["SMEMBERS", &key]);
        let noted_ids: BTreeSet<String> =
            members.members().iter().filter_map(super::harness::resp::Reply::text).collect();
        let count = server.answer(&["GET", &format!("{key}:noted")]).text().unwrap();
        assert_eq!(count, noted_ids.len().to_string(), "noted twice");
        for (_, id) in answered_ids.iter().filter(|(noted_key, _)| *noted_key == key) {
            assert!(noted_ids.contains(id), "{key} {id} was answered and lost");
        }
    }
}

#[tokio::test]
async fn calls_to_a_down_server_wait_for_their_time_limit_and_later_ones_do_not() {
    let server = RedisServer::start(&[]);
    let link = link(&server.url());
    assert_eq!(increment(&link, "a").await, Ok(1));
    server.kill9();
    let (outcomes, took) = call_concurrently(&link, 200, |index| index.to_string()).await;
    assert!(outcomes.iter().all(is_unavailable), "{outcomes:?}");
    assert_within(took, Duration::from_secs(1) + SLACK, "calls to a server that is down");
    // The pauses between attempts grow.
    let repeats = link.figures().repeats;
    assert!((200..200 * 20).contains(&repeats), "{repeats}");
    let (outcomes, took) = call_concurrently(&link, 200, |index| index.to_string()).await;
    assert!(outcomes.iter().all(is_unavailable), "{outcomes:?}");
    assert_within(took, Duration::from_millis(500), "calls to a server that is known to be down");
    assert_eq!(link.figures().in_flight, 0);
    server.restart();
    let took = await_recovery(&link, "a", Duration::from_secs(1) + SLACK).await;
    println!("answered {took:?} after the server was ready again");
}

#[tokio::test]
async fn calls_to_a_hanging_server_keep_the_limits_of_time_and_number() {
    let server = RedisServer::start(&[]);
    let mut options = options(&server.url());
    options.max_waiting = 50;
    let link = Link::new(options);
    assert_eq!(increment(&link, "a").await, Ok(1));
    server.pause();
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        let (outcomes, took) = call_concurrently(&link, 80, |index| index.to_string()).await;
        assert_within(took, Duration::from_secs(1) + SLACK, "calls to a server that is down");
        let timed_out = outcomes.iter().filter(|outcome| is_unavailable(outcome)).count();
        let refused = outcomes.iter().filter(|outcome| **outcome == Err(StoreError::Overloaded)).count();
        assert_eq!(timed_out + refused, 80, "{outcomes:?}");
        assert_eq!(link.figures().in_flight, 0);
    }
    assert!(link.figures().refused >= 30, "50 of the first 80 calls may wait");
    server.resume();
    let took = await_recovery(&link, "b", Duration::from_secs(1) + SLACK).await;
    println!("answered {took:?} after the server went on");
}

#[tokio::test]
async fn a_call_until_answered_has_no_time_limit() {
    let server = Arc::new(RedisServer::start(DURABLE));
    let link = link(&server.url());
    assert_eq!(increment(&link, "a").await, Ok(1));
    server.kill9();
    let unlimited_call = link.call_until_answered(&COUNT, vec![b"a".to_vec()], vec![b"1".to_vec()]);
    let server_to_restart = server.clone();
    let limited_calls = async {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(3) {
            assert!(is_unavailable(&increment(&link, "a").await));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::task::spawn_blocking(move || server_to_restart.restart()).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(unlimited_call, limited_calls);
    assert_eq!(outcome.map(|value| integer(&value)), Ok(2));
}

#[tokio::test]
async fn a_call_maybe_executed_before_the_server_was_full_has_no_known_outcome() {
    let server = RedisServer::start(&["maxmemory 2mb", "maxmemory-policy noeviction"]);
    let (response_timeout, call_timeout) = (Duration::from_millis(400), Duration::from_secs(20));
    let link = Link::new(LinkOptions { response_timeout, call_timeout, ..options(&server.url()) });
    static FILL: Script =
        Script::confirmed("fill", "#!lua\nreturn redis.call('SET', KEYS[1], string.rep('x', ARGV[1]))");
    let fill = |bytes: &str| link.call(&FILL, vec![b"a".to_vec()], vec![bytes.as_bytes().to_vec()]);
    // Opens all connections, and loads the script.
    for _ in 0..16 {
        fill("1").await.unwrap();
    }
    server.pause();
    let resume_late = async {
        // By then the first reply is no longer awaited.
        tokio::time::sleep(response_timeout * 3).await;
        server.resume();
    };
    let (outcome, ()) = tokio::join!(fill("4000000"), resume_late);
    assert_eq!(outcome, Err(StoreError::Unavailable("its memory or its disk is full".to_owned())));
    assert_eq!(server.answer(&["STRLEN", "a"]).integer(), Some(4_000_000));
    assert_eq!(increment(&link, "b").await, Err(StoreError::Full));
}

#[tokio::test]
async fn a_server_that_starts_late_is_used_once_it_is_up() {
    let server = RedisServer::start(&[]);
    server.kill9();
    let link = link(&server.url());
    assert!(is_unavailable(&increment(&link, "a").await));
    server.restart();
    await_recovery(&link, "a", Duration::from_secs(1) + SLACK).await;
}

#[tokio::test]
async fn unknown_slot_owners_are_queried_until_the_time_limit_and_later_once() {
    let server = RedisServer::start(&[]);
    server.kill9();
    let link = Link::new(with_short_limits(RedisServers::new(&[server.url()], RedisTopology::Cluster).unwrap()));
    assert!(is_unavailable(&increment(&link, "a").await));
    assert!(link.figures().repeats > 0);
    // By the end of the second call, the server has been down for longer than a call may take.
    assert!(is_unavailable(&increment(&link, "a").await));
    let before = link.figures().repeats;
    assert!(is_unavailable(&increment(&link, "a").await));
    assert_eq!(link.figures().repeats, before);
}
