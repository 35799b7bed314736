//! What a run consists of: its shape, its random source, its time, the store that all nodes share, and the log of what happens.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
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

/// When runs begin.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// For how long something may wait after an error of the store.
const AFTER_ERRORS_MS: u64 = 10_000;
/// Notices that a node may be behind.
const NOTICES: usize = 256;

/// What a run has in it. Without some of it a broken promise is easier to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Verifications of each client; `None` for some.
    pub verifications: Option<u64>,
    /// Kinds of faults that do not happen, a bit each in the order of [`Shape::FAULTS`].
    pub without: u32,
}

impl Shape {
    /// The kinds of faults, and what operators and organisers change. Those that keep a request from an answer come first;
    /// nodes are killed for a new encryption key too.
    pub const FAULTS: [&'static str; 26] = [
        "kills",
        "outages",
        "full-disks",
        "failovers",
        "former-primaries",
        "lost-calls",
        "lost-answers",
        "panics",
        "actor-panics",
        "hangs",
        "hung-arbiters",
        "key-rotations",
        "repeated-steps",
        "lost-notices",
        "mistaken-deaths",
        "drift",
        "clock-jumps",
        "store-clock",
        "bad-receivers",
        "lost-requests",
        "bad-upstreams",
        "event-changes",
        "key-changes",
        "suspensions",
        "erasures",
        "flows",
    ];

    /// Everything.
    pub const WHOLE: Self = Self { verifications: None, without: 0 };

    /// How many of [`Shape::FAULTS`] keep a request from an answer.
    const DISTURBING: usize = 12;

    fn has(self, fault: &str) -> bool {
        self.without & (1 << Self::number(fault)) == 0
    }

    fn number(fault: &str) -> usize {
        Self::FAULTS.iter().position(|known| *known == fault).expect("a kind of faults")
    }
}

/// What the nodes of a run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deployment {
    /// One node with a store of its own.
    Alone,
    /// Nodes that share a store.
    Shared,
    /// The same, and the store has a replica that lags. An answer waits for the replica.
    Replicated,
    /// The same in shards that fail over each by itself.
    Cluster,
    /// The same as [`Deployment::Replicated`] without waiting: a failover may lose what was answered.
    LossyReplica,
}

impl Deployment {
    const fn of(seed: u64) -> Self {
        match seed % 8 {
            0 | 1 => Self::Alone,
            2 | 3 => Self::Shared,
            4 => Self::Cluster,
            5 | 6 => Self::Replicated,
            _ => Self::LossyReplica,
        }
    }

    /// Returns true if an answer waits for the replica.
    pub(crate) const fn waits(self) -> bool {
        matches!(self, Self::Replicated | Self::Cluster)
    }

    /// Returns true if there is a replica.
    pub(crate) const fn has_replica(self) -> bool {
        self.waits() || matches!(self, Self::LossyReplica)
    }
}

/// One start of a node.
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) number: usize,
    /// By which the store knows it.
    pub(crate) id: NodeId,
    /// Held by calls until the store has carried them out.
    pub(crate) steps: sync::RwLock<()>,
    is_dead: AtomicBool,
    died: Notify,
}

impl Incarnation {
    pub(crate) fn new(number: usize, deployment: Deployment) -> Arc<Self> {
        let id = if deployment == Deployment::Alone { NodeId::ALONE } else { NodeId::generate() };
        Arc::new(Self { number, id, steps: sync::RwLock::default(), is_dead: AtomicBool::new(false), died: Notify::new() })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    pub(crate) fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.died.notify_waiters();
    }

    /// Ends when the process has died.
    pub(crate) async fn death(&self) {
        let died = self.died.notified();
        if !self.is_dead() {
            died.await;
        }
    }
}

/// How a call to the store goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlan {
    pub(crate) before: Duration,
    pub(crate) after: Duration,
    pub(crate) fate: Fate,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// It does not reach the store.
    LostBefore,
    /// It takes effect, and its answer is lost.
    LostAfter,
    /// Whoever called panics when the answer arrives.
    Panics,
}

