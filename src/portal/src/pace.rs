//! The recent pace of a client's use of credits, and how long a balance lasts at it.

use sakshi_domain::day_figures::Day;
use sakshi_domain::time::Timestamp;

const DAY_MS: u64 = 86_400_000;
/// Days whose use predicts how long a balance lasts.
pub(super) const PACE_DAYS: usize = 7;

/// Credits used in a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    used: u64,
    millis: u64,
}

impl Pace {
    /// Returns the pace since `from`; `None` without use.
    pub(super) fn since(from: Timestamp, used: u64, now: Timestamp) -> Option<Self> {
        let millis = u64::try_from(now.millis() - from.millis()).unwrap_or_default().max(1);
        (used > 0).then_some(Self { used, millis })
    }

    /// Returns the pace of the last seven days, given the credits used on each of the days that end today. Returns
    /// `None` with less history, because a first afternoon does not predict a week.
    pub(super) fn of_days(credits_by_day: &[u64], now: Timestamp) -> Option<Self> {
        // Index of the first of the seven days.
        let window = credits_by_day.len().saturating_sub(PACE_DAYS);
        let first_use = credits_by_day.iter().position(|used| *used > 0)?;
        if first_use > window {
            return None;
        }
        let recent = &credits_by_day[window..];
        let days_before = i64::try_from(recent.len()).unwrap_or_default() - 1;
        Self::since(Day::containing(now).plus(-days_before).begin(), recent.iter().sum(), now)
    }

    /// Returns the whole days for which a balance lasts; `None` without a balance.
    pub(super) fn days_left(self, balance: u64) -> Option<u128> {
        let span = u128::from(balance) * u128::from(self.millis);
        (balance > 0).then(|| span / (u128::from(self.used) * u128::from(DAY_MS)))
    }
}
