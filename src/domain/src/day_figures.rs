//! Daily figures of an app: outcomes of its verifications, answer times, and outcomes of its webhooks.
//!
//! They are estimates: the last seconds before the kill of a node are missing.

use std::ops::AddAssign;
use std::time::Duration;

use crate::time::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// Number of days kept, including the current one.
pub const FIGURE_DAYS: i64 = 30;

/// Upper bounds of the answer-time buckets, in seconds. No answer takes longer than a window.
pub const ANSWER_SPANS: [u64; 14] = [2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900];

/// The code of the identity app for a person who declined.
const DECLINED: &str = "301";

/// A day in UTC, counted from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    /// Returns the day of a time.
    #[must_use]
    pub const fn containing(at: Timestamp) -> Self {
        Self(at.millis().div_euclid(DAY_MS))
    }

    /// Returns the first millisecond of the day.
    #[must_use]
    pub const fn begin(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(DAY_MS))
    }

    /// Returns the day `days` later.
    #[must_use]
    pub const fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }
}

/// The outcome of an answered verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The person was verified.
    Verified,
    /// The person declined.
    Declined,
    /// The verification failed for another reason.
    Failed,
}

impl AnswerKind {
    /// Returns the kind of an answer: passed, or failed with this code.
    #[must_use]
    pub fn from_outcome(passed: bool, code: Option<&str>) -> Self {
        match (passed, code) {
            (true, _) => Self::Verified,
            (false, Some(DECLINED)) => Self::Declined,
            (false, _) => Self::Failed,
        }
    }
}

/// The figures of a day. A verification counts on the day of its opening, a webhook on the day of its attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DayFigures {
    /// Opened verifications.
    pub opened: u64,
    /// Verifications that passed.
    pub verified: u64,
    /// Verifications that the person declined.
    pub declined: u64,
    /// Verifications that failed otherwise.
    pub failed: u64,
    /// Delivered webhooks.
    pub delivered: u64,
    /// Webhooks that were not delivered, or perhaps not.
    pub lost: u64,
    /// Number of answers per bucket of [`ANSWER_SPANS`]; an answer counts in the first bucket that is long enough.
    pub answer_times: [u64; ANSWER_SPANS.len()],
}

impl DayFigures {
    /// Counts an answer that came `elapsed` after the opening.
    pub fn count_answer(&mut self, kind: AnswerKind, elapsed: Duration) {
        match kind {
            AnswerKind::Verified => self.verified += 1,
            AnswerKind::Declined => self.declined += 1,
            AnswerKind::Failed => self.failed += 1,
        }
        let millis = elapsed.as_millis();
        let last = self.answer_times.len() - 1;
        let bucket = ANSWER_SPANS.iter().position(|span| millis <= u128::from(*span) * 1_000).unwrap_or(last);
        self.answer_times[bucket] += 1;
    }

    /// Returns the number of answered verifications.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.verified + self.declined + self.failed
    }

    /// Returns the number of unanswered verifications: expired or pending.
    #[must_use]
    pub const fn unanswered(&self) -> u64 {
        self.opened.saturating_sub(self.total())
    }

    /// Estimates the median answer time from the buckets; `None` without answers.
    #[must_use]
    pub fn median(&self) -> Option<Duration> {
        let total: u64 = self.answer_times.iter().sum();
        let (mut before, mut bucket_start) = (0, 0);
        for (span, count) in ANSWER_SPANS.into_iter().zip(self.answer_times) {
            if count > 0 && (before + count) * 2 >= total {
                // Answers within a bucket are assumed to be spread evenly.
                let millis = (total - before * 2) * (span - bucket_start) * 1_000 / (count * 2);
                return Some(Duration::from_millis(bucket_start * 1_000 + millis));
            }
            (before, bucket_start) = (before + count, span);
        }
        None
    }
}

impl AddAssign<&Self> for DayFigures {
    fn add_assign(&mut self, other: &Self) {
        self.opened += other.opened;
        self.verified += other.verified;
        self.declined += other.declined;
        self.failed += other.failed;
        self.delivered += other.delivered;
        self.lost += other.lost;
        for (sum, count) in self.answer_times.iter_mut().zip(other.answer_times) {
            *sum += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns figures with nine openings and answers after these times.
    fn figures_with_answers(seconds: &[u64]) -> DayFigures {
        let mut figures = DayFigures { opened: 9, ..DayFigures::default() };
        seconds.iter().for_each(|seconds| figures.count_answer(AnswerKind::Verified, Duration::from_secs(*seconds)));
        figures
    }

    #[test]
    fn the_median_lies_in_the_bucket_of_the_middle_answer() {
        assert_eq!(figures_with_answers(&[]).median(), None);
        for (seconds, from, to) in
            [(&[1][..], 0, 2), (&[1, 40, 40], 30, 45), (&[1, 1, 40, 800], 0, 5), (&[70, 80, 2_000], 60, 90)]
        {
            let median = figures_with_answers(seconds).median().unwrap().as_secs();
            assert!((from..=to).contains(&median), "{seconds:?}: {median}");
        }
    }

    #[test]
    fn answers_count_by_code_and_other_openings_as_unanswered() {
        let mut figures = figures_with_answers(&[3, 4]);
        for code in [Some("301"), Some("302"), None] {
            figures.count_answer(AnswerKind::from_outcome(false, code), Duration::ZERO);
        }
        assert_eq!((figures.verified, figures.declined, figures.failed, figures.unanswered()), (2, 1, 2, 4));
    }

    #[test]
    fn a_day_begins_at_midnight_in_utc() {
        let at = Timestamp::parse_iso8601("2026-03-01T23:59:59.999Z").unwrap();
        assert_eq!(Day::containing(at).plus(1).begin().to_string(), "2026-03-02T00:00:00.000Z");
        assert_eq!(Day::containing(Day::containing(at).begin()), Day::containing(at));
    }
}
