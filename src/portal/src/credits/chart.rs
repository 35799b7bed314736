//! Verifications of the last thirty days, a bar for each, as a drawing without a style of its own.

use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::time::Timestamp;

const DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;
/// Units of the drawing.
const STEP: u64 = 20;
const HEIGHT: u64 = 120;

/// Credits used on each day, in UTC.
#[derive(Debug)]
pub(super) struct Chart {
    /// The day of the first bar, in days since 1970.
    first: i64,
    used: Vec<u64>,
    /// The ledger goes further back than was read, within the time of the chart.
    pub(super) is_cut: bool,
}

/// One bar.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) height: u64,
    pub(super) words: String,
}

fn day(at: Timestamp) -> i64 {
    at.millis().div_euclid(DAY_MS)
}

impl Chart {
    /// An empty one that ends today.
    pub(super) fn until(now: Timestamp) -> Self {
        let days = usize::try_from(DAYS).unwrap_or_default();
        Self { first: day(now) - DAYS + 1, used: vec![0; days], is_cut: false }
    }

    /// Counts what was debited.
    pub(super) fn count(&mut self, entries: &[LedgerEntry]) {
        for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Debit) {
            let place = usize::try_from(day(entry.at) - self.first).ok();
            if let Some(used) = place.and_then(|place| self.used.get_mut(place)) {
                *used += entry.amount.unsigned_abs();
            }
        }
    }

    /// Whether a moment is before the first bar.
    pub(super) fn is_before(&self, at: Timestamp) -> bool {
        day(at) < self.first
    }

    pub(super) fn total(&self) -> u64 {
        self.used.iter().sum()
    }

    pub(super) fn most(&self) -> u64 {
        self.used.iter().copied().max().unwrap_or(0)
    }

    fn date(&self, place: usize) -> String {
        let day = self.first + i64::try_from(place).unwrap_or_default();
        Timestamp::from_millis(day * DAY_MS).to_string().get(..10).unwrap_or_default().to_owned()
    }

    pub(super) fn from(&self) -> String {
        self.date(0)
    }

    pub(super) fn to(&self) -> String {
        self.date(self.used.len().saturating_sub(1))
    }

    pub(super) fn width(&self) -> u64 {
        STEP * self.used.len() as u64
    }

    /// The bars; a day on which something was used has one that can be seen.
    pub(super) fn bars(&self) -> Vec<Bar> {
        let most = self.most().max(1);
        let bar = |(place, used): (usize, &u64)| {
            let height = if *used == 0 { 0 } else { (used * HEIGHT / most).max(4) };
            Bar { x: place as u64 * STEP, y: HEIGHT - height, height, words: format!("{}: {used}", self.date(place)) }
        };
        self.used.iter().enumerate().map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryKind, amount: i64, at: &str) -> LedgerEntry {
        let at = Timestamp::parse_rfc3339(at).unwrap();
        LedgerEntry { seq: 1, kind, amount, balance_after: 0, reference: "r".into(), at }
    }

    #[test]
    fn a_bar_is_what_was_debited_on_its_day() {
        let mut chart = Chart::until(Timestamp::parse_rfc3339("2026-03-30T12:00:00Z").unwrap());
        chart.count(&[
            entry(EntryKind::Debit, 1, "2026-02-28T23:59:59Z"),
            entry(EntryKind::Debit, 1, "2026-03-01T00:00:00Z"),
            entry(EntryKind::Debit, 3, "2026-03-30T23:59:59Z"),
            entry(EntryKind::Debit, 1, "2026-03-30T00:00:00Z"),
            entry(EntryKind::Grant, 500, "2026-03-30T01:00:00Z"),
            entry(EntryKind::Adjust, -5, "2026-03-30T01:00:00Z"),
            entry(EntryKind::Debit, 1, "2026-03-31T00:00:00Z"),
        ]);
        assert_eq!((chart.total(), chart.most(), chart.from(), chart.to()), (5, 4, "2026-03-01".into(), "2026-03-30".into()));
        let bars = chart.bars();
        let drawn: Vec<_> = bars.iter().filter(|bar| bar.height > 0).map(|bar| (bar.x, bar.y, bar.height, bar.words.as_str())).collect();
        assert_eq!(drawn, [(0, 90, 30, "2026-03-01: 1"), (580, 0, 120, "2026-03-30: 4")]);
        assert!(chart.is_before(Timestamp::parse_rfc3339("2026-02-28T23:59:59Z").unwrap()));
    }

    #[test]
    fn a_chart_of_nothing_is_empty_and_a_little_can_be_seen_beside_much() {
        let mut chart = Chart::until(Timestamp::parse_rfc3339("2026-03-30T12:00:00Z").unwrap());
        assert!(chart.bars().iter().all(|bar| bar.height == 0));
        chart.count(&[entry(EntryKind::Debit, 1, "2026-03-29T00:00:00Z"), entry(EntryKind::Debit, 10_000, "2026-03-30T00:00:00Z")]);
        assert_eq!(chart.bars()[28].height, 4);
    }
}
