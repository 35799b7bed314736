//! Verifications of the last thirty days, one bar per day, as a drawing without a style of its own.

use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::time::Timestamp;

use crate::pace::{PACE_DAYS, Pace};

const DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;
/// Width of a bar with its gap, in units of the drawing.
const STEP: u64 = 20;
/// Height of the drawing, in its units.
const HEIGHT: u64 = 120;
/// Least height of a bar, so that it is visible.
const BAR_HEIGHT_MIN: u64 = 4;
/// Longest estimate that is given in days.
const ESTIMATE_DAYS_MAX: u128 = 365;

/// Credits used on each day, in UTC.
#[derive(Debug)]
pub(super) struct Chart {
    /// Day of the first bar, in days since 1970.
    first_day: i64,
    credits_by_day: Vec<u64>,
    now: Timestamp,
    /// Time of the oldest entry read, if unread entries are within the chart.
    pub(super) cut_at: Option<Timestamp>,
    /// Time of the oldest entry of the ledger.
    pub(super) since: Option<Timestamp>,
}

/// A bar of the chart.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) height: u64,
    pub(super) day: String,
    pub(super) credits: u64,
}

/// Returns the day of a time, in days since 1970.
fn day(at: Timestamp) -> i64 {
    at.millis().div_euclid(DAY_MS)
}

impl Chart {
    /// Builds an empty chart that ends today.
    pub(super) fn until(now: Timestamp) -> Self {
        let days = usize::try_from(DAYS).unwrap_or_default();
        Self { first_day: day(now) - DAYS + 1, credits_by_day: vec![0; days], now, cut_at: None, since: None }
    }

