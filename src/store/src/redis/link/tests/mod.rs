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

/// Increments a counter, and returns the count.
static COUNT: Script = Script::confirmed("count", "#!lua\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])");

/// Adds an id to a set, and counts the new ids under `<key>:noted`. Returns the id.
static NOTE: Script = Script::confirmed(
    "note",
    "#!lua\nif redis.call('SADD', KEYS[1], ARGV[1]) == 1 then redis.call('INCR', KEYS[1] .. ':noted') end return \
        ARGV[1]",
);

/// Returns the options of a link to one server, with short time limits.
fn options(url: &str) -> LinkOptions {
    with_short_limits(standalone(url))
}

/// Returns the options of a link with short time limits, so that tests of outages are short too.
fn with_short_limits(servers: RedisServers) -> LinkOptions {
    LinkOptions { call_timeout: Duration::from_secs(1), ..LinkOptions::new(servers) }
}

/// Returns a link to one server, with short time limits.
fn link(url: &str) -> Link {
    Link::new(options(url))
}

/// Tolerance beyond the time limits that tests check, because the machine may be busy.
const SLACK: Duration = Duration::from_secs(1);

async fn increment(link: &Link, key: &str) -> Result<i64, StoreError> {
    link.call(&COUNT, vec![key.into()], vec![b"1".to_vec()]).await.map(|value| integer(&value))
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::BulkString(text) => std::str::from_utf8(text).unwrap().parse().unwrap(),
        other => panic!("{other:?} is no number"),
    }
}

/// Makes calls concurrently. Returns their results, and the time until the last one has ended.
async fn call_concurrently(
    link: &Link,
    calls: usize,
    key: impl Fn(usize) -> String,
) -> (Vec<Result<i64, StoreError>>, Duration) {
    let started = Instant::now();
    let outcomes = join_all((0..calls).map(|index| {
        let (link, key) = (link.clone(), key(index));
        async move { increment(&link, &key).await }
    }));
    (outcomes.await, started.elapsed())
}

/// Repeats a call until it succeeds. Returns the time that this took.
async fn await_recovery(link: &Link, key: &str, bound: Duration) -> Duration {
    let started = Instant::now();
    loop {
        match increment(link, key).await {
            Ok(_) => return started.elapsed(),
            Err(error) => assert_within(started.elapsed(), bound, &format!("an answer after {error}")),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A thread on which tasks note ids ([`NOTE`]) until it is stopped, each task under its own key. Returns the ids whose
/// calls succeeded, with their keys.
struct NoteWriter {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<(String, String)>>,
}

impl NoteWriter {
    /// Starts the thread with this number of tasks, which choose their keys by `key`.
    fn start(link: &Link, workers: usize, key: impl Fn(usize) -> String + Send + 'static) -> Self {
        let (link, stop) = (link.clone(), Arc::new(AtomicBool::new(false)));
        let is_stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let noted = runtime.block_on(join_all(
                (0..workers).map(|worker| note_ids(link.clone(), worker, key(worker), Arc::clone(&is_stopped))),
            ));
            noted.into_iter().flatten().collect()
        });
        Self { stop, thread }
    }

    /// Stops the thread. Returns the keys and ids of the successful calls.
    fn stop(self) -> Vec<(String, String)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Notes ids under a key until it is stopped. Returns the key with each id whose call succeeded.
async fn note_ids(link: Link, worker: usize, key: String, is_stopped: Arc<AtomicBool>) -> Vec<(String, String)> {
    let mut noted = Vec::new();
    for id in (0_u32..).map(|turn| format!("{worker}-{turn}")) {
        if is_stopped.load(Ordering::Relaxed) {
            break;
        }
        match link.call(&NOTE, vec![key.clone().into()], vec![id.clone().into()]).await {
            Ok(_) => noted.push((key.clone(), id)),
            Err(StoreError::Unavailable(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
    noted
}
