//! The server's time, told by a node between its questions to the server.
//!
//! Expiry is decided by scripts with the server's own time. What a node decides or shows for itself
//! (when a transaction opens, whether an event still runs) is told by this clock, which follows the
//! server's within a few milliseconds, so that all nodes agree although their machines do not.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::time::Timestamp;

use super::answer::{arguments, number};
use super::{RedisClock, Shared, keys, script};
use crate::error::StoreError;

/// How often the server is asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// An answer that took longer tells the time too vaguely.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(100);

/// This machine's clock, corrected.
#[derive(Debug, Default)]
pub(super) struct ServerClock {
    /// What the server's clock is ahead by, in milliseconds.
    ahead: AtomicI64,
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().millis() + self.ahead.load(Ordering::Relaxed))
    }
}

impl ServerClock {
    fn correct(&self, asked: Timestamp, server: i64, round_trip: Duration) {
        let half = i64::try_from(round_trip.as_millis() / 2).unwrap_or(0);
        self.ahead.store(server - half.saturating_add(asked.millis()), Ordering::Relaxed);
    }
}

impl Shared {
    /// The clock to tell the time by.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        match &self.clock {
            RedisClock::Server => Arc::clone(&self.server_clock) as Arc<dyn Clock>,
            RedisClock::Given(clock) => Arc::clone(clock),
        }
    }

    /// Asks the server for the time; an answer that took long changes nothing unless it is the first.
    pub(super) async fn read_clock(&self, first: bool) -> Result<(), StoreError> {
        let (asked, began) = (SystemClock.now(), Instant::now());
        let server = number("the time", self.call(&script::NOW, vec![keys::probe()], arguments![]).await?)?;
        if first || began.elapsed() <= ROUND_TRIP_MAX {
            self.server_clock.correct(asked, server, began.elapsed());
        }
        Ok(())
    }
}

/// Follows the server's clock for as long as the store is open.
pub(super) async fn follow(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        // While the server is away the last correction stands.
        let _ = shared.read_clock(false).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_ahead_by_what_the_server_said_less_half_the_way() {
        let clock = ServerClock::default();
        let here = SystemClock.now();
        clock.correct(here, here.millis() + 60_010, Duration::from_millis(20));
        let told = clock.now().since(SystemClock.now());
        assert!((Duration::from_millis(59_900)..=Duration::from_secs(60)).contains(&told), "{told:?}");
    }
}
