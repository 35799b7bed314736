//! Readiness: every arbiter (a thread of actors) runs, every shard has started, the store accepts writes, the token
//! that signs intents is available, and the process is not draining. Changes are logged here, because probes are too
//! frequent to log.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use sakshi_actors::Tree;
use sakshi_authority::intent::IntentSigner;
use sakshi_domain::clock::Clock;
use sakshi_service::drain::Drain;
use sakshi_store::{Store, StoreError};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{sleep, timeout};

/// Interval between checks that the store accepts writes.
const INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of a check of a store that one node uses.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of a check of a shared store. It is short, because a load balancer can use other nodes.
const SHARED_CHECK_TIMEOUT: Duration = Duration::from_millis(750);
/// Age up to which a probe reuses the last check of a shared store.
const CHECK_AGE_MAX: Duration = Duration::from_millis(200);

/// The health of the process, as the probes `/livez` and `/readyz` return it.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    /// The supervision tree of the actors.
    tree: Tree,
    /// The state of the graceful shutdown.
    drain: Drain,
    store: Arc<StoreHealth>,
    signer: Arc<IntentSigner>,
    clock: Arc<dyn Clock>,
}

impl Health {
    /// Starts checking the store periodically, on the current arbiter.
    #[must_use]
    pub(crate) fn watch(
        tree: Tree,
        drain: Drain,
        store: Store,
        signer: Arc<IntentSigner>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let state = Arc::new(StoreHealth {
            store,
            drain: drain.clone(),
            last_result: Mutex::new(Ok(())),
            checked_at: AsyncMutex::new(None),
        });
        let (store, tree_for_check) = (Arc::clone(&state), tree.clone());
        actix_rt::spawn(async move {
            let mut reported_hang = None;
            // A draining node is unready in any case, and it closes its store.
            while !store.drain.is_announced() {
                store.check(Duration::ZERO).await;
                let hung = tree_for_check.hung_arbiter();
                match (&reported_hang, &hung) {
                    (None, Some(name)) => tracing::error!(arbiter.name = name, "a thread hangs"),
                    (Some(name), None) => tracing::info!(arbiter.name = name, "the thread runs again"),
                    _ => {}
                }
                reported_hang = hung;
                sleep(INTERVAL).await;
            }
        });
        Self { tree, drain, store: state, signer, clock }
    }
}

/// Checks that the store accepts writes, and keeps the last result.
#[derive(Debug)]
struct StoreHealth {
    store: Store,
    drain: Drain,
    last_result: Mutex<Result<(), StoreError>>,
    /// End of the last check; locked while one is in flight.
    checked_at: AsyncMutex<Option<Instant>>,
}

impl StoreHealth {
    /// Checks the store, unless the last check is younger than `age_max`.
    async fn check(&self, age_max: Duration) {
        let mut checked_at = self.checked_at.lock().await;
        if checked_at.is_some_and(|at| at.elapsed() < age_max) || self.drain.is_announced() {
            return;
        }
        let limit = if self.store.is_shared() { SHARED_CHECK_TIMEOUT } else { CHECK_TIMEOUT };
        let timed_out = |_| Err(StoreError::Unavailable("it does not answer".into()));
        let state = timeout(limit, self.store.check()).await.unwrap_or_else(timed_out);
        *checked_at = Some(Instant::now());
        let previous =
            std::mem::replace(&mut *self.last_result.lock().unwrap_or_else(PoisonError::into_inner), state.clone());
        match (&previous, &state) {
            _ if self.drain.is_announced() => {}
            (Ok(()), Err(error)) => tracing::error!(%error, "the store takes no writes"),
            (Err(_), Ok(())) => tracing::info!("the store takes writes again"),
            _ => {}
        }
    }
}

impl sakshi_operator::Health for Health {
    fn refresh_readiness(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {
            if self.store.store.is_shared() {
                self.store.check(CHECK_AGE_MAX).await;
            }
        })
    }

    fn livez(&self) -> Result<(), String> {
        self.tree.hung_arbiter().map_or(Ok(()), |name| Err(format!("arbiter {name} does not run")))
    }

    fn readyz(&self) -> Result<(), String> {
        if self.drain.is_announced() {
            return Err("draining".to_owned());
        }
        self.livez()?;
        if !self.tree.is_complete() {
            return Err("starting".to_owned());
        }
        let store = self.store.last_result.lock().unwrap_or_else(PoisonError::into_inner).clone();
        store.map_err(|error| error.to_string())?;
        self.signer.check_available(self.clock.now()).map_err(|error| error.to_string())
    }
}
