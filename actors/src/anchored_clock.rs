//! A clock anchored once to wall time and moved by the runtime's timer afterwards.
//!
//! It does not jump when the machine's clock is set, and it stands still and advances together
//! with tokio's timers, which lets fifteen minutes pass in a test within microseconds.

use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::time::Timestamp;
use tokio::time::Instant;

/// Wall time at the anchor plus the runtime's time since.
#[derive(Debug)]
pub struct AnchoredClock {
    wall: Timestamp,
    anchor: Instant,
}

impl AnchoredClock {
    /// A clock that agrees with the machine's clock now.
    #[must_use]
    pub fn new() -> Self {
        Self { wall: SystemClock.now(), anchor: Instant::now() }
    }
}

impl Default for AnchoredClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for AnchoredClock {
    fn now(&self) -> Timestamp {
        self.wall + self.anchor.elapsed()
    }
}
