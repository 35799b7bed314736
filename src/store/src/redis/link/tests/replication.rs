//! Writes that wait for a replica.

use sakshi_kit::waiting::assert_within;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::cmd;

use super::harness::groups::Sentinels;
use super::{SLACK, await_recovery, increment, options};
use crate::StoreError;
use crate::redis::link::Link;

#[tokio::test]
async fn a_write_succeeds_only_once_the_replica_has_it() {
    let group = Sentinels::start(1, &[]);
    let mut options = options(&group.master().url());
    options.wait_replicas = 1;
    let link = Link::new(options);
    assert_eq!(increment(&link, "a").await, Ok(1));
    let replica = group.replicas().next().unwrap();
    assert_eq!(replica.answer(&["GET", "a"]).text().as_deref(), Some("1"));

    replica.pause();
    let started = Instant::now();
    let outcome = increment(&link, "b").await;
    assert!(matches!(&outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    assert_within(started.elapsed(), Duration::from_secs(1) + SLACK, "a write that a replica does not have");
    // Read-only calls do not wait, neither for the replica nor behind waiting writes.
    let reading = async {
        let started = Instant::now();
        for _ in 0..20 {
            link.read(cmd("GET").arg("a").to_owned()).await.unwrap();
        }
        assert_within(started.elapsed(), Duration::from_millis(400), "reads beside writes that wait");
    };
    tokio::join!(reading, increment(&link, "c")).1.unwrap_err();

    // Reads also work after writes have failed for so long that further ones are refused at once.
    increment(&link, "c").await.unwrap_err();
    let reads = join_all((0..5).map(|_| link.read(cmd("GET").arg("a").to_owned())));
    let (reads, write) = tokio::join!(reads, increment(&link, "e"));
    assert!(reads.iter().all(Result::is_ok) && write.is_err(), "{reads:?} {write:?}");
    replica.resume();
    await_recovery(&link, "d", Duration::from_secs(5)).await;
}

/// A retry finds the earlier write and writes nothing itself. It must wait for the replica nevertheless, even on
/// another connection.
#[tokio::test]
async fn a_retry_that_writes_nothing_waits_for_the_earlier_write() {
    let group = Sentinels::start(1, &[]);
    let mut options = options(&group.master().url());
    options.wait_replicas = 1;
    let first = Link::new(options.clone());
    let note = |link: Link| async move { link.call(&super::NOTE, vec![b"n".to_vec()], vec![b"id".to_vec()]).await };
    let replica = group.replicas().next().unwrap();
    increment(&first, "warm").await.unwrap();
    replica.pause();
    assert!(note(first).await.is_err());
    assert_eq!(group.master().answer(&["SISMEMBER", "n", "id"]).integer(), Some(1));
    for _ in 0..2 {
        assert!(note(Link::new(options.clone())).await.is_err());
    }
    replica.resume();
    await_recovery(&Link::new(options), "d", Duration::from_secs(5)).await;
}
