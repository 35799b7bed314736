//! What the probes report: whether every arbiter runs, every shard has started, the store accepts writes, the token that signs intents
//! is there, and the process is not about to end. A change is logged here, because probes come too often to be logged themselves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sakshi_actors::Tree;
use sakshi_authority::intent::IntentSigner;
use sakshi_domain::clock::Clock;
use sakshi_service::drain::Drain;
use sakshi_store::{Store, StoreError};
use tokio::time::{sleep, timeout};

/// How often the store is asked whether it accepts writes.
const INTERVAL: Duration = Duration::from_secs(1);
/// The same for a store that other nodes share, because a balancer can send requests to them.
const INTERVAL_SHARED: Duration = Duration::from_millis(200);
/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same for a store that other nodes share: with the interval, an outage is seen within a second.
const PATIENCE_SHARED: Duration = Duration::from_millis(750);

/// The health of the process.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    tree: Tree,
    drain: Drain,
    store: Arc<Mutex<Result<(), StoreError>>>,
    signer: Arc<IntentSigner>,
    clock: Arc<dyn Clock>,
}

impl Health {
    /// Watches the store on the current arbiter from now on.
    #[must_use]
    pub(crate) fn watch(tree: Tree, drain: Drain, store: Store, signer: Arc<IntentSigner>, clock: Arc<dyn Clock>) -> Self {
        let last = Arc::new(Mutex::new(Ok(())));
        let seen = Arc::clone(&last);
        let (interval, patience) = if store.is_shared() { (INTERVAL_SHARED, PATIENCE_SHARED) } else { (INTERVAL, PATIENCE) };
        let (ending, watched) = (drain.clone(), tree.clone());
        actix_rt::spawn(async move {
            let mut hung = None;
            // A node that drains is unready in any case, and then closes its store.
            while !ending.is_announced() {
                let unanswered = || StoreError::Unavailable("it does not answer".into());
                let state = timeout(patience, store.check()).await.unwrap_or_else(|_| Err(unanswered()));
                let before = std::mem::replace(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner), state.clone());
                match (&before, &state) {
                    _ if ending.is_announced() => {}
                    (Ok(()), Err(error)) => tracing::error!(%error, "the store takes no writes"),
                    (Err(_), Ok(())) => tracing::info!("the store takes writes again"),
                    _ => {}
                }
                let hangs = watched.hung_arbiter();
                match (&hung, &hangs) {
                    (None, Some(name)) => tracing::error!(arbiter.name = name, "a thread hangs"),
                    (Some(name), None) => tracing::info!(arbiter.name = name, "the thread goes on"),
                    _ => {}
                }
                hung = hangs;
                sleep(interval).await;
            }
        });
        Self { tree, drain, store: last, signer, clock }
    }
}

impl sakshi_operator::Health for Health {
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
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        store.map_err(|error| error.to_string())?;
        self.signer.is_available(self.clock.now()).map_err(|error| error.to_string())
    }
}
