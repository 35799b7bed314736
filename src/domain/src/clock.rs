//! The source of the current time. Code that depends on time takes a [`Clock`], so a test can advance it by
//! fifteen minutes without waiting.

use std::fmt::Debug;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use chrono::Utc;

use crate::time::Timestamp;

/// A source of time.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns the time since an arbitrary moment, by a clock that cannot be set.
    fn monotonic(&self) -> Duration;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(Utc::now().timestamp_millis())
    }

    fn monotonic(&self) -> Duration {
        static FIRST_CALL: LazyLock<Instant> = LazyLock::new(Instant::now);
        FIRST_CALL.elapsed()
    }
}

/// A clock for tests, which moves only by [`ManualClock::advance`] and [`ManualClock::jump`].
#[derive(Debug)]
pub struct ManualClock {
    /// The wall time in milliseconds since the Unix epoch.
    now_ms: AtomicI64,
    /// The part of `now_ms` that is due to jumps.
    jumped_ms: AtomicI64,
}

impl ManualClock {
    /// Creates a clock that shows `start`.
    #[must_use]
    pub const fn starting_at(start: Timestamp) -> Self {
        Self { now_ms: AtomicI64::new(start.millis()), jumped_ms: AtomicI64::new(0) }
    }

    /// Advances the time.
    pub fn advance(&self, span: Duration) {
        self.now_ms.fetch_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets the clock forward or back. The monotonic time does not change.
    pub fn jump(&self, millis: i64) {
        self.jumped_ms.fetch_add(millis, Ordering::SeqCst);
        self.now_ms.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        let elapsed = self.now_ms.load(Ordering::SeqCst).saturating_sub(self.jumped_ms.load(Ordering::SeqCst));
        Duration::from_millis(u64::try_from(elapsed).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_shows_a_recent_time() {
        assert!(SystemClock.now() > Timestamp::parse_iso8601("2026-01-01T00:00:00Z").unwrap());
    }
}
