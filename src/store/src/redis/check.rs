//! The health check.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use super::arguments::arguments;
use super::keys;
use super::script::CHECK;
use super::shared::Shared;
use crate::error::StoreError;

/// Lifetime of the key that a health check writes.
pub(super) const PROBE_TTL: Duration = Duration::from_secs(60);
/// Health checks between two reads of the servers' settings.
const CHECKS_PER_LOOK: u32 = 25;
/// Timeout of a health check: shorter than an operation's, which waits for a server to come back.
const CHECK_TIMEOUT: Duration = Duration::from_millis(700);

impl Shared {
    /// Compares the store with this node's knowledge of it, and writes a little, as an operation would.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        let late = |_| Err(StoreError::unavailable("it does not answer in time"));
        let outcome = timeout(CHECK_TIMEOUT, self.check_all()).await.unwrap_or_else(late);
        self.is_fit.store(outcome.is_ok(), Ordering::Relaxed);
        outcome
    }

    pub(crate) async fn check_all(&self) -> Result<(), StoreError> {
        self.compare().await?;
        if !self.link.loss_guard().has_joined() {
            self.join().await?;
        }
        // A server with wrong settings stays unhealthy until they are corrected, and one that is nearly full refuses
        // until it has room.
        let is_impaired = !self.is_fit.load(Ordering::Relaxed) || self.is_nearly_full.load(Ordering::Relaxed);
        if is_impaired || self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECKS_PER_LOOK) {
            self.check_servers().await?;
        }
        self.write_probe().await
    }

    /// Writes a little, as an operation would.
    pub(crate) async fn write_probe(&self) -> Result<(), StoreError> {
        self.call(&CHECK, vec![keys::probe()], arguments![PROBE_TTL]).await.map(drop)
    }
}
