//! Detects that the wall clock was set, by comparison with a monotonic clock, and tracks when it can be trusted again.

use std::time::Duration;

use crate::limits::{CLOCK_AGREEMENT, CLOCK_JUMP_MIN, CLOCK_STOPPED_MAX};
use crate::time::Timestamp;

/// A jump of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// Last time of the clock before it was set.
    pub since: Timestamp,
    /// Milliseconds by which the clock is ahead now; negative if it is behind.
    pub ahead_ms: i64,
}

/// The result of comparing the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The wall clock can be trusted.
    Holds,
    /// The wall clock was set since the last comparison.
    Broken(ClockJump),
    /// The wall clock was set before and has not run evenly for [`CLOCK_AGREEMENT`] yet.
    Awaited,
    /// The wall clock has run evenly for [`CLOCK_AGREEMENT`] and can be trusted again.
    Restored,
}

/// The time of both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time of the wall clock.
    pub wall: Timestamp,
    /// Time of the monotonic clock, since an arbitrary moment.
    pub monotonic: Duration,
}

impl Reading {
    /// Returns the milliseconds that the wall clock has gained on the monotonic clock since an earlier reading.
    fn gained_since(self, earlier: Self) -> i64 {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let elapsed = millis(self.monotonic).saturating_sub(millis(earlier.monotonic));
        self.wall.millis().saturating_sub(earlier.wall.millis()).saturating_sub(elapsed)
    }
}

/// Comparison of the wall clock with a monotonic clock, from reading to reading.
#[derive(Clone, Copy, Debug)]
pub struct ClockWatch {
    /// The latest reading.
    last: Reading,
    /// Set while the wall clock cannot be trusted.
    untrusted: Option<Untrusted>,
}

/// A wall clock that cannot be trusted since a jump.
#[derive(Clone, Copy, Debug)]
struct Untrusted {
    /// Last reading that could be trusted.
    trusted: Reading,
    /// Monotonic time of the last jump.
    jumped_at: Duration,
}

impl ClockWatch {
    /// Starts with a first reading. `last_known` is the last time of an earlier run; a difference of more than
    /// [`CLOCK_STOPPED_MAX`] counts as a jump.
    #[must_use]
    pub fn starting(first: Reading, last_known: Option<Timestamp>) -> Self {
        let trusted = Reading { wall: last_known.unwrap_or(first.wall), ..first };
        let untrusted = is_beyond(first.gained_since(trusted), CLOCK_STOPPED_MAX)
            .then_some(Untrusted { trusted, jumped_at: first.monotonic });
        Self { last: first, untrusted }
    }

    /// Compares the clocks again.
    pub fn compare(&mut self, now: Reading) -> Agreement {
        let previous = std::mem::replace(&mut self.last, now);
        if is_beyond(now.gained_since(previous), CLOCK_JUMP_MIN) {
            let trusted = self.untrusted.map_or(previous, |untrusted| untrusted.trusted);
            self.untrusted = Some(Untrusted { trusted, jumped_at: now.monotonic });
            return Agreement::Broken(self.jump_from(trusted));
        }
        match self.untrusted {
            None => Agreement::Holds,
            Some(untrusted) if now.monotonic.saturating_sub(untrusted.jumped_at) < CLOCK_AGREEMENT => {
                Agreement::Awaited
            }
            Some(_) => {
                self.untrusted = None;
                Agreement::Restored
            }
        }
    }

    /// Returns the jump that makes the clock untrusted.
    #[must_use]
    pub fn jump(&self) -> Option<ClockJump> {
        self.untrusted.map(|untrusted| self.jump_from(untrusted.trusted))
    }

    /// Returns the jump from the last trusted reading to the latest one.
    fn jump_from(&self, trusted: Reading) -> ClockJump {
        ClockJump { since: trusted.wall, ahead_ms: self.last.gained_since(trusted) }
    }

    /// Trusts the clock from now on. Returns the jump that made it untrusted.
    pub fn accept(&mut self) -> Option<ClockJump> {
        let jump = self.jump();
        self.untrusted = None;
        jump
    }
}

