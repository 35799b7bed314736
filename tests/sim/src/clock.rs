//! The clocks of a run: simulated time, and each clock's error.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sakshi_domain::clock::Clock;
use sakshi_domain::time::Timestamp;
use tokio::time::Instant;

use crate::world::START;

/// A clock in simulated time, perhaps with an error: the store's or a node's.
#[derive(Debug)]
pub(crate) struct SimulatedClock {
    /// Start of the run.
    pub(crate) started_at: Instant,
    /// Milliseconds by which the clock is ahead; negative if it is behind.
    difference_ms: AtomicI64,
}

impl SimulatedClock {
    pub(crate) fn new(started_at: Instant, difference_ms: i64) -> Arc<Self> {
        Arc::new(Self { started_at, difference_ms: AtomicI64::new(difference_ms) })
    }

    /// Sets the clock's difference from the simulated time, and returns the previous one.
    pub(crate) fn set_difference(&self, difference_ms: i64) -> i64 {
        self.difference_ms.swap(difference_ms, Ordering::Relaxed)
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(START.millis() + elapsed + self.difference_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.started_at.elapsed()
    }
}
