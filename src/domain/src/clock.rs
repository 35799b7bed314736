//! The clock port: where "now" comes from.
//!
//! Code that depends on time is handed a clock, so that fifteen minutes can pass in a test without
//! anybody waiting for them.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::Utc;

use crate::time::Timestamp;

/// Tells the time.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock port")]
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(Utc::now().timestamp_millis())
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock standing at `start`.
    #[must_use]
    pub const fn starting_at(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.millis()))
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
