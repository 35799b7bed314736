//! The store that the settings name: opened before anything else, closed after everything else, and
//! the clock that goes with it.
//!
//! A node alone tells the time by its own clock. Nodes that share a store tell it by the store's,
//! so that a transaction is expired on all of them at once.

use std::sync::Arc;

use actix_web::web;
use metrics::{counter, gauge};
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::redis::{CallFigures, LinkFigures, NodeId, RedisClock, RedisOptions, RedisServers, RedisStore, RedisTopology};
use sakshi_store::{Retention, Store, StoreError, Vault};
use secrecy::ExposeSecret;

use crate::settings::{RedisSettings, Settings, StoreKind, Topology};

/// An open store.
#[derive(Debug)]
pub struct Storage {
    /// The durable store.
    pub store: Arc<dyn Store>,
    /// Tells the time to everything that the store does not decide.
    pub clock: Arc<dyn Clock>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Embedded(EmbeddedStore),
    Redis(RedisStore),
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
                Ok(Self { store: Arc::new(embedded.clone()), clock, kind: Kind::Embedded(embedded) })
            }
            StoreKind::Redis(redis) => {
                let store = RedisStore::open(redis_options(redis, vault, retention, max_waiting)?).await?;
                Ok(Self { clock: store.clock(), store: Arc::new(store.clone()), kind: Kind::Redis(store) })
            }
        }
    }

    /// What brings the store's own figures up to date, to be called before metrics are shown.
    #[must_use]
    pub fn figures(&self) -> Arc<dyn Fn() + Send + Sync> {
        match self.kind.clone() {
            Kind::Embedded(_) => Arc::new(|| {}),
            Kind::Redis(store) => Arc::new(move || show(&store.figures())),
        }
    }

    /// Ends this node's part in good order.
    pub async fn close(self) {
        if let Err(error) = self.store.leave().await {
            tracing::warn!(%error, "the other nodes could not be told that this one has left; they will find out");
        }
        if let Kind::Embedded(store) = self.kind
            // Closing waits for the last commit, which must not block the arbiter that it answers to.
            && web::block(move || store.close()).await.is_err()
        {
            tracing::error!("the store could not be closed in good order");
        }
    }
}

/// The link to Redis in metrics.
fn show(figures: &LinkFigures) {
    let under_way = u32::try_from(figures.in_flight).unwrap_or(u32::MAX);
    gauge!("sakshi_redis_calls_in_flight").set(under_way);
    counter!("sakshi_redis_repeats_total").absolute(figures.repeats);
    counter!("sakshi_redis_refused_total").absolute(figures.refused);
    for CallFigures { name, calls, failures, took } in &figures.calls {
        counter!("sakshi_redis_calls_total", "script" => *name).absolute(*calls);
        counter!("sakshi_redis_call_failures_total", "script" => *name).absolute(*failures);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counter!("sakshi_redis_call_microseconds_total", "script" => *name).absolute(micros);
    }
}

fn redis_options(redis: &RedisSettings, vault: Arc<Vault>, retention: Retention, max_waiting: usize) -> Result<RedisOptions, StoreError> {
    let topology = match &redis.topology {
        Topology::Standalone => RedisTopology::Standalone,
        Topology::Sentinel { service } => RedisTopology::Sentinel { service: service.clone() },
        Topology::Cluster => RedisTopology::Cluster,
    };
    let addresses: Vec<&str> = redis.addresses.iter().map(ExposeSecret::expose_secret).collect();
    // The settings have looked at them; what is refused here is a detail of the URL's path.
    let servers = RedisServers::new(&addresses, topology).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(RedisOptions {
        servers,
        wait_replicas: redis.wait_replicas,
        node: NodeId::generate(),
        vault,
        retention,
        max_waiting,
        clock: RedisClock::Server,
    })
}
