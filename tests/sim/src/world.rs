//! The state of a run: its shape, random source, time and log, and the store that all nodes share.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use sakshi_domain::delivery::Attempt;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_kit::model::history::Event;
use sakshi_store::engine::memory::MemoryEngine;
use sakshi_store::redis::NodeId;
use sakshi_store::{Store, Vault};
use tokio::sync::{self, Notify, broadcast};
use tokio::time::Instant;

use crate::clock::SimulatedClock;
use crate::coverage::{PAIR_INTERVAL_MAX, pair_name};
use crate::node::{Arbiter, RETENTION};
use crate::replication::{Servers, Shards};
use crate::shape::{Deployment, Shape};

/// Start of every run.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// Longest pause after an error of the store.
const ERROR_PAUSE_MS_MAX: u64 = 10_000;
/// Number of unread notices about transactions that a node may have before it loses some.
const NOTICES_MAX: usize = 256;

/// One start of a node: a process.
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) number: usize,
    /// The id by which the store knows it.
    pub(crate) id: NodeId,
    /// Held for reading by calls until the store has carried them out.
    pub(crate) steps: sync::RwLock<()>,
    is_dead: AtomicBool,
    died: Notify,
}

impl Incarnation {
    pub(crate) fn new(number: usize, deployment: Deployment) -> Arc<Self> {
        let id = if deployment == Deployment::Alone { NodeId::ALONE } else { NodeId::generate() };
        Arc::new(Self {
            number,
            id,
            steps: sync::RwLock::default(),
            is_dead: AtomicBool::new(false),
            died: Notify::new(),
        })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    pub(crate) fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.died.notify_waiters();
    }

    /// Waits until the process is killed.
    pub(crate) async fn death(&self) {
        let died = self.died.notified();
        if !self.is_dead() {
            died.await;
        }
    }
}

/// The plan of a call to the store: pauses before and after its effect, and its fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlan {
    pub(crate) before: Duration,
    pub(crate) after: Duration,
    pub(crate) fate: Fate,
}

/// The fate of a call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// The call does not reach the store.
    LostBefore,
    /// The call takes effect, and its answer is lost.
    LostAfter,
    /// The caller panics when the answer arrives.
    Panics,
}

/// The state of a run.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) deployment: Deployment,
    shape: Shape,
    random: Mutex<SmallRng>,
    /// Factor of the usual chance of each kind of faults. A rare effect shows in a run with many faults of one kind and
    /// none of another.
    chance_factors: [u64; Shape::FAULTS.len()],
    /// True, in one of eight runs, if no fault of the run may prevent an answer.
    never_prevents_answers: bool,
    /// Faults that must happen at their next occasion, to come close to another one.
    forced_faults: Mutex<BTreeSet<&'static str>>,
    pub(crate) started_at: Instant,
    log: Mutex<Vec<String>>,
    /// Changes and sends of webhooks, for the check against the model of the outbox.
    pub(crate) outbox_events: Mutex<Vec<Event<Shards>>>,
    /// Attempts to send webhooks, by deduplication key.
    pub(crate) attempts: Mutex<BTreeMap<String, Vec<Attempt>>>,
    /// Number of injected faults, by kind.
    pub(crate) faults: Mutex<BTreeMap<&'static str, u64>>,
    /// Time of the last fault of each kind, and the pairs that came close to each other.
    last_faults: Mutex<BTreeMap<&'static str, Duration>>,
    pub(crate) met_pairs: Mutex<BTreeSet<String>>,
    /// Times of injected panics, in actors and in callers of the store.
    panics: Mutex<Vec<Duration>>,
    /// Number of other occurrences, such as answers with each status, by kind.
    pub(crate) occurrences: Mutex<BTreeMap<Cow<'static, str>, u64>>,
    /// The servers of the records that the nodes share, or of the only node's records.
    pub(crate) servers: Servers,
    /// The keys with which nodes start.
    vault: Mutex<Arc<Vault>>,
    /// The store's clock.
    pub(crate) store_clock: Arc<SimulatedClock>,
    /// Largest error of the store's clock so far.
    store_lag_max: Mutex<Duration>,
    pub(crate) notices: broadcast::Sender<TxnId>,
    /// True until faults are stopped.
    has_active_faults: AtomicBool,
    /// Millisecond of the run until which the store is unavailable.
    pub(crate) unavailable_until: AtomicU64,
    /// Millisecond of the run until which the store is full.
    pub(crate) full_until: AtomicU64,
    /// Held by a failover until it is over.
    pub(crate) failing_over: sync::Mutex<()>,
    /// Held by a clock jump until it is over.
    pub(crate) jumping: sync::Mutex<()>,
    /// The arbiter that hangs, and the millisecond of the run until which it does.
    hung_arbiter: Mutex<(u32, u64)>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World({})", self.seed)
    }
}

