//! What a run consists of: its random source, its time, the store that all nodes share, the nodes, and the log of what happens.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use sakshi_actors::{Handles, Tree};
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_store::Vault;
use sakshi_store::embedded::EmbeddedStore;
use tokio::sync::broadcast;
use tokio::time::Instant;
use uuid::Uuid;

/// When runs begin.
const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// Notices that a node may be behind.
const NOTICES: usize = 256;

/// What a run has in it. Without some of it a broken promise is easier to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Verifications; `None` for ten to thirty.
    pub verifications: Option<u64>,
    /// Kinds of faults that do not happen, a bit each in the order of [`Shape::FAULTS`].
    pub without: u32,
}

impl Shape {
    /// The kinds of faults.
    pub const FAULTS: [&'static str; 10] =
        ["kills", "outages", "full-disks", "lost-calls", "lost-answers", "panics", "lost-notices", "drift", "bad-receivers", "changes"];

    /// Everything.
    pub const WHOLE: Self = Self { verifications: None, without: 0 };

    fn has(self, fault: &str) -> bool {
        Self::FAULTS.iter().position(|known| *known == fault).is_none_or(|bit| self.without & (1 << bit) == 0)
    }
}

/// The clock of the store, and with a drift that of a node.
#[derive(Debug)]
pub(crate) struct SimulatedClock {
    begun: Instant,
    drift_ms: AtomicI64,
}

impl SimulatedClock {
    pub(crate) fn new(begun: Instant, drift_ms: i64) -> Arc<Self> {
        Arc::new(Self { begun, drift_ms: AtomicI64::new(drift_ms) })
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(START.millis() + elapsed + self.drift_ms.load(Ordering::Relaxed))
    }
}

/// One start of a node.
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) number: usize,
    is_dead: AtomicBool,
}

impl Incarnation {
    pub(crate) fn new(number: usize) -> Arc<Self> {
        Arc::new(Self { number, is_dead: AtomicBool::new(false) })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    pub(crate) fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
    }
}

/// A node that runs.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) handles: Handles,
    pub(crate) tree: Tree,
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
    shape: Shape,
    random: Mutex<SmallRng>,
    pub(crate) begun: Instant,
    log: Mutex<Vec<String>>,
    /// Faults that were injected, by kind.
    pub(crate) faults: Mutex<std::collections::BTreeMap<&'static str, u64>>,
    pub(crate) store: EmbeddedStore,
    pub(crate) vault: Arc<Vault>,
    nodes: Mutex<Vec<Option<Node>>>,
    pub(crate) notices: broadcast::Sender<TxnId>,
    /// Whether faults happen.
    pub(crate) is_rough: AtomicBool,
    /// The store is away until this millisecond of the run.
    pub(crate) away_until: AtomicU64,
    /// It takes nothing in until this millisecond of the run.
    pub(crate) full_until: AtomicU64,
    pub(crate) client: ClientId,
    pub(crate) app: AppId,
    pub(crate) event: EventId,
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
    pub(crate) fn new(seed: u64, shape: Shape, store: EmbeddedStore, vault: Arc<Vault>, begun: Instant) -> Arc<Self> {
        let nodes = 1 + usize::try_from(seed % 3).unwrap_or(0);
        let mut random = SmallRng::seed_from_u64(seed);
        let [client, app] = ["cl_", "app_"].map(|prefix| format!("{prefix}{}", Uuid::from_u128(random.random()).simple()));
        let client: ClientId = client.parse().expect("a client's id");
        let mut event: [u8; 12] = random.random();
        event[0] = client.partition().number() << 2;
        let (notices, _) = broadcast::channel(NOTICES);
        Arc::new(Self {
            seed,
            shape,
            random: Mutex::new(random),
            begun,
            log: Mutex::default(),
            faults: Mutex::default(),
            store,
            vault,
            nodes: Mutex::new(vec![None; nodes]),
            notices,
            is_rough: AtomicBool::new(true),
            away_until: AtomicU64::new(0),
            full_until: AtomicU64::new(0),
            client,
            app: app.parse().expect("an app's id"),
            event: EventId::from_bytes(event),
        })
    }

    /// A number below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        lock(&self.random).random_range(0..end.max(1))
    }

    /// Whether a fault happens, with this chance out of a thousand.
    pub(crate) fn goes_wrong(&self, fault: &'static str, of_a_thousand: u64) -> bool {
        let happens = self.chance(of_a_thousand) && self.is_rough.load(Ordering::Relaxed) && self.shape.has(fault);
        if happens {
            *lock(&self.faults).entry(fault).or_default() += 1;
        }
        happens
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

    /// An id of a transaction in the client's partition.
    pub(crate) fn transaction_id(&self) -> TxnId {
        let mut bytes: [u8; 16] = lock(&self.random).random();
        bytes[0] = self.client.partition().number() << 2;
        TxnId::from_bytes(*uuid::Builder::from_random_bytes(bytes).as_uuid().as_bytes())
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

    pub(crate) fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// Decides how a call goes.
    pub(crate) fn plan(&self) -> CallPlan {
        let (before, after) = (self.pause(3), self.pause(3));
        let is_away = self.now_ms() < self.away_until.load(Ordering::Relaxed);
        let fate = if self.goes_wrong("lost-calls", 8) || is_away {
            Fate::LostBefore
        } else if self.goes_wrong("lost-answers", 8) {
            Fate::LostAfter
        } else if self.goes_wrong("panics", 5) {
            Fate::Panics
        } else {
            Fate::Answered
        };
        CallPlan { before, after, fate }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.now_ms() < self.full_until.load(Ordering::Relaxed)
    }

    pub(crate) fn node(&self, number: usize) -> Option<Node> {
        lock(&self.nodes)[number].clone()
    }

    pub(crate) fn nodes(&self) -> usize {
        lock(&self.nodes).len()
    }

    pub(crate) fn set_node(&self, number: usize, node: Option<Node>) {
        lock(&self.nodes)[number] = node;
    }

    /// A node that runs, as a load balancer picks one.
    pub(crate) fn any_node(&self) -> Option<Node> {
        let running: Vec<Node> = lock(&self.nodes).iter().flatten().cloned().collect();
        let pick = usize::try_from(self.below(running.len() as u64)).unwrap_or(0);
        running.into_iter().nth(pick)
    }
}
