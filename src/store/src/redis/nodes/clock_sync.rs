//! Following the server's clock.

use std::sync::Weak;
use std::time::{Duration, Instant};

use sakshi_domain::clock::{Clock as _, SystemClock};

use crate::error::StoreError;
use crate::redis::shared::Shared;
use crate::redis::{keys, script};

/// How often the server is asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// A reply that took longer tells the time too inexactly.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(100);

impl Shared {
    /// Asks the server for the time. A slow reply changes nothing unless it is the first.
    pub(crate) async fn read_clock(&self, first: bool) -> Result<(), StoreError> {
        let (asked, began) = (SystemClock.now(), Instant::now());
        let server = self.call(&script::NOW, vec![keys::probe()], vec![]).await?.parsed()?;
        if first || began.elapsed() <= ROUND_TRIP_MAX {
            self.server_clock.correct(asked, server, began.elapsed());
        }
        Ok(())
    }
}

/// Follows the server's clock for as long as the store is open.
pub(crate) async fn follow(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        // While the server cannot be reached, the last correction is used.
        let _ = shared.read_clock(false).await;
    }
}
