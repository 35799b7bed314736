//! A master watched by sentinels.

use sakshi_kit::waiting::assert_within;
use std::time::{Duration, Instant};

use super::harness::groups::Sentinels;
use super::harness::{RedisServer, TIMEOUT};
use super::{await_recovery, increment, with_short_limits};
use crate::StoreError;
use crate::redis::link::{Link, RedisServers, RedisTopology};

/// Returns a link to the master that sentinels name, with short time limits.
fn link(sentinels: &[String]) -> Link {
    let topology = RedisTopology::Sentinel { service: Sentinels::SERVICE.to_owned() };
    Link::new(with_short_limits(RedisServers::new(sentinels, topology).unwrap()))
}

#[tokio::test]
async fn the_link_follows_a_demotion_and_a_failover() {
    let group = Sentinels::start(2, &[]);
    let link = link(&group.urls());
    assert_eq!(increment(&link, "a").await, Ok(1));

    // The old master is notified only after seconds. Until the link asks the sentinels, it takes writes that are lost.
    let old = group.master().port();
    let new = group.demote_master();
    assert_ne!(old, new.port());
    let took = await_following(&link, new).await;
    println!("followed {took:?} after the sentinels agreed on a demotion");

    new.kill9();
    let took = await_recovery(&link, "a", TIMEOUT).await;
    println!("answered {took:?} after the master was killed");
    await_following(&link, group.await_failover(new.port())).await;
}

#[tokio::test]
async fn a_sentinel_may_require_the_credentials_or_none() {
    let master = RedisServer::start(&["requirepass geheim"]);
    let monitor = format!("sentinel monitor {} 127.0.0.1 {} 1", Sentinels::SERVICE, master.port());
    let auth = format!("sentinel auth-pass {} geheim", Sentinels::SERVICE);
    for own_password in [None, Some("requirepass geheim")] {
        let lines: Vec<&str> = [monitor.as_str(), auth.as_str()].into_iter().chain(own_password).collect();
        let sentinel = RedisServer::start_as(&["--sentinel"], &lines);
        let link = link(&[format!("redis://:geheim@{}/", sentinel.address())]);
        await_recovery(&link, "a", TIMEOUT).await;
    }
}

#[tokio::test]
async fn without_a_reachable_sentinel_the_error_mentions_sentinels() {
    let master = RedisServer::start(&[]);
    for no_sentinel in ["redis://127.0.0.1:1".to_owned(), master.url()] {
        let refused = increment(&link(&[no_sentinel]), "a").await.unwrap_err();
        assert!(matches!(&refused, StoreError::Unavailable(reason) if reason.contains("no sentinel")), "{refused}");
    }
}

/// Waits until the writes of the link arrive at this server. Returns the time that this took.
async fn await_following(link: &Link, master: &RedisServer) -> Duration {
    let started = Instant::now();
    loop {
        let value = increment(link, "a").await.ok();
        if value.is_some() && value.map(|value| value.to_string()) == master.answer(&["GET", "a"]).text() {
            return started.elapsed();
        }
        assert_within(started.elapsed(), Duration::from_secs(4), "following the master");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