fn is_beyond(millis: i64, limit: Duration) -> bool {
    u128::from(millis.unsigned_abs()) > limit.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const START: i64 = 1_800_000_000_000;

    /// Returns a reading with the wall clock ahead by `gained_ms`.
    fn reading_at(elapsed_ms: i64, gained_ms: i64) -> Reading {
        Reading {
            wall: Timestamp::from_millis(START + elapsed_ms + gained_ms),
            monotonic: Duration::from_millis(elapsed_ms.unsigned_abs()),
        }
    }

    /// Returns a jump after the time `since_ms`, in milliseconds from the start.
    fn jump(since_ms: i64, ahead_ms: i64) -> ClockJump {
        ClockJump { since: Timestamp::from_millis(START + since_ms), ahead_ms }
    }

    #[test]
    fn slewing_clocks_and_late_readings_are_no_jump() {
        let mut watch = ClockWatch::starting(reading_at(0, 0), None);
        // 500 ppm, the maximum NTP slew, for a day; then a day without a comparison; then the limit itself, both ways.
        let slewing = (1..=8_640).map(|reading| (reading * 10_000, reading * 5));
        let later = [(48 * HOUR, 8_640 * 10), (48 * HOUR + 1, 8_640 * 10 + 5 * MINUTE), (48 * HOUR + 2, 8_640 * 10)];
        for (elapsed, gained) in slewing.chain(later) {
            assert_eq!(watch.compare(reading_at(elapsed, gained)), Agreement::Holds, "{elapsed} {gained}");
        }
    }

    #[test]
    fn a_jump_of_more_than_five_minutes_is_reported_once() {
        for ahead in [5 * MINUTE + 1, -5 * MINUTE - 1, 48 * HOUR, -48 * HOUR] {
            let mut watch = ClockWatch::starting(reading_at(0, 0), None);
            watch.compare(reading_at(10_000, 0));
            assert_eq!(watch.compare(reading_at(20_000, ahead)), Agreement::Broken(jump(10_000, ahead)));
            assert_eq!(watch.compare(reading_at(30_000, ahead)), Agreement::Awaited);
            assert_eq!(watch.jump(), Some(jump(10_000, ahead)));
        }
    }

    #[test]
    fn the_clock_is_trusted_again_after_an_hour_without_a_jump() {
        let mut watch = ClockWatch::starting(reading_at(0, 0), None);
        watch.compare(reading_at(0, 48 * HOUR));
        assert_eq!(watch.compare(reading_at(HOUR - 1, 48 * HOUR)), Agreement::Awaited);
        assert_eq!(watch.compare(reading_at(HOUR, 0)), Agreement::Broken(jump(0, 0)), "the way back is a jump as well");
        assert_eq!(watch.compare(reading_at(2 * HOUR - 1, 0)), Agreement::Awaited);
        assert_eq!(watch.compare(reading_at(2 * HOUR, 0)), Agreement::Restored);
        assert_eq!((watch.compare(reading_at(2 * HOUR, 0)), watch.jump()), (Agreement::Holds, None));
    }

    #[test]
    fn a_start_more_than_an_hour_from_the_known_time_is_a_jump() {
        for (known, ahead) in [(-HOUR, HOUR), (HOUR, -HOUR), (0, 0)] {
            let watch = ClockWatch::starting(reading_at(0, 0), Some(Timestamp::from_millis(START + known)));
            assert_eq!(watch.jump(), None, "{ahead}");
        }
        for known in [-HOUR - 1, HOUR + 1] {
            let mut watch = ClockWatch::starting(reading_at(0, 0), Some(Timestamp::from_millis(START + known)));
            assert_eq!(watch.jump(), Some(jump(known, -known)));
            assert_eq!(watch.compare(reading_at(0, 0)), Agreement::Awaited);
            assert_eq!(watch.compare(reading_at(HOUR, 0)), Agreement::Restored);
        }
    }

    #[test]
    fn an_accepted_clock_is_trusted_until_the_next_jump() {
        let mut watch = ClockWatch::starting(reading_at(0, 0), None);
        assert_eq!(watch.accept(), None);
        watch.compare(reading_at(0, 48 * HOUR));
        assert_eq!(watch.accept(), Some(jump(0, 48 * HOUR)));
        assert_eq!((watch.compare(reading_at(1, 48 * HOUR)), watch.accept()), (Agreement::Holds, None));
        assert_eq!(watch.compare(reading_at(2, 0)), Agreement::Broken(jump(1 + 48 * HOUR, -48 * HOUR)));
    }
}
