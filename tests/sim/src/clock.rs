//! The clocks of a run: simulated time, and each clock's error.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sakshi_domain::clock::Clock;
use sakshi_domain::time::Timestamp;
use tokio::time::Instant;

use crate::world::START;

/// The clock of the store; with a difference, that of a node.
#[derive(Debug)]
pub(crate) struct SimulatedClock {
    pub(crate) begun: Instant,
    difference_ms: AtomicI64,
}

impl SimulatedClock {
    pub(crate) fn new(begun: Instant, difference_ms: i64) -> Arc<Self> {
        Arc::new(Self { begun, difference_ms: AtomicI64::new(difference_ms) })
    }

    /// Sets the clock's difference and returns the previous one.
    pub(crate) fn differ(&self, difference_ms: i64) -> i64 {
        self.difference_ms.swap(difference_ms, Ordering::Relaxed)
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(START.millis() + elapsed + self.difference_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }
}
