//! The memory engine matches real servers, even while they fail. Answers are the same, and after an unanswered call the
//! servers have one of its possible effects.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_kit::random::Random;
use sakshi_kit::redis::groups::{RedisCluster, Sentinels};
use sakshi_kit::redis::{RedisServer, TIMEOUT, eventually};

use super::batches::BatchMaker;
use super::{options, standalone, test_clock};
use crate::conformance::fixture::RETENTION;
use crate::conformance::run;
use crate::engine::memory::MemoryEngine;
use crate::engine::redis::{self, RedisEngine};
use crate::engine::slots::{by_slot, first_key};
use crate::engine::{Answer, Applied, Batch, Engine, Key, Query};
use crate::error::StoreError;
use crate::redis::{RedisOptions, RedisServers, RedisStore, RedisTopology};

/// Settings of a server that persists its answers over a restart.
const DURABLE: &[&str] = &["appendonly yes", "appendfsync always"];
/// Time limit for moving a slot, in milliseconds.
const SLOT_MOVE_MS_MAX: u64 = 1_000;
/// Number of failures of a test; the environment can override it.
const FAILURES: usize = 4;

/// Every content that the servers may have.
struct PossibleContents(Vec<MemoryEngine>);

impl PossibleContents {
    /// Adds a content unless it is known.
    fn add(all: &mut Vec<MemoryEngine>, content: &MemoryEngine) {
        if !all.iter().any(|known| known.has_content_of(content)) {
            all.push(content.replica());
        }
    }

    /// Applies a call that was sent at most `sent` times and got this answer, or no answer. Drops contents that do not
    /// give the answer.
    async fn apply_call(&mut self, batches: &[Batch], sent: u64, answer: Option<&[Applied]>, context: &str) {
        let mut after = Vec::new();
        for before in &self.0 {
            if answer.is_none() {
                Self::add(&mut after, before);
            }
            let content = before.replica();
            for _ in 0..sent {
                let applied = content.commit(batches.to_vec()).await.unwrap();
                if answer.is_none_or(|answer| answer == applied) {
                    Self::add(&mut after, &content);
                }
            }
        }
        assert!(!after.is_empty(), "{context}: {answer:#?} is no answer to {batches:#?}");
        self.0 = after;
    }

    /// Keeps only the contents that match the servers' answers.
    async fn retain_matching(
        &mut self,
        maker: &mut BatchMaker,
        engine: &RedisEngine,
        context: &str,
    ) -> Result<(), StoreError> {
        let queries = maker.queries();
        let found = engine.read_confirmed(queries.clone()).await?;
        let mut differences = Vec::new();
        let mut matching = Vec::new();
        for content in self.0.drain(..) {
            let expected: VecDeque<Answer> = content.read(queries.clone()).await.unwrap().found;
            match queries
                .iter()
                .zip(&expected)
                .zip(&found.found)
                .find(|((query, expected), found)| !is_match(query, expected, found))
            {
                None => matching.push(content),
                Some(((query, expected), found)) => {
                    differences.push(format!("{query:?}: {expected:?}, found {found:?}"));
                }
            }
        }
        assert!(
            !matching.is_empty(),
            "{context}: none of {} contents matches\n{}",
            differences.len(),
            differences.join("\n")
        );
        self.0 = matching;
        Ok(())
    }
}

/// Returns true if two answers match. A key that was moved to another server may expire later by the duration of the
/// move.
fn is_match(query: &Query, expected: &Answer, found: &Answer) -> bool {
    match (query, expected, found) {
        (Query::End(_), Answer::Number(expected), Answer::Number(found)) if *expected > 0 => {
            (0..SLOT_MOVE_MS_MAX).contains(&(found.wrapping_sub(*expected)))
        }
        _ => expected == found,
    }
}

/// Number of calls and queries made, answered or not.
#[derive(Debug, Default)]
struct Progress(AtomicUsize);

impl Progress {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until `more` further calls or queries were made.
    fn wait_for(&self, more: u64) {
        let until = self.0.load(Ordering::Relaxed) + usize::try_from(more).unwrap();
        eventually("calls", 4 * TIMEOUT, || (self.0.load(Ordering::Relaxed) >= until).then_some(()));
    }
}

/// Servers that can be made to fail, on a separate thread.
trait FailingServers: Send + Sync {
    /// Causes a failure while calls are made: one of four kinds, chosen by `number`. On return the failure is over, but
    /// the servers may still be recovering.
    fn fail(&self, number: usize, random: &mut Random, progress: &Progress, key: &Key);

    /// Returns true if keys are moved to other servers, which may expire them later. The test then stops its clock.
    fn moves_slots(&self) -> bool {
        false
    }
}

/// Forgets the scripts of a server, or its connections.
fn forget_scripts_or_connections(server: &RedisServer, random: &mut Random) {
    let command: &[&str] =
        if random.below(2) == 0 { &["SCRIPT", "FLUSH"] } else { &["CLIENT", "KILL", "TYPE", "normal"] };
    // The server may be down.
    let _ = server.ask(command);
}

impl FailingServers for RedisServer {
    fn fail(&self, number: usize, random: &mut Random, progress: &Progress, _: &Key) {
        match number % 4 {
            0 => {
                self.pause();
                progress.wait_for(1 + random.below(2));
                self.resume();
            }
            1 => {
                self.kill9();
                self.restart();
            }
            _ => forget_scripts_or_connections(self, random),
        }
    }
}