/// The run.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) deployment: Deployment,
    shape: Shape,
    random: Mutex<SmallRng>,
    /// How many times as likely as usual each kind of faults is: what happens seldom where everything happens is found in a run that has
    /// much of one kind and nothing of another. In one run of eight nothing keeps a request from its answer.
    times: [u64; Shape::FAULTS.len()],
    pub(crate) begun: Instant,
    log: Mutex<Vec<String>>,
    /// Changes and departures of webhooks, for the model of the outbox.
    pub(crate) outbox: Mutex<Vec<Event>>,
    /// Faults that were injected, by kind.
    pub(crate) faults: Mutex<BTreeMap<&'static str, u64>>,
    /// When each kind of faults was last injected, and the pairs that came close to each other.
    last_faults: Mutex<BTreeMap<&'static str, Duration>>,
    pub(crate) pairs: Mutex<BTreeSet<String>>,
    /// When actors panicked, and whoever called the store.
    panics: Mutex<Vec<Duration>>,
    /// What happened, by kind.
    pub(crate) reached: Mutex<BTreeMap<Cow<'static, str>, u64>>,
    /// The records that the nodes share, or those of the only one.
    pub(crate) servers: Servers,
    /// The keys of nodes that start.
    vault: Mutex<Arc<Vault>>,
    /// The store's clock.
    pub(crate) store_clock: Arc<SimulatedClock>,
    /// How far the store's clock may have been behind.
    behind: Mutex<Duration>,
    pub(crate) notices: broadcast::Sender<TxnId>,
    /// Whether faults happen.
    is_rough: AtomicBool,
    /// The store is away until this millisecond of the run.
    pub(crate) away_until: AtomicU64,
    /// It takes nothing in until this millisecond of the run.
    pub(crate) full_until: AtomicU64,
    /// The arbiter that hangs, and until which millisecond of the run.
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
    pub(crate) fn new(seed: u64, shape: Shape, engine: MemoryEngine, vault: Arc<Vault>, store_clock: Arc<SimulatedClock>) -> Arc<Self> {
        let (begun, mut random) = (store_clock.begun, SmallRng::seed_from_u64(seed));
        let mut times = std::array::from_fn(|_| [0, 1, 1, 4][random.random_range(0..4)]);
        if random.random_ratio(1, 8) {
            times[..Shape::DISTURBING].fill(0);
        }
        Arc::new(Self {
            seed,
            deployment: Deployment::of(seed),
            shape,
            times,
            random: Mutex::new(random),
            begun,
            log: Mutex::default(),
            outbox: Mutex::default(),
            faults: Mutex::default(),
            last_faults: Mutex::default(),
            pairs: Mutex::default(),
            panics: Mutex::default(),
            reached: Mutex::default(),
            servers: Servers::new(Deployment::of(seed), engine),
            vault: Mutex::new(vault),
            store_clock,
            behind: Mutex::default(),
            notices: broadcast::channel(NOTICES).0,
            is_rough: AtomicBool::new(true),
            away_until: AtomicU64::new(0),
            full_until: AtomicU64::new(0),
            hung: Mutex::default(),
        })
    }

    /// How many nodes the run has.
    pub(crate) fn nodes(&self) -> usize {
        if self.deployment == Deployment::Alone { 1 } else { 2 + usize::try_from(self.seed / 8 % 2).unwrap_or(0) }
    }

    /// Lets an arbiter hang from now on.
    pub(crate) fn hangs(&self, arbiter: u32, time_ms: u64) {
        *lock(&self.hung) = (arbiter, self.now_ms() + time_ms);
    }

    /// A process has ended, and whichever of its arbiters hung.
    pub(crate) fn hangs_no_more(&self, first: u32) {
        let mut hung = lock(&self.hung);
        if hung.0 / Arbiter::PER_NODE == first / Arbiter::PER_NODE {
            *hung = (0, 0);
        }
    }

    /// For how long an arbiter still hangs.
    pub(crate) fn hangs_for(&self, arbiter: u32) -> Option<Duration> {
        let (hung, until) = *lock(&self.hung);
        (hung == arbiter && self.now_ms() < until).then(|| Duration::from_millis(until - self.now_ms()))
    }

    /// How many workers a node has.
    pub(crate) fn workers(&self) -> usize {
        1 + usize::try_from(self.seed / 16 % 2).unwrap_or(0)
    }

    /// The number of a receiver. In every other run there is one for all, so that webhooks wait for each other.
    pub(crate) fn receiver(&self, usual: u64) -> u64 {
        if (self.seed / 32).is_multiple_of(2) { usual } else { 0 }
    }

    /// The store as somebody sees it who is not a node.
    pub(crate) fn store(&self) -> Store {
        Store::new(Box::new(self.servers.engine()), self.vault(), RETENTION, NodeId::ALONE, None)
    }

    pub(crate) fn vault(&self) -> Arc<Vault> {
        Arc::clone(&lock(&self.vault))
    }

    /// From now on nodes start with these keys.
    pub(crate) fn opens_with(&self, vault: &Arc<Vault>) {
        *lock(&self.vault) = Arc::clone(vault);
    }

    /// Sets the store's clock back.
    pub(crate) fn store_falls_behind(&self, time: Duration) {
        self.store_clock.differ(-i64::try_from(time.as_millis()).unwrap_or(0));
        let mut behind = lock(&self.behind);
        *behind = time.max(*behind);
    }

    /// How far a time that the store has noted may be from when it was.
    pub(crate) fn tolerance(&self) -> Duration {
        // It notes whole milliseconds.
        *lock(&self.behind) + Duration::from_millis(1)
    }

    /// A number below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        lock(&self.random).random_range(0..end.max(1))
    }

    /// An index below `end`.
    pub(crate) fn index(&self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or(0)
    }

    /// Whether a fault happens, with this chance out of ten thousand.
    pub(crate) fn goes_wrong(&self, fault: &'static str, of_ten_thousand: u64) -> bool {
        if !self.is_rough() {
            return false;
        }
        let chance = of_ten_thousand * self.times[Shape::number(fault)];
        let happens = self.below(10_000) < chance && self.shape.has(fault);
        if happens {
            *lock(&self.faults).entry(fault).or_default() += 1;
            self.note_pairs(fault);
            if ["panics", "actor-panics"].contains(&fault) {
                lock(&self.panics).push(self.begun.elapsed());
            }
        }
        happens
    }

    fn note_pairs(&self, fault: &'static str) {
        let now = self.begun.elapsed();
        let mut last = lock(&self.last_faults);
        last.insert(fault, now);
        let close = last.iter().filter(|(other, at)| **other != fault && now - **at <= CLOSE);
        lock(&self.pairs).extend(close.map(|(other, _)| pair(fault, other)));
    }

    /// Whether something panicked between these moments.
    pub(crate) fn has_panicked(&self, since: Duration, until: Duration) -> bool {
        lock(&self.panics).iter().any(|at| (since..=until).contains(at))
    }

    /// Whether there was nothing yet in this run that keeps a request from its answer.
    pub(crate) fn is_undisturbed(&self) -> bool {
        lock(&self.faults).keys().all(|fault| !Shape::FAULTS[..Shape::DISTURBING].contains(fault))
    }

    /// From now on nothing goes wrong any more.
    pub(crate) fn calms_down(&self) {
        self.is_rough.store(false, Ordering::Relaxed);
        self.say(|line| line.push_str("nothing goes wrong any more"));
    }

    /// Whether things go wrong at this time.
    pub(crate) fn is_rough(&self) -> bool {
        self.is_rough.load(Ordering::Relaxed)
    }

    /// Whether something of this kind is part of the run.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.shape.has(kind)
    }

    pub(crate) fn chance(&self, of_a_thousand: u64) -> bool {
        self.below(1_000) < of_a_thousand
    }

    /// A pause, mostly short.
    pub(crate) fn pause(&self, usual_ms: u64) -> Duration {
        let times = match self.below(20) {
            0 => 20,
            1..5 => 3,
            _ => 1,
        };
        Duration::from_millis(self.below(usual_ms * times + 1))
    }

    /// The store's time.
    pub(crate) fn store_time(&self) -> Timestamp {
        START + self.begun.elapsed()
    }

    /// Milliseconds of the run.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn say(&self, what: impl FnOnce(&mut String)) {
        let mut line = String::new();
        let _ = write!(line, "{:>9.3} s  ", self.begun.elapsed().as_secs_f64());
        what(&mut line);
        lock(&self.log).push(line);
    }

    /// Counts that something happened.
    pub(crate) fn reach(&self, what: impl Into<Cow<'static, str>>) {
        *lock(&self.reached).entry(what.into()).or_default() += 1;
    }

    pub(crate) fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// Decides how a call goes.
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

    /// Whether the store has been away or full lately, and what waits after an error may still wait.
    pub(crate) fn has_store_failed(&self) -> bool {
        let ended = self.away_until.load(Ordering::Relaxed).max(self.full_until.load(Ordering::Relaxed));
        ended > 0 && self.now_ms() < ended + AFTER_ERRORS_MS
    }

    /// In one run of sixteen there is little room in the store: what was just written may be the last that it takes in for a while.
    pub(crate) fn may_be_full(&self) {
        if self.seed % 16 == 9 && self.goes_wrong("full-disks", 1_500) {
            let full = self.below(8_000);
            self.say(|line| _ = write!(line, "the store takes nothing in for {full} ms"));
            self.full_until.store(self.now_ms() + full, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.now_ms() < self.full_until.load(Ordering::Relaxed)
    }
}
