//! The store of many nodes: Redis 7 or later, alone, under Sentinel or as a cluster.
//!
//! ```text
//! open, complete, claim … ──▶ one Lua script each ──▶ one slot: everything of one client
//! load, list …            ──▶ read-only scripts and commands, each routed by its key
//! ```
//!
//! What each transition means is said by [`crate::Store`]; its script is in `lua/`, and what every
//! key holds and when it goes in `keys`. Scripts take the time from the server, so no node's clock
//! decides anything, and recognise what they did before, so a command whose answer was lost is sent
//! again. Time to live does what a sweep does elsewhere.

mod answer;
mod background;
mod clock;
mod completion;
mod credentials;
mod events;
mod fitness;
mod flows;
mod keyring;
mod keys;
mod leases;
mod ledger;
mod link;
mod notices;
mod opening;
mod outbox;
mod peers;
mod position;
mod presence;
mod records;
mod script;
mod sessions;
mod tenancy;
#[cfg(test)]
mod tests;
mod transitions;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::Value;
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use tokio::sync::broadcast;
use tokio::time::timeout;
use uuid::Uuid;

use self::clock::ServerClock;
pub use self::keys::{KEYS, KeyKind, Lifetime};
pub use self::link::{BadRedisUrl, CallFigures, LinkFigures, RedisServers};

use self::background::Background;
use self::link::{Link, LinkOptions};
use self::script::Script;
use crate::error::StoreError;
use crate::transition::Retention;
use crate::vault::Vault;

/// Notices that a slow listener may fall behind by before it misses some.
const NOTICES_HELD: usize = 4_096;

/// How long the mark of a health check stays.
const PROBE: Duration = Duration::from_secs(60);
/// How long a health check may take. It is less patient than a transition, which waits for a server to come back.
const CHECK_PATIENCE: Duration = Duration::from_millis(700);

/// One life of one node. It is never used again: what waits for it or is under way at its end is
/// taken over by others, whatever is started in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(Uuid);

impl NodeId {
    /// A fresh id.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id in text, if it is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// How the servers stand to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisTopology {
    /// One server.
    Standalone,
    /// Sentinels, which name the master of the service.
    Sentinel {
        /// The name of the service.
        service: String,
    },
    /// A cluster.
    Cluster,
}

/// Whose time decides.
#[derive(Clone, Debug)]
pub enum RedisClock {
    /// The server's.
    Server,
    /// The given one; for tests that let time pass.
    Given(Arc<dyn Clock>),
}

/// Where Redis is, and how it is used.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Where the servers are and how they stand to each other.
    pub servers: RedisServers,
    /// Replicas that must have a write before it is answered.
    pub wait_replicas: u32,
    /// This life of this node.
    pub node: NodeId,
    /// Seals what is personal or secret.
    pub vault: Arc<Vault>,
    /// How long records are kept beyond their use.
    pub retention: Retention,
    /// Commands that may wait; further ones are refused at once.
    pub max_waiting: usize,
    /// Decides expiry.
    pub clock: RedisClock,
}

/// The store in Redis. Clones share it.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
    background: Arc<Background>,
}

struct Shared {
    link: Link,
    vault: Arc<Vault>,
    node: NodeId,
    retention: Retention,
    clock: RedisClock,
    server_clock: Arc<ServerClock>,
    ended_elsewhere: broadcast::Sender<TxnId>,
    /// This node begins no attempt any more.
    left: AtomicBool,
    #[cfg(test)]
    drill: tests::drill::Drill,
}

impl RedisStore {
    /// Connects to Redis.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it cannot be reached, is older than Redis 7, or evicts keys
    /// when its memory is full; [`StoreError::WrongKey`] when it was written under other keys.
    pub async fn open(options: RedisOptions) -> Result<Self, StoreError> {
        Self::open_beating(options, presence::BEAT_INTERVAL).await
    }

    /// The same with another interval between two beats.
    async fn open_beating(options: RedisOptions, every: Duration) -> Result<Self, StoreError> {
        let RedisOptions { servers, wait_replicas, node, vault, retention, max_waiting, clock } = options;
        let link = Link::new(LinkOptions { max_waiting, wait_replicas, ..LinkOptions::new(servers) });
        let (ended_elsewhere, _) = broadcast::channel(NOTICES_HELD);
        let shared = Arc::new(Shared {
            link,
            vault,
            node,
            retention,
            clock,
            server_clock: Arc::default(),
            ended_elsewhere,
            left: AtomicBool::new(false),
            #[cfg(test)]
            drill: tests::drill::Drill::default(),
        });
        shared.examine().await?;
        shared.check_keys().await?;
        // Nothing waits for a node, and nothing is under way, before it has beaten.
        shared.beat(false).await?;
        shared.read_clock(true).await?;
        let background = Arc::new(Background::start(&shared, every)?);
        Ok(Self { shared, background })
    }

    /// Tells the time as the server does, which decides about expiry.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.shared.clock()
    }
}

impl RedisStore {
    /// What went through the link to the servers.
    #[must_use]
    pub fn figures(&self) -> LinkFigures {
        self.shared.link.figures()
    }
}

impl Shared {
    /// Whether this node begins no attempt any more.
    fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// The given moment, if there is one.
    fn given(&self) -> Option<Timestamp> {
        match &self.clock {
            RedisClock::Server => None,
            RedisClock::Given(clock) => Some(clock.now()),
        }
    }

    /// The arguments of a script after the moment, which comes first.
    fn timed(given: Option<Timestamp>, args: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut timed = Vec::with_capacity(args.len() + 1);
        timed.push(answer::Argument::argument(given));
        timed.extend(args);
        timed
    }

    async fn call(&self, script: &'static Script, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>) -> Result<Value, StoreError> {
        self.call_at(self.given(), script, keys, args).await
    }

    async fn call_at(
        &self,
        given: Option<Timestamp>,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let args = Self::timed(given, args);
        #[cfg(test)]
        self.drill.lose_an_answer(&self.link, script, &keys, &args).await;
        self.link.call(script, keys, args).await
    }

    /// Writes a little, as a transition would.
    async fn check(&self) -> Result<(), StoreError> {
        let written = async {
            self.check_canary().await?;
            self.call(&script::CHECK, vec![keys::probe()], answer::arguments![PROBE]).await.map(drop)
        };
        let late = |_| Err(StoreError::Unavailable("it does not answer in time".to_owned()));
        timeout(CHECK_PATIENCE, written).await.unwrap_or_else(late)
    }

    async fn call_until_answered(&self, script: &'static Script, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>) -> Result<Value, StoreError> {
        let args = Self::timed(self.given(), args);
        #[cfg(test)]
        self.drill.lose_an_answer(&self.link, script, &keys, &args).await;
        self.link.call_until_answered(script, keys, args).await
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({})", self.shared.node)
    }
}
