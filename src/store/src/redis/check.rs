//! The health check.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use super::arguments::arguments;
use super::keys;
use super::script::MARK_STEP;
use super::shared::Shared;
use super::step::Step;
use crate::error::StoreError;

/// Lifetime of the key that a health check writes.
const PROBE_TTL: Duration = Duration::from_secs(60);
/// Number of health checks between two reads of the servers' INFO.
const CHECKS_PER_INFO: u32 = 25;
/// Timeout of a health check: shorter than an operation's, which waits for a server to come back.
const CHECK_TIMEOUT: Duration = Duration::from_millis(700);

/// Returns the step that writes a short-lived key.
pub(crate) fn probe_of(key: Vec<u8>) -> Step {
    Step::default().then_with_time("SET", key, arguments!["PX", PROBE_TTL])
}

impl Shared {
    /// Checks that the servers have lost no data and accept writes.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        let timed_out = |_| Err(StoreError::unavailable("it does not answer in time"));
        let outcome = timeout(CHECK_TIMEOUT, self.check_untimed()).await.unwrap_or_else(timed_out);
        self.is_healthy.store(outcome.is_ok(), Ordering::Relaxed);
        outcome
    }

    /// Checks without a time limit.
    pub(crate) async fn check_untimed(&self) -> Result<(), StoreError> {
        self.check_for_loss().await?;
        if !self.link.loss_guard().has_opened_store() {
            self.join().await?;
        }
        // A node stays unhealthy until wrong settings are corrected, and refuses new records until there is memory.
        let is_impaired = !self.is_healthy.load(Ordering::Relaxed) || self.is_nearly_full.load(Ordering::Relaxed);
        if is_impaired || self.health_checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECKS_PER_INFO) {
            self.check_servers().await?;
        }
        self.write_probe().await
    }

    /// Writes a short-lived key, to show that the servers accept writes.
    pub(crate) async fn write_probe(&self) -> Result<(), StoreError> {
        self.run_step(&MARK_STEP, probe_of(keys::probe())).await.map(drop)
    }
}
