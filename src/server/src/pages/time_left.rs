//! What is left of a window, by the server's clock.

use std::fmt;

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

/// Seconds until a transaction expires, rounded up, so that zero means expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeLeft(pub(super) u64);

impl TimeLeft {
    pub(super) fn of(pending: &Pending, now: Timestamp) -> Self {
        let left = pending.expires_at.since(now);
        Self(left.as_secs() + u64::from(left.subsec_nanos() > 0))
    }
}

/// As minutes and seconds: `14:05`.
impl fmt::Display for TimeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// Hours and minutes of a point in time, in UTC: `14:05`.
pub(super) fn clock_face(at: Timestamp) -> String {
    at.to_string().get(11..16).unwrap_or_default().to_owned()
}

/// A point in time `offset` minutes east of UTC, for people: `2026-12-31 18:30 UTC+05:30`.
pub(super) fn written(at: Timestamp, offset: i32) -> String {
    let local = Timestamp::from_millis(at.millis() + i64::from(offset) * 60_000).to_string();
    let (day, time) = (local.get(..10).unwrap_or_default(), local.get(11..16).unwrap_or_default());
    match offset {
        0 => format!("{day} {time} UTC"),
        _ => {
            let sign = if offset < 0 { '-' } else { '+' };
            format!("{day} {time} UTC{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_the_offset_that_is_asked_for() {
        let at = Timestamp::parse_rfc3339("2026-12-31T18:30:00Z").unwrap();
        assert_eq!(written(at, 0), "2026-12-31 18:30 UTC");
        assert_eq!(written(at, 330), "2027-01-01 00:00 UTC+05:30");
        assert_eq!(written(at, -570), "2026-12-31 09:00 UTC-09:30");
    }
}
