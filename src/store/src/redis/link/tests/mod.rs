//! The link on real servers, and their failures.

mod cluster;
mod outage;
mod plain;
mod replication;
mod sentinel;

use sakshi_kit::waiting::assert_within;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::Value;

use super::{Link, LinkOptions, RedisServers};
use crate::StoreError;
use crate::redis::script::Script;
use crate::redis::tests::{server as harness, standalone};

/// Counts, and returns the count.
static COUNT: Script = Script::new("count", "the reply", "#!lua\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])", true);

/// Records an id once, and reports a repetition.
static NOTE: Script = Script::new(
    "note",
    "the reply",
    "#!lua\nif redis.call('SADD', KEYS[1], ARGV[1]) == 1 then redis.call('INCR', KEYS[1] .. ':noted') end return \
        ARGV[1]",
    true,
);

/// Returns the options of a link with short limits, so that a test of an outage is short too.
fn options(url: &str) -> LinkOptions {
    options_of(standalone(url))
}

fn options_of(servers: RedisServers) -> LinkOptions {
    LinkOptions { call_timeout: Duration::from_secs(1), ..LinkOptions::new(servers) }
}

fn link(url: &str) -> Link {
    Link::new(options(url))
}

/// Tolerance of tests beyond the limit that they check: the machine is shared.
const SLACK: Duration = Duration::from_secs(1);

async fn count(link: &Link, key: &str) -> Result<i64, StoreError> {
    link.call(&COUNT, vec![key.into()], vec![b"1".to_vec()]).await.map(|value| number(&value))
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::BulkString(text) => std::str::from_utf8(text).unwrap().parse().unwrap(),
        other => panic!("{other:?} is no number"),
    }
}

/// Makes calls together. Returns their results, and the duration of the longest.
async fn together(
    link: &Link,
    calls: usize,
    key: impl Fn(usize) -> String,
) -> (Vec<Result<i64, StoreError>>, Duration) {
    let started = Instant::now();
    let outcomes = join_all((0..calls).map(|place| {
        let (link, key) = (link.clone(), key(place));
        async move { count(&link, &key).await }
    }));
    (outcomes.await, started.elapsed())
}

/// Calls until one is answered. Returns the time that this took.
async fn recovers(link: &Link, key: &str, bound: Duration) -> Duration {
    let started = Instant::now();
    loop {
        match count(link, key).await {
            Ok(_) => return started.elapsed(),
            Err(error) => assert_within(started.elapsed(), bound, &format!("an answer after {error}")),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Notes ids one after another, each of `workers` tasks under its own key, on a thread of its own until stopped.
/// Reports the answered ones, by key.
struct Noting {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<(String, String)>>,
}

impl Noting {
    fn start(link: &Link, workers: usize, key: impl Fn(usize) -> String + Send + 'static) -> Self {
        let (link, stop) = (link.clone(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let all = runtime.block_on(join_all(
                (0..workers).map(|worker| note(link.clone(), worker, key(worker), Arc::clone(&told))),
            ));
            all.into_iter().flatten().collect()
        });
        Self { stop, thread }
    }

    fn stop(self) -> Vec<(String, String)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

async fn note(link: Link, worker: usize, key: String, stop: Arc<AtomicBool>) -> Vec<(String, String)> {
    let mut answered = Vec::new();
    for id in (0_u32..).map(|turn| format!("{worker}-{turn}")) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match link.call(&NOTE, vec![key.clone().into()], vec![id.clone().into()]).await {
            Ok(_) => answered.push((key.clone(), id)),
            Err(StoreError::Unavailable(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
    answered
}
