//! A node's estimate of the server's time.
//!
//! Scripts decide expiry with the server's own time. For a node's own decisions and displays (the opening time of a
//! transaction, the state of an event) it uses this clock, which follows the server's within a few milliseconds. So all
//! nodes agree although their machines' clocks differ.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::time::Timestamp;

/// Maximum round trip of a time sample; a slower answer is too inexact.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(100);

/// This machine's clock, corrected to the server's.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    /// Milliseconds by which the server's clock is ahead.
    ahead_ms: AtomicI64,
    /// True once the server's time was read.
    is_known: AtomicBool,
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().millis() + self.ahead_ms())
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic()
    }
}

impl ServerClock {
    /// Returns the milliseconds by which the server's clock is ahead of this machine's.
    pub(crate) fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// Corrects the clock by the server's time in the answer to a request sent at `sent_at`. A slow answer counts only
    /// if there was none before.
    pub(crate) fn correct(&self, sent_at: Timestamp, server_ms: i64, round_trip: Duration) {
        if round_trip > ROUND_TRIP_MAX && self.is_known.load(Ordering::Relaxed) {
            return;
        }
        self.is_known.store(true, Ordering::Relaxed);
        // The server read its clock about half a round trip after the request was sent.
        let half_trip_ms = i64::try_from(round_trip.as_millis() / 2).unwrap_or(0);
        self.ahead_ms.store(server_ms - half_trip_ms.saturating_add(sent_at.millis()), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_the_servers_time_less_half_the_round_trip() {
        let clock = ServerClock::default();
        let here = SystemClock.now();
        clock.correct(here, here.millis() + 60_010, Duration::from_millis(20));
        assert_eq!(clock.ahead_ms(), 60_000);
        let offset = clock.now().since(SystemClock.now());
        assert!((Duration::from_millis(59_900)..=Duration::from_secs(60)).contains(&offset), "{offset:?}");
    }

    #[test]
    fn a_slow_answer_counts_only_as_the_first_sample() {
        let (clock, here, slow) = (ServerClock::default(), SystemClock.now(), Duration::from_millis(102));
        for (server_ahead_ms, round_trip, expected_ahead_ms) in
            [(3_051, slow, 3_000), (9_051, slow, 3_000), (4_050, ROUND_TRIP_MAX, 4_000)]
        {
            clock.correct(here, here.millis() + server_ahead_ms, round_trip);
            assert_eq!(clock.ahead_ms(), expected_ahead_ms);
        }
    }
}
