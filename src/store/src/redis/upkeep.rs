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
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::upkeep::{Retention, Swept, Upkeep};

/// How long the key that a health check writes is kept.
const PROBE_TTL: Duration = Duration::from_secs(60);
/// How long a health check may take: less than an operation, which waits for a server to come back.
const CHECK_TIMEOUT: Duration = Duration::from_millis(700);

impl Upkeep for RedisStore {
    /// Nothing: every key expires by itself when its time has passed.
    fn sweep(&self, _: Timestamp, _: Retention, _: usize) -> StoreFuture<Swept> {
        Box::pin(ready(Ok(Swept::default())))
    }

    fn last_sweep(&self) -> StoreFuture<Option<Timestamp>> {
        Box::pin(ready(Ok(None)))
    }

    /// Writes a little, as an operation would.
    fn check(&self) -> StoreFuture<()> {
        self.run(|store| async move {
            let write = async {
                store.check_canary().await?;
                store.call(&CHECK, vec![keys::probe()], arguments![PROBE_TTL]).await.map(drop)
            };
            let late = |_| Err(StoreError::Unavailable("it does not answer in time".to_owned()));
            timeout(CHECK_TIMEOUT, write).await.unwrap_or_else(late)
        })
    }

    fn leave(&self) -> StoreFuture<()> {
        // This holds even if the other nodes cannot be told now: they will notice.
        self.shared.left.store(true, Ordering::Relaxed);
        let background = Arc::clone(&self.background);
        Box::pin(async move { background.leave().await })
    }
}
