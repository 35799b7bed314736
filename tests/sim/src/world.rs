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
use sakshi_store::engine::memory::MemoryEngine;
use sakshi_store::redis::NodeId;
use sakshi_store::{Store, Vault};
use tokio::sync::{self, Notify, broadcast};
use tokio::time::Instant;

use crate::clock::SimulatedClock;
use crate::coverage::{CLOSE, pair};
use crate::model::history::Event;
use crate::node::{Arbiter, RETENTION};
use crate::replication::Servers;
use crate::shape::{Deployment, Shape};

/// Start of every run.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// Longest pause after an error of the store.
const AFTER_ERRORS_MS: u64 = 10_000;
/// Number of notices by which a node may lag.
const NOTICES: usize = 256;

/// One start of a node.
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) number: usize,
    /// The id by which the store knows it.
    pub(crate) id: NodeId,
    /// Held by calls until the store has carried them out.
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

    /// Waits for the death of the process.
    pub(crate) async fn death(&self) {
        let died = self.died.notified();
        if !self.is_dead() {
            died.await;
        }
    }
}

/// The plan of a call to the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlan {
    pub(crate) before: Duration,
    pub(crate) after: Duration,
    pub(crate) fate: Fate,
}

/// The fate of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// It does not reach the store.
    LostBefore,
    /// It takes effect, and its answer is lost.
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
    /// Multiplier of the usual chance of each kind of faults. A rare effect shows in a run with much of one kind and
    /// nothing of another. In one run of eight, no fault prevents an answer.
    times: [u64; Shape::FAULTS.len()],
    /// True if no fault of the run may prevent an answer.
    spares_answers: bool,
    /// Faults that happen at their next occasion, to meet another one.
    called_for: Mutex<BTreeSet<&'static str>>,
    pub(crate) begun: Instant,
    log: Mutex<Vec<String>>,
    /// Changes and sends of webhooks, for the model of the outbox.
    pub(crate) outbox: Mutex<Vec<Event>>,
    /// Attempts to send webhooks, by deduplication key.
    pub(crate) attempts: Mutex<BTreeMap<String, Vec<Attempt>>>,
    /// Number of injected faults, by kind.
    pub(crate) faults: Mutex<BTreeMap<&'static str, u64>>,
    /// Time of the last fault of each kind, and the pairs that came close to each other.
    last_faults: Mutex<BTreeMap<&'static str, Duration>>,
    pub(crate) pairs: Mutex<BTreeSet<String>>,
    /// Times of panics, in actors and in callers of the store.
    panics: Mutex<Vec<Duration>>,
    /// Number of happenings, by kind.
    pub(crate) reached: Mutex<BTreeMap<Cow<'static, str>, u64>>,
    /// The records that the nodes share, or those of the only node.
    pub(crate) servers: Servers,
    /// The keys with which nodes start.
    vault: Mutex<Arc<Vault>>,
    /// The store's clock.
    pub(crate) store_clock: Arc<SimulatedClock>,
    /// Largest lag of the store's clock so far.
    behind: Mutex<Duration>,
    pub(crate) notices: broadcast::Sender<TxnId>,
    /// True while faults happen.
    is_rough: AtomicBool,
    /// Millisecond of the run until which the store is away.
    pub(crate) away_until: AtomicU64,
    /// Millisecond of the run until which the store is full.
    pub(crate) full_until: AtomicU64,
    /// Held by a failover, and by a clock jump, until it is over.
    pub(crate) failing_over: sync::Mutex<()>,
    pub(crate) jumping: sync::Mutex<()>,
    /// The arbiter that hangs, and the millisecond of the run until which it does.
    hung: Mutex<(u32, u64)>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World({})", self.seed)
    }
}

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
        let (begun, mut random) = (store_clock.begun, SmallRng::seed_from_u64(seed));
        let mut times = std::array::from_fn(|_| [0, 1, 1, 4][random.random_range(0..4)]);
        let spares_answers = random.random_ratio(1, 8);
        if spares_answers {
            times[..Shape::DISTURBING].fill(0);
        }
        Arc::new(Self {
            seed,
            deployment: Deployment::from_seed(seed),
            shape,
            times,
            spares_answers,
            called_for: Mutex::default(),
            random: Mutex::new(random),
            begun,
            log: Mutex::default(),
            outbox: Mutex::default(),
            attempts: Mutex::default(),
            faults: Mutex::default(),
            last_faults: Mutex::default(),
            pairs: Mutex::default(),
            panics: Mutex::default(),
            reached: Mutex::default(),
            servers: Servers::new(Deployment::from_seed(seed), engine),
            vault: Mutex::new(vault),
            store_clock,
            behind: Mutex::default(),
            notices: broadcast::channel(NOTICES).0,
            is_rough: AtomicBool::new(true),
            away_until: AtomicU64::new(0),
            full_until: AtomicU64::new(0),
            failing_over: sync::Mutex::default(),
            jumping: sync::Mutex::default(),
            hung: Mutex::default(),
        })
    }

    /// Returns the number of nodes of the run.
    pub(crate) fn nodes(&self) -> usize {
        if self.deployment == Deployment::Alone { 1 } else { 2 + usize::try_from(self.seed / 8 % 2).unwrap_or(0) }
    }

    /// Hangs an arbiter from now on.
    pub(crate) fn hangs(&self, arbiter: u32, time_ms: u64) {
        *lock(&self.hung) = (arbiter, self.now_ms() + time_ms);
    }

    /// Clears the hang of an ended process's arbiters.
    pub(crate) fn hangs_no_more(&self, first: u32) {
        let mut hung = lock(&self.hung);
        if hung.0 / Arbiter::PER_NODE == first / Arbiter::PER_NODE {
            *hung = (0, 0);
        }
    }

    /// Returns the remaining time for which an arbiter hangs.
    pub(crate) fn hangs_for(&self, arbiter: u32) -> Option<Duration> {
        let (hung, until) = *lock(&self.hung);
        (hung == arbiter && self.now_ms() < until).then(|| Duration::from_millis(until - self.now_ms()))
    }

    /// Returns the number of workers of a node.
    pub(crate) fn workers(&self) -> usize {
        1 + usize::try_from(self.seed / 16 % 2).unwrap_or(0)
    }

    /// Returns the number of a receiver. Every other run has one for all, so that webhooks wait for each other.
    pub(crate) fn receiver(&self, usual: u64) -> u64 {
        if (self.seed / 32).is_multiple_of(2) { usual } else { 0 }
    }

    /// Returns the store as seen from outside the nodes.
    pub(crate) fn store(&self) -> Store {
        Store::new(Box::new(self.servers.engine()), self.vault(), RETENTION, NodeId::ALONE, None)
    }

    pub(crate) fn vault(&self) -> Arc<Vault> {
        Arc::clone(&lock(&self.vault))
    }

    /// Sets the keys with which nodes start.
    pub(crate) fn opens_with(&self, vault: &Arc<Vault>) {
        *lock(&self.vault) = Arc::clone(vault);
    }

    /// Sets the store's clock back.
    pub(crate) fn store_falls_behind(&self, time: Duration) {
        self.store_clock.differ(-i64::try_from(time.as_millis()).unwrap_or(0));
        let mut behind = lock(&self.behind);
        *behind = time.max(*behind);
    }

    /// Returns the largest error of a time that the store has recorded.
    pub(crate) fn tolerance(&self) -> Duration {
        // It records whole milliseconds.
        *lock(&self.behind) + Duration::from_millis(1)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        lock(&self.random).random_range(0..end.max(1))
    }

    /// Returns an index below `end`.
    pub(crate) fn index(&self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or(0)
    }

    /// Returns true if a fault happens, with this chance out of ten thousand.
    pub(crate) fn goes_wrong(&self, fault: &'static str, of_ten_thousand: u64) -> bool {
        if !self.is_rough() {
            return false;
        }
        let chance = of_ten_thousand * self.times[Shape::number(fault)];
        let happens = self.below(10_000) < chance || self.is_called_for(fault);
        let happens = happens && self.shape.has(fault);
        if happens {
            lock(&self.called_for).remove(fault);
            *lock(&self.faults).entry(fault).or_default() += 1;
            self.note_pairs(fault);
            if ["panics", "actor-panics"].contains(&fault) {
                lock(&self.panics).push(self.begun.elapsed());
            }
        }
        happens
    }

    /// Returns true if the run may have the fault at all.
    pub(crate) fn allows(&self, fault: &str) -> bool {
        let is_spared = self.spares_answers && Shape::FAULTS[..Shape::DISTURBING].contains(&fault);
        !is_spared && self.shape.has(fault) && self.deployment.allows(fault)
    }

    /// Makes a fault happen at its next occasion.
    pub(crate) fn call_for(&self, fault: &'static str) {
        lock(&self.called_for).insert(fault);
    }

    pub(crate) fn is_called_for(&self, fault: &str) -> bool {
        lock(&self.called_for).contains(fault)
    }

    /// Returns true if the fault has happened since this moment.
    pub(crate) fn has_happened(&self, fault: &str, since: Duration) -> bool {
        lock(&self.last_faults).get(fault).is_some_and(|at| *at >= since)
    }

    fn note_pairs(&self, fault: &'static str) {
        let now = self.begun.elapsed();
        let mut last = lock(&self.last_faults);
        last.insert(fault, now);
        let close = last.iter().filter(|(other, at)| **other != fault && now - **at <= CLOSE);
        lock(&self.pairs).extend(close.map(|(other, _)| pair(fault, other)));
    }

    /// Returns true if something panicked between these moments.
    pub(crate) fn has_panicked(&self, since: Duration, until: Duration) -> bool {
        lock(&self.panics).iter().any(|at| (since..=until).contains(at))
    }

    /// Returns true if nothing in this run has prevented an answer so far.
    pub(crate) fn is_undisturbed(&self) -> bool {
        lock(&self.faults).keys().all(|fault| !Shape::FAULTS[..Shape::DISTURBING].contains(fault))
    }

    /// Stops all faults.
    pub(crate) fn calms_down(&self) {
        self.is_rough.store(false, Ordering::Relaxed);
        self.say(|line| line.push_str("nothing goes wrong any more"));
    }

    /// Returns true while faults happen.
    pub(crate) fn is_rough(&self) -> bool {
        self.is_rough.load(Ordering::Relaxed)
    }

    /// Returns true if this kind is part of the run.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.shape.has(kind)
    }

    pub(crate) fn chance(&self, of_a_thousand: u64) -> bool {
        self.below(1_000) < of_a_thousand
    }

    /// Returns a pause, mostly short.
    pub(crate) fn pause(&self, usual_ms: u64) -> Duration {
        let times = match self.below(20) {
            0 => 20,
            1..5 => 3,
            _ => 1,
        };
        Duration::from_millis(self.below(usual_ms * times + 1))
    }

    /// Returns the store's time.
    pub(crate) fn store_time(&self) -> Timestamp {
        START + self.begun.elapsed()
    }

    /// Returns the milliseconds since the run began.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn say(&self, what: impl FnOnce(&mut String)) {
        let mut line = String::new();
        let _ = write!(line, "{:>9.3} s  ", self.begun.elapsed().as_secs_f64());
        what(&mut line);
        lock(&self.log).push(line);
    }

    /// Counts a happening.
    pub(crate) fn reach(&self, what: impl Into<Cow<'static, str>>) {
        *lock(&self.reached).entry(what.into()).or_default() += 1;
    }

    pub(crate) fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// Plans a call.
    pub(crate) fn plan(&self) -> CallPlan {
        let (before, after) = (self.pause(3), self.pause(3));
        let is_away = self.now_ms() < self.away_until.load(Ordering::Relaxed);
        let fate = if self.goes_wrong("lost-calls", 60) || is_away {
            Fate::LostBefore
        } else if self.goes_wrong("lost-answers", 60) {
            Fate::LostAfter
        } else if self.goes_wrong("panics", 25) {
            Fate::Panics
        } else {
            Fate::Answered
        };
        CallPlan { before, after, fate }
    }

    /// Returns true if the store was away or full recently, so that pauses after errors may still last.
    pub(crate) fn has_store_failed(&self) -> bool {
        let ended = self.away_until.load(Ordering::Relaxed).max(self.full_until.load(Ordering::Relaxed));
        ended > 0 && self.now_ms() < ended + AFTER_ERRORS_MS
    }

    /// Fills the store in one run of sixteen: the last write may be the last that it accepts for a while.
    pub(crate) fn may_be_full(&self) {
        if self.seed % 16 == 9 && self.goes_wrong("full-disks", 1_500) {
            self.fills_up();
        }
    }

    /// Fills the store for a while.
    pub(crate) fn fills_up(&self) {
        let full = self.below(8_000);
        self.say(|line| _ = write!(line, "the store takes nothing in for {full} ms"));
        self.full_until.store(self.now_ms() + full, Ordering::Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.now_ms() < self.full_until.load(Ordering::Relaxed)
    }
}
