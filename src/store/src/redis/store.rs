//! [`RedisStore`]: the store of many nodes, and opening it.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use sakshi_domain::clock::Clock;
use tokio::sync::broadcast;

use super::link::{Link, LinkFigures, LinkOptions};
use super::nodes::background::Background;
use super::nodes::membership::{HEARTBEAT_INTERVAL, Presence};
use super::options::RedisOptions;
use super::shared::Shared;
use crate::engine::redis::RedisEngine;
use crate::error::StoreError;
use crate::operations::Store;

/// Number of notices by which a slow receiver may fall behind before it misses some.
const NOTICES_BUFFERED: usize = 4_096;

/// The store in Redis. Clones share it.
#[derive(Clone)]
pub struct RedisStore {
    store: Store,
    pub(crate) shared: Arc<Shared>,
    /// Ends with the last clone of the store.
    _background: Arc<Background>,
}

impl RedisStore {
    /// Connects to Redis. A store that has lost data is opened, and refuses everything until an operator accepts the
    /// loss. With `waits_at_start`, an unreachable store is opened too: health checks retry.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it cannot be reached, is older than Redis 7, evicts keys when its memory is
    /// full, or lacks a required append-only file; [`StoreError::WrongKey`] when it was written under other keys;
    /// [`StoreError::OtherInstallation`] when it belongs to another installation; [`StoreError::OtherSchema`] when
    /// another release has upgraded it.
    pub async fn open(options: RedisOptions) -> Result<Self, StoreError> {
        Self::open_with_heartbeats(options, HEARTBEAT_INTERVAL).await
    }

    /// Opens the store with another interval between two heartbeats.
    pub(crate) async fn open_with_heartbeats(options: RedisOptions, interval: Duration) -> Result<Self, StoreError> {
        let waits_at_start = options.waits_at_start;
        let shared = build_shared(options);
        match Box::pin(shared.join()).await {
            Err(StoreError::DataLost(_)) => {}
            Err(StoreError::Unavailable(reason)) if waits_at_start => {
                tracing::warn!(reason, "the store cannot be opened yet; the node waits");
            }
            outcome => outcome?,
        }
        let store = build_store(&shared);
        let background = Arc::new(Background::start(&shared, &store, interval)?);
        Ok(Self { store, shared, _background: background })
    }

    /// Returns a store without the background thread, for fake replies.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn without_background(shared: Arc<Shared>) -> Self {
        Self { store: build_store(&shared), shared, _background: Arc::new(Background::none()) }
    }

    /// Returns the clock of the server, which decides expiry.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.shared.clock()
    }

    /// Returns the milliseconds by which the clock of the server is ahead of this machine's.
    #[must_use]
    pub fn clock_ahead_ms(&self) -> i64 {
        self.shared.server_clock.ahead_ms()
    }

    /// Returns the counters of the link to the servers.
    #[must_use]
    pub fn figures(&self) -> LinkFigures {
        self.shared.link.figures()
    }
}

/// Builds the operations on a node's state.
fn build_store(shared: &Arc<Shared>) -> Store {
    let engine = Box::new(RedisEngine::new(Arc::clone(shared)));
    Store::new(engine, Arc::clone(&shared.vault), shared.retention, shared.node, Some(shared.ended_elsewhere.clone()))
}

impl Shared {
    /// Opens the store: checks the servers and the owner of their store, and sends a first heartbeat.
    pub(crate) async fn join(&self) -> Result<(), StoreError> {
        self.check_servers().await?;
        self.check_for_loss().await?;
        self.check_not_moving().await?;
        // The installation is checked before the keys and written after them, so a refused node writes neither.
        self.check_installation(&self.ownership).await?;
        self.ensure_schema().await?;
        self.check_keys().await?;
        self.ensure_installation(&self.ownership).await?;
        // A node sends a heartbeat before it has any delivery.
        self.heartbeat(Presence::Alive).await?;
        self.count_start().await
    }
}

/// Builds the state of a store, without the background thread of a node.
pub(crate) fn build_shared(options: RedisOptions) -> Arc<Shared> {
    let RedisOptions {
        servers,
        wait_replicas,
        node,
        vault,
        retention,
        max_waiting,
        ownership,
        schema,
        must_persist,
        clock,
        ..
    } = options;
    let link = Link::new(LinkOptions { schema, max_waiting, wait_replicas, ..LinkOptions::new(servers) });
    let (ended_elsewhere, _) = broadcast::channel(NOTICES_BUFFERED);
    Arc::new(Shared {
        link,
        vault,
        node,
        retention,
        ownership,
        must_persist,
        is_healthy: AtomicBool::new(true),
        is_nearly_full: AtomicBool::new(false),
        health_checks: AtomicU32::new(0),
        clock,
        server_clock: Arc::default(),
        ended_elsewhere,
        members: Mutex::default(),
        walk: tokio::sync::Mutex::default(),
        leave_requests: OnceLock::new(),
        #[cfg(feature = "fuzzing")]
        fake_replies: None,
        #[cfg(test)]
        faults: super::lost_replies::Faults::default(),
    })
}

impl Deref for RedisStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({})", self.shared.node)
    }
}
