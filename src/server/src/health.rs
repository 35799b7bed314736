//! Readiness: every arbiter runs, every shard has started, the store accepts writes, the token that signs intents is
//! available, and the process is not draining. Changes are logged here, because probes are too frequent to log.

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
/// Timeout of such a check.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same for a shared store, because a balancer can send requests to other nodes. A probe also checks a shared
/// store, unless that happened within [`MOMENT`].
const PATIENCE_SHARED: Duration = Duration::from_millis(750);
const MOMENT: Duration = Duration::from_millis(200);

/// The health of the process.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    tree: Tree,
    drain: Drain,
    store: Arc<StoreHealth>,
    signer: Arc<IntentSigner>,
    clock: Arc<dyn Clock>,
}

impl Health {
    /// Watches the store on the current arbiter from now on.
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
            last: Mutex::new(Ok(())),
            looked: AsyncMutex::new(None),
        });
        let (seen, watched) = (Arc::clone(&state), tree.clone());
        actix_rt::spawn(async move {
            let mut hung = None;
            // A draining node is unready in any case, and then closes its store.
            while !seen.drain.is_announced() {
                seen.look(Duration::ZERO).await;
                let hangs = watched.hung_arbiter();
                match (&hung, &hangs) {
                    (None, Some(name)) => tracing::error!(arbiter.name = name, "a thread hangs"),
                    (Some(name), None) => tracing::info!(arbiter.name = name, "the thread goes on"),
                    _ => {}
                }
                hung = hangs;
                sleep(INTERVAL).await;
            }
        });
        Self { tree, drain, store: state, signer, clock }
    }
}

/// A watch on the store's readiness for writes.
#[derive(Debug)]
struct StoreHealth {
    store: Store,
    drain: Drain,
    last: Mutex<Result<(), StoreError>>,
    /// End of the last check; locked while one is in flight.
    looked: AsyncMutex<Option<Instant>>,
}

impl StoreHealth {
    /// Checks the store, unless the last check is younger than `age`.
    async fn look(&self, age: Duration) {
        let mut looked = self.looked.lock().await;
        if looked.is_some_and(|at| at.elapsed() < age) || self.drain.is_announced() {
            return;
        }
        let patience = if self.store.is_shared() { PATIENCE_SHARED } else { PATIENCE };
        let unanswered = |_| Err(StoreError::Unavailable("it does not answer".into()));
        let state = timeout(patience, self.store.check()).await.unwrap_or_else(unanswered);
        *looked = Some(Instant::now());
        let before = std::mem::replace(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner), state.clone());
        match (&before, &state) {
            _ if self.drain.is_announced() => {}
            (Ok(()), Err(error)) => tracing::error!(%error, "the store takes no writes"),
            (Err(_), Ok(())) => tracing::info!("the store takes writes again"),
            _ => {}
        }
    }
}

impl sakshi_operator::Health for Health {
    fn look(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {
            if self.store.store.is_shared() {
                self.store.look(MOMENT).await;
            }
        })
    }

    fn livez(&self) -> Result<(), String> {
        self.tree.hung_arbiter().map_or(Ok(()), |name| Err(format!("arbiter {name} does not turn")))
    }

    fn readyz(&self) -> Result<(), String> {
        if self.drain.is_announced() {
            return Err("draining".to_owned());
        }
        self.livez()?;
        if !self.tree.is_complete() {
            return Err("starting".to_owned());
        }
        let store = self.store.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        store.map_err(|error| error.to_string())?;
        self.signer.is_available(self.clock.now()).map_err(|error| error.to_string())
    }
}
