//! Upkeep: the health check, and leaving. There is nothing to sweep.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_domain::time::Timestamp;
use tokio::time::timeout;

use super::arguments::arguments;
use super::keys;
use super::script::CHECK;
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::upkeep::{Retention, Swept, Upkeep};

/// How long the key that a health check writes is kept.
const PROBE_TTL: Duration = Duration::from_secs(60);
/// Health checks between two looks at the settings of the servers.
const CHECKS_PER_LOOK: u32 = 25;
/// How long a health check may take: less than an operation, which waits for a server to come back.
const CHECK_TIMEOUT: Duration = Duration::from_millis(700);

impl Shared {
    async fn check(&self) -> Result<(), StoreError> {
        self.compare().await?;
        if !self.link.loss_guard().has_joined() {
            self.join().await?;
        }
        // A server whose settings are wrong stays unfit until they are right.
        if !self.is_fit.load(Ordering::Relaxed) || self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECKS_PER_LOOK) {
            self.check_servers().await?;
        }
        self.write_probe().await
    }

    /// Writes a little, as an operation would.
    pub(crate) async fn write_probe(&self) -> Result<(), StoreError> {
        self.call(&CHECK, vec![keys::probe()], arguments![PROBE_TTL]).await.map(drop)
    }
}

impl Upkeep for RedisStore {
    /// Nothing: every key expires by itself when its time has passed.
    fn sweep(&self, _: Timestamp, _: Retention, _: usize) -> StoreFuture<Swept> {
        Box::pin(ready(Ok(Swept::default())))
    }

    fn last_sweep(&self) -> StoreFuture<Option<Timestamp>> {
        Box::pin(ready(Ok(None)))
    }

    /// Compares the store with what this node knows of it, and writes a little, as an operation would.
    fn check(&self) -> StoreFuture<()> {
        self.run_always(|store| async move {
            let late = |_| Err(StoreError::unavailable("it does not answer in time"));
            let outcome = timeout(CHECK_TIMEOUT, store.check()).await.unwrap_or_else(late);
            store.is_fit.store(outcome.is_ok(), Ordering::Relaxed);
            outcome
        })
    }

    fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        self.run_always(|store| async move {
            let since = store.accept_loss().await?;
            store.check().await?;
            store.is_fit.store(true, Ordering::Relaxed);
            Ok(since)
        })
    }

    fn leave(&self) -> StoreFuture<()> {
        // This holds even if the other nodes cannot be told now: they will notice.
        self.shared.left.store(true, Ordering::Relaxed);
        let background = Arc::clone(&self.background);
        Box::pin(async move { background.leave().await })
    }
}