/// Locks a mutex, even after a panic of another holder.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn new(
        seed: u64,
        shape: Shape,
        engine: MemoryEngine,
        vault: Arc<Vault>,
        store_clock: Arc<SimulatedClock>,
    ) -> Arc<Self> {
        let (started_at, mut random) = (store_clock.started_at, SmallRng::seed_from_u64(seed));
        let mut chance_factors = std::array::from_fn(|_| [0, 1, 1, 4][random.random_range(0..4)]);
        let never_prevents_answers = random.random_ratio(1, 8);
        if never_prevents_answers {
            chance_factors[..Shape::DISTURBING_COUNT].fill(0);
        }
        Arc::new(Self {
            seed,
            deployment: Deployment::from_seed(seed),
            shape,
            chance_factors,
            never_prevents_answers,
            forced_faults: Mutex::default(),
            random: Mutex::new(random),
            started_at,
            log: Mutex::default(),
            outbox_events: Mutex::default(),
            attempts: Mutex::default(),
            faults: Mutex::default(),
            last_faults: Mutex::default(),
            met_pairs: Mutex::default(),
            panics: Mutex::default(),
            occurrences: Mutex::default(),
            servers: Servers::new(Deployment::from_seed(seed), engine),
            vault: Mutex::new(vault),
            store_clock,
            store_lag_max: Mutex::default(),
            notices: broadcast::channel(NOTICES_MAX).0,
            has_active_faults: AtomicBool::new(true),
            unavailable_until: AtomicU64::new(0),
            full_until: AtomicU64::new(0),
            failing_over: sync::Mutex::default(),
            jumping: sync::Mutex::default(),
            hung_arbiter: Mutex::default(),
        })
    }

    /// Returns the number of nodes of the run: one, two or three.
    pub(crate) fn node_count(&self) -> usize {
        if self.deployment == Deployment::Alone { 1 } else { 2 + usize::try_from(self.seed / 8 % 2).unwrap_or(0) }
    }

    /// Makes an arbiter (a thread of actors) hang for a time.
    pub(crate) fn hang_arbiter(&self, arbiter: u32, time_ms: u64) {
        *lock(&self.hung_arbiter) = (arbiter, self.now_ms() + time_ms);
    }

    /// Ends the hang of the arbiters of a killed node, given its first one.
    pub(crate) fn clear_hang(&self, first_arbiter: u32) {
        let mut hung_arbiter = lock(&self.hung_arbiter);
        if hung_arbiter.0 / Arbiter::PER_NODE == first_arbiter / Arbiter::PER_NODE {
            *hung_arbiter = (0, 0);
        }
    }

    /// Returns the time for which an arbiter still hangs; `None` if it does not.
    pub(crate) fn remaining_hang(&self, arbiter: u32) -> Option<Duration> {
        let (hung_arbiter, until) = *lock(&self.hung_arbiter);
        (hung_arbiter == arbiter && self.now_ms() < until).then(|| Duration::from_millis(until - self.now_ms()))
    }

    /// Returns the number of workers of a node.
    pub(crate) fn worker_count(&self) -> usize {
        1 + usize::try_from(self.seed / 16 % 2).unwrap_or(0)
    }

    /// Returns the number of a webhook's receiver: the preferred one or, in half of the runs, 0 for all webhooks. These
    /// then wait for each other.
    pub(crate) fn receiver_number(&self, preferred: u64) -> u64 {
        if (self.seed / 32).is_multiple_of(2) { preferred } else { 0 }
    }

    /// Returns a store for reads from outside the nodes, without faults.
    pub(crate) fn store(&self) -> Store {
        Store::new(Box::new(self.servers.engine()), self.vault(), RETENTION, NodeId::ALONE, None)
    }

    pub(crate) fn vault(&self) -> Arc<Vault> {
        Arc::clone(&lock(&self.vault))
    }

    /// Sets the keys with which nodes start.
    pub(crate) fn set_vault(&self, vault: &Arc<Vault>) {
        *lock(&self.vault) = Arc::clone(vault);
    }

    /// Sets the store's clock back by this time from the simulated time.
    pub(crate) fn set_store_clock_back(&self, time: Duration) {
        self.store_clock.set_difference(-i64::try_from(time.as_millis()).unwrap_or(0));
        let mut store_lag_max = lock(&self.store_lag_max);
        *store_lag_max = time.max(*store_lag_max);
    }

    /// Returns the largest possible error of a time that the store has recorded.
    pub(crate) fn tolerance(&self) -> Duration {
        // The store records whole milliseconds.
        *lock(&self.store_lag_max) + Duration::from_millis(1)
    }

    /// Returns a random number below `end`.
    pub(crate) fn random_below(&self, end: u64) -> u64 {
        lock(&self.random).random_range(0..end.max(1))
    }

    /// Returns a random index below `end`; 0 if `end` is 0.
    pub(crate) fn random_index(&self, end: usize) -> usize {
        usize::try_from(self.random_below(end as u64)).unwrap_or(0)
    }

    /// Decides with a chance in ten thousand whether a fault happens now. If so, counts it.
    pub(crate) fn injects_in_10_000(&self, fault: &'static str, chance: u64) -> bool {
        if !self.has_active_faults() {
            return false;
        }
        let chance = chance * self.chance_factors[Shape::fault_index(fault)];
        let happens = self.random_below(10_000) < chance || self.is_forced(fault);
        let happens = happens && self.shape.includes(fault);
        if happens {
            lock(&self.forced_faults).remove(fault);
            *lock(&self.faults).entry(fault).or_default() += 1;
            self.record_met_pairs(fault);
            if ["panics", "actor-panics"].contains(&fault) {
                lock(&self.panics).push(self.started_at.elapsed());
            }
        }
        happens
    }

    /// Returns true if the fault is possible in this run.
    pub(crate) fn allows(&self, fault: &str) -> bool {
        let is_excluded = self.never_prevents_answers && Shape::FAULTS[..Shape::DISTURBING_COUNT].contains(&fault);
        !is_excluded && self.shape.includes(fault) && self.deployment.allows(fault)
    }

    /// Forces a fault to happen at its next occasion.
    pub(crate) fn force_next(&self, fault: &'static str) {
        lock(&self.forced_faults).insert(fault);
    }

    /// Returns true if a fault was forced and has not happened yet.
    pub(crate) fn is_forced(&self, fault: &str) -> bool {
        lock(&self.forced_faults).contains(fault)
    }

    /// Returns true if the fault has happened since this moment.
    pub(crate) fn has_happened(&self, fault: &str, since: Duration) -> bool {
        lock(&self.last_faults).get(fault).is_some_and(|at| *at >= since)
    }

    /// Records a fault, and its pairs with the other faults shortly before.
    fn record_met_pairs(&self, fault: &'static str) {
        let now = self.started_at.elapsed();
        let mut last = lock(&self.last_faults);
        last.insert(fault, now);
        let recent = last.iter().filter(|(other, at)| **other != fault && now - **at <= PAIR_INTERVAL_MAX);
        lock(&self.met_pairs).extend(recent.map(|(other, _)| pair_name(fault, other)));
    }

    /// Returns true if a panic was injected between these moments.
    pub(crate) fn has_panicked(&self, since: Duration, until: Duration) -> bool {
        lock(&self.panics).iter().any(|at| (since..=until).contains(at))
    }

    /// Returns true if no fault so far can have prevented an answer.
    pub(crate) fn is_undisturbed(&self) -> bool {
        lock(&self.faults).keys().all(|fault| !Shape::FAULTS[..Shape::DISTURBING_COUNT].contains(fault))
    }

    /// Stops injecting faults.
    pub(crate) fn stop_faults(&self) {
        self.has_active_faults.store(false, Ordering::Relaxed);
        self.log_line(|line| line.push_str("nothing goes wrong any more"));
    }

    /// Returns true while faults are injected.
    pub(crate) fn has_active_faults(&self) -> bool {
        self.has_active_faults.load(Ordering::Relaxed)
    }

    /// Returns true if the shape of the run includes this kind of faults.
    pub(crate) fn includes(&self, fault: &str) -> bool {
        self.shape.includes(fault)
    }

    /// Returns true with a chance in a thousand.
    pub(crate) fn chance_in_1_000(&self, chance: u64) -> bool {
        self.random_below(1_000) < chance
    }

    /// Returns a random pause: usually at most `usual_ms`, seldom three times and rarely twenty times as long.
    pub(crate) fn random_pause(&self, usual_ms: u64) -> Duration {
        let factor = match self.random_below(20) {
            0 => 20,
            1..5 => 3,
            _ => 1,
        };
        Duration::from_millis(self.random_below(usual_ms * factor + 1))
    }

    /// Returns the store's time.
    pub(crate) fn store_time(&self) -> Timestamp {
        START + self.started_at.elapsed()
    }

    /// Returns the milliseconds since the run began.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Appends a line to the log of the run: the simulated time, and the text that `write_text` appends.
    pub(crate) fn log_line(&self, write_text: impl FnOnce(&mut String)) {
        let mut line = String::new();
        let _ = write!(line, "{:>9.3} s  ", self.started_at.elapsed().as_secs_f64());
        write_text(&mut line);
        lock(&self.log).push(line);
    }

    /// Counts an occurrence of a kind, for the summary of runs.
    pub(crate) fn count_occurrence(&self, kind: impl Into<Cow<'static, str>>) {
        *lock(&self.occurrences).entry(kind.into()).or_default() += 1;
    }

    pub(crate) fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// Plans a call to the store with random pauses and, perhaps, a fault.
    pub(crate) fn plan_call(&self) -> CallPlan {
        let (before, after) = (self.random_pause(3), self.random_pause(3));
        let is_unavailable = self.now_ms() < self.unavailable_until.load(Ordering::Relaxed);
        let fate = if self.injects_in_10_000("lost-calls", 60) || is_unavailable {
            Fate::LostBefore
        } else if self.injects_in_10_000("lost-answers", 60) {
            Fate::LostAfter
        } else if self.injects_in_10_000("panics", 25) {
            Fate::Panics
        } else {
            Fate::Answered
        };
        CallPlan { before, after, fate }
    }

    /// Returns true if the store was unavailable or full recently, so that nodes may still pause after the error.
    pub(crate) fn has_store_failed_recently(&self) -> bool {
        let ended = self.unavailable_until.load(Ordering::Relaxed).max(self.full_until.load(Ordering::Relaxed));
        ended > 0 && self.now_ms() < ended + ERROR_PAUSE_MS_MAX
    }

    /// Perhaps fills the store right after a write. Only one run in sixteen does so.
    pub(crate) fn maybe_fill_store(&self) {
        /// Remainder of the seeds of these runs.
        const REMAINDER: u64 = 9;
        if self.seed % 16 == REMAINDER && self.injects_in_10_000("full-disks", 1_500) {
            self.fill_store();
        }
    }

    /// Fills the store, which then refuses writes for a random time.
    pub(crate) fn fill_store(&self) {
        let full_ms = self.random_below(8_000);
        self.log_line(|line| _ = write!(line, "the store takes nothing in for {full_ms} ms"));
        self.full_until.store(self.now_ms() + full_ms, Ordering::Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.now_ms() < self.full_until.load(Ordering::Relaxed)
    }
}