    /// Counts debits.
    pub(super) fn count(&mut self, entries: &[LedgerEntry]) {
        for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Debit) {
            let index = usize::try_from(day(entry.at) - self.first_day).ok();
            if let Some(credits) = index.and_then(|index| self.credits_by_day.get_mut(index)) {
                *credits += entry.amount.unsigned_abs();
            }
        }
    }

    /// Returns true if a time is before the first bar.
    pub(super) fn is_before(&self, at: Timestamp) -> bool {
        day(at) < self.first_day
    }

    /// Returns the credits used on all days.
    pub(super) fn total(&self) -> u64 {
        self.credits_by_day.iter().sum()
    }

    /// Returns the credits used on the busiest day.
    pub(super) fn busiest(&self) -> u64 {
        self.credits_by_day.iter().copied().max().unwrap_or(0)
    }

    /// Formats the day of a bar: `2026-03-01`.
    fn date(&self, index: usize) -> String {
        let day = self.first_day + i64::try_from(index).unwrap_or_default();
        Timestamp::from_millis(day * DAY_MS).to_string().get(..10).unwrap_or_default().to_owned()
    }

    pub(super) fn first_date(&self) -> String {
        self.date(0)
    }

    pub(super) fn last_date(&self) -> String {
        self.date(self.credits_by_day.len().saturating_sub(1))
    }

    pub(super) fn width(&self) -> u64 {
        STEP * self.credits_by_day.len() as u64
    }

    /// Returns the number at the top of the scale: round and even.
    pub(super) fn scale_top(&self) -> u64 {
        let busiest = self.busiest();
        let scales = std::iter::successors(Some(1_u64), |scale| scale.checked_mul(10));
        scales
            .flat_map(|scale| [2, 4, 6, 8].map(|step| scale.saturating_mul(step)))
            .find(|top| *top >= busiest)
            .unwrap_or(busiest)
    }

    /// Returns the pace of the last seven days, or of the part of them that was read. Returns `None` if the ledger is
    /// younger.
    fn pace(&self) -> Option<Pace> {
        // Index of the first of the seven days.
        let window = self.credits_by_day.len().saturating_sub(PACE_DAYS);
        let index = |at| usize::try_from(day(at) - self.first_day).unwrap_or(0);
        match self.cut_at.filter(|at| index(*at) >= window) {
            Some(at) if self.since.is_some_and(|since| index(since) <= window) => {
                Pace::since(at, self.credits_by_day.iter().skip(index(at)).sum(), self.now)
            }
            Some(_) => None,
            None => Pace::of_days(&self.credits_by_day, self.now),
        }
    }

    /// Estimates how long a balance lasts at the recent pace. Returns `None` without recent use or without a balance.
    pub(super) fn days_left(&self, balance: u64) -> Option<String> {
        Some(match self.pace()?.days_left(balance)? {
            0 => "Less than a day left at this pace".to_owned(),
            1 => "≈ 1 day left at this pace".to_owned(),
            days if days <= ESTIMATE_DAYS_MAX => format!("≈ {days} days left at this pace"),
            _ => "More than a year left at this pace".to_owned(),
        })
    }

    /// Returns the bars. A day with any use has a visible bar.
    pub(super) fn bars(&self) -> Vec<Bar> {
        let top = self.scale_top();
        let bar = |(index, credits): (usize, &u64)| {
            let height = if *credits == 0 { 0 } else { (credits * HEIGHT / top).max(BAR_HEIGHT_MIN) };
            Bar { x: index as u64 * STEP, y: HEIGHT - height, height, day: self.date(index), credits: *credits }
        };
        self.credits_by_day.iter().enumerate().map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryKind, amount: i64, at: &str) -> LedgerEntry {
        let at = Timestamp::parse_iso8601(at).unwrap();
        LedgerEntry { seq: 1, kind, amount, balance_after: 0, reference: "r".into(), at }
    }

    #[test]
    fn a_bar_shows_the_debits_of_its_day() {
        let mut chart = Chart::until(Timestamp::parse_iso8601("2026-03-30T12:00:00Z").unwrap());
        chart.count(&[
            entry(EntryKind::Debit, 1, "2026-02-28T23:59:59Z"),
            entry(EntryKind::Debit, 1, "2026-03-01T00:00:00Z"),
            entry(EntryKind::Debit, 3, "2026-03-30T23:59:59Z"),
            entry(EntryKind::Debit, 1, "2026-03-30T00:00:00Z"),
            entry(EntryKind::Grant, 500, "2026-03-30T01:00:00Z"),
            entry(EntryKind::Adjust, -5, "2026-03-30T01:00:00Z"),
            entry(EntryKind::Debit, 1, "2026-03-31T00:00:00Z"),
        ]);
        assert_eq!(
            (chart.total(), chart.busiest(), chart.first_date(), chart.last_date()),
            (5, 4, "2026-03-01".into(), "2026-03-30".into())
        );
        let bars = chart.bars();
        let drawn: Vec<_> = bars
            .iter()
            .filter(|bar| bar.height > 0)
            .map(|bar| (bar.x, bar.y, bar.height, bar.day.as_str(), bar.credits))
            .collect();
        assert_eq!(drawn, [(0, 90, 30, "2026-03-01", 1), (580, 0, 120, "2026-03-30", 4)]);
        assert!(chart.is_before(Timestamp::parse_iso8601("2026-02-28T23:59:59Z").unwrap()));
    }

    #[test]
    fn an_unused_chart_is_empty_and_small_use_stays_visible() {
        let mut chart = Chart::until(Timestamp::parse_iso8601("2026-03-30T12:00:00Z").unwrap());
        assert!(chart.bars().iter().all(|bar| bar.height == 0));
        chart.count(&[
            entry(EntryKind::Debit, 1, "2026-03-29T00:00:00Z"),
            entry(EntryKind::Debit, 10_000, "2026-03-30T00:00:00Z"),
        ]);
        // The last bar but one is the day with a single credit.
        assert_eq!(chart.bars()[28].height, BAR_HEIGHT_MIN);
    }

    #[test]
    fn the_scale_ends_in_a_round_even_number() {
        for (most, top) in
            [(0, 2), (1, 2), (2, 2), (3, 4), (7, 8), (9, 20), (21, 40), (99, 200), (801, 2_000), (u64::MAX, u64::MAX)]
        {
            let mut chart = Chart::until(Timestamp::from_millis(0));
            chart.credits_by_day[3] = most;
            assert_eq!(chart.scale_top(), top, "{most}");
        }
    }

    #[test]
    fn the_estimate_uses_seven_days_and_needs_as_much_history() {
        let at = |text: &str| Timestamp::parse_iso8601(text).unwrap();
        let days_left = |credits_by_days_ago: &[(usize, u64)], cut_at: Option<&str>, balance| {
            let mut chart = Chart::until(at("2026-03-30T12:00:00Z"));
            for (days_ago, count) in credits_by_days_ago {
                chart.credits_by_day[29 - days_ago] = *count;
            }
            chart.cut_at = cut_at.map(at);
            chart.since = Some(at("2026-01-01T00:00:00Z"));
            chart.days_left(balance)
        };
        let days = |count| Some(format!("≈ {count} days left at this pace"));
        assert_eq!(days_left(&[], None, 100), None, "nothing was used");
        assert_eq!(days_left(&[(20, 50)], None, 100), None, "nothing was used in the last seven days");
        assert_eq!(days_left(&[(0, 5)], None, 0), None, "nothing is left");
        assert_eq!(
            days_left(&[(20, 1), (6, 13), (0, 13)], None, 72),
            days(18),
            "26 in six days and a half are four a day"
        );
        for days_ago in 0..6 {
            assert_eq!(days_left(&[(days_ago, 25)], None, 100), None, "the first use was {days_ago} days ago");
        }
        assert_eq!(days_left(&[(6, 26)], None, 100), days(25), "four a day for six days and a half");
        assert_eq!(days_left(&[(20, 1), (0, 65)], None, 20), days(2));
        assert_eq!(days_left(&[(20, 1), (0, 65)], None, 10).as_deref(), Some("≈ 1 day left at this pace"));
        assert_eq!(days_left(&[(20, 1), (0, 65)], None, 9).as_deref(), Some("Less than a day left at this pace"));
        assert_eq!(days_left(&[(20, 1), (0, 13)], None, 800).as_deref(), Some("More than a year left at this pace"));
        assert_eq!(
            days_left(&[(20, 1), (0, 13)], None, u64::MAX).as_deref(),
            Some("More than a year left at this pace")
        );
        assert_eq!(
            days_left(&[(0, 4_000)], Some("2026-03-30T06:00:00Z"), 160_000),
            days(10),
            "only what was read counts, from its own beginning"
        );
        assert_eq!(
            days_left(&[(20, 50), (1, 65)], Some("2026-03-10T06:00:00Z"), 100),
            days(10),
            "a chart that is cut before the last seven days"
        );
    }
}
