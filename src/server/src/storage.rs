//! The store that the settings name: opened before anything else, closed after everything else, and
//! the clock that goes with it.
//!
//! A node alone tells the time by its own clock. Nodes that share a store tell it by the store's,
//! so that a transaction is expired on all of them at once.

use std::sync::Arc;

use actix_web::web;
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::redis::{NodeId, RedisClock, RedisOptions, RedisStore, RedisTopology};
use sakshi_store::{Retention, Store, StoreError, Vault};
use secrecy::ExposeSecret as _;

use crate::settings::{RedisSettings, Settings, StoreKind, Topology};

/// An open store.
#[derive(Debug)]
pub struct Storage {
    /// The truth.
    pub store: Arc<dyn Store>,
    /// Tells the time to everything that the store does not decide.
    pub clock: Arc<dyn Clock>,
    embedded: Option<EmbeddedStore>,
}

impl Storage {
    /// Opens what the settings name.
    ///
    /// # Errors
    /// The store's.
    pub async fn open(settings: &Settings, vault: Arc<Vault>, retention: Retention) -> Result<Self, StoreError> {
        let max_waiting = settings.limits.max_in_flight.saturating_mul(2);
        match &settings.store.kind {
            StoreKind::Embedded => {
                let clock: Arc<dyn Clock> = Arc::new(SystemClock);
                let directory = settings.store.path.clone();
                let options = EmbeddedOptions { directory, clock: Arc::clone(&clock), vault, max_waiting, max_pages: None };
                let embedded = EmbeddedStore::open(options)?;
                Ok(Self { store: Arc::new(embedded.clone()), clock, embedded: Some(embedded) })
            }
            StoreKind::Redis(redis) => {
                let store = RedisStore::open(redis_options(redis, vault, retention, max_waiting)).await?;
                Ok(Self { clock: store.clock(), store: Arc::new(store), embedded: None })
            }
        }
    }

    /// Ends this node's part in good order.
    pub async fn close(self) {
        if let Err(error) = self.store.leave().await {
            tracing::warn!(%error, "the other nodes could not be told that this one has left; they will find out");
        }
        if let Some(store) = self.embedded
            // Closing waits for the last commit, which must not block the arbiter that it answers to.
            && web::block(move || store.close()).await.is_err()
        {
            tracing::error!("the store could not be closed in good order");
        }
    }
}

fn redis_options(redis: &RedisSettings, vault: Arc<Vault>, retention: Retention, max_waiting: usize) -> RedisOptions {
    RedisOptions {
        addresses: redis.addresses.iter().map(|address| address.expose_secret().to_owned()).collect(),
        topology: match &redis.topology {
            Topology::Standalone => RedisTopology::Standalone,
            Topology::Sentinel { service } => RedisTopology::Sentinel { service: service.clone() },
            Topology::Cluster => RedisTopology::Cluster,
        },
        wait_replicas: redis.wait_replicas,
        node: NodeId::generate(),
        vault,
        retention,
        max_waiting,
        clock: RedisClock::Server,
    }
}
