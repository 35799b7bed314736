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