impl FailingServers for Sentinels {
    fn fail(&self, number: usize, random: &mut Random, progress: &Progress, _: &Key) {
        match number % 4 {
            0 => _ = self.demote_master(),
            1 => {
                let replica = self.replicas().next().unwrap();
                replica.pause();
                progress.wait_for(1 + random.below(2));
                replica.resume();
            }
            2 => {
                let old = self.master();
                old.kill9();
                self.await_failover(old.port());
                old.restart();
            }
            _ => forget_scripts_or_connections(self.master(), random),
        }
    }
}

impl FailingServers for RedisCluster {
    fn moves_slots(&self) -> bool {
        true
    }

    fn fail(&self, number: usize, random: &mut Random, progress: &Progress, key: &Key) {
        let slot = self.slot_of(&String::from_utf8_lossy(&redis::name(key)));
        match number % 4 {
            0 | 1 => run(self.move_slot(slot, async { progress.wait_for(random.below(3)) })),
            2 => {
                let old = self.kill_master_of(slot);
                self.await_failover(slot, old);
                self.nodes().iter().find(|node| node.port() == old).unwrap().restart();
            }
            _ => forget_scripts_or_connections(self.master_of(slot), random),
        }
    }
}

/// Opens a store whose answers wait for a replica, if there is one.
async fn open_store(servers: RedisServers, wait_replicas: u32, clock: &Arc<ManualClock>) -> RedisStore {
    RedisStore::open(RedisOptions { wait_replicas, ..options(servers, Arc::clone(clock), RETENTION) }).await.unwrap()
}

/// Numbers of calls made.
#[derive(Default)]
struct CallCounts {
    calls: usize,
    /// Calls without an answer.
    unanswered: usize,
}

/// Makes random calls to servers and to memory, and compares contents, until all failures are over.
fn compare_during_failures(
    servers: RedisServers,
    wait_replicas: u32,
    failing: &dyn FailingServers,
    seed: u64,
) -> CallCounts {
    let failures = std::env::var("SAKSHI_FAILURES").ok().and_then(|number| number.parse().ok()).unwrap_or(FAILURES);
    let clock = test_clock();
    let mut maker = BatchMaker::new(seed, clock.now().millis());
    let (key, progress, is_over) = (maker.record(), Progress::default(), AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut random = Random::from_seed(seed);
            progress.wait_for(1);
            for number in 0..failures {
                failing.fail(number, &mut random, &progress, &key);
                progress.wait_for(random.below(20));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        run(async {
            let store = open_store(servers, wait_replicas, &clock).await;
            let engine = RedisEngine::new(Arc::clone(&store.shared));
            let mut possible = PossibleContents(vec![MemoryEngine::new(clock.clone())]);
            let mut counts = CallCounts::default();
            while !is_over.load(Ordering::Relaxed) || counts.calls < failures * 10 {
                maker.now = clock.now().millis();
                let group: Vec<Batch> = (0..=maker.random.below(3)).map(|_| maker.batch()).collect();
                let context = format!("seed {seed} after {} calls", counts.calls);
                for indexes in by_slot(&group, first_key) {
                    let batches: Vec<Batch> = indexes.iter().map(|index| group[*index].clone()).collect();
                    let repeats = || store.shared.link.figures().repeats;
                    let before = repeats();
                    let answer = engine.commit(batches.clone()).await.ok();
                    let sent = 1 + repeats() - before;
                    possible.apply_call(&batches, sent, answer.as_deref(), &context).await;
                    counts.calls += 1;
                    progress.count();
                    counts.unanswered += usize::from(answer.is_none());
                    if answer.is_none() || sent > 1 {
                        await_match(&mut possible, &mut maker, &engine, &progress, &context).await;
                    }
                }
                if maker.random.below(10) == 0 {
                    // The servers may be down.
                    let _ = possible.retain_matching(&mut maker, &engine, &context).await;
                    if !failing.moves_slots() {
                        clock.advance(Duration::from_millis(maker.random.below(3_000)));
                    }
                }
            }
            await_match(&mut possible, &mut maker, &engine, &progress, "at the end").await;
            counts
        })
    })
}

/// Waits until the servers can be read, and compares. This shows the effect of an unanswered call.
async fn await_match(
    possible: &mut PossibleContents,
    maker: &mut BatchMaker,
    engine: &RedisEngine,
    progress: &Progress,
    context: &str,
) {
    let started = Instant::now();
    while let Err(error) = possible.retain_matching(maker, engine, context).await {
        progress.count();
        assert!(started.elapsed() < 4 * TIMEOUT, "{context}: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_server_that_fails_has_the_same_content_as_memory() {
    let server = RedisServer::start(DURABLE);
    let (wait_replicas, seed) = (0, 11);
    let CallCounts { calls, unanswered } =
        compare_during_failures(standalone(&server.url()), wait_replicas, &server, seed);
    eprintln!("{calls} calls, {unanswered} without an answer");
}

#[test]
fn a_promoted_replica_has_the_same_content_as_memory() {
    let group = Sentinels::start(1, DURABLE);
    let servers =
        RedisServers::new(&group.urls(), RedisTopology::Sentinel { service: Sentinels::SERVICE.to_owned() }).unwrap();
    let (wait_replicas, seed) = (1, 12);
    let CallCounts { calls, unanswered } = compare_during_failures(servers, wait_replicas, &group, seed);
    eprintln!("{calls} calls, {unanswered} without an answer");
}

#[test]
fn a_cluster_with_moving_slots_has_the_same_content_as_memory() {
    let cluster = RedisCluster::start(1, DURABLE);
    let servers = RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let (wait_replicas, seed) = (1, 13);
    let CallCounts { calls, unanswered } = compare_during_failures(servers, wait_replicas, &cluster, seed);
    eprintln!("{calls} calls, {unanswered} without an answer");
}
