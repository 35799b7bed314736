//! The figures of an app: today as tiles, thirty days as stacked bars.

use sakshi_domain::day_figures::{Day, DayFigures};

use super::when::format_clock;

/// Width of a bar with its gap, in units of the drawing.
const STEP: usize = 20;
const BAR_WIDTH: usize = 14;
/// Distance of a bar from the beginning of its step.
const BAR_OFFSET: usize = 3;
/// Outcomes of verifications: style and name.
const OUTCOMES: [(&str, &str); 4] =
    [("verified", "Verified"), ("declined", "Declined"), ("failed", "Failed"), ("unanswered", "No answer")];
/// Height of the drawing, in its units.
const HEIGHT: u64 = 120;

/// The figures of today, as `today.html` shows them.
#[derive(Debug)]
pub(super) struct Today(pub(super) DayFigures);

impl Today {
    /// Returns the share of answered verifications that succeeded, in percent.
    pub(super) fn verified_percent(&self) -> Option<u64> {
        (self.0.verified * 100).checked_div(self.0.total())
    }

    /// Returns the median time to an answer.
    pub(super) fn median(&self) -> Option<String> {
        self.0.median().map(format_clock)
    }
}

/// The figures of consecutive days.
#[derive(Debug)]
pub(super) struct Days(pub(super) Vec<(Day, DayFigures)>);

/// The verifications of all days with one outcome, drawn as one path.
pub(super) struct Stack {
    pub(super) style: &'static str,
    pub(super) name: &'static str,
    pub(super) count: u64,
    pub(super) path: String,
}

/// Returns the verifications of a day by outcome, in the order of [`OUTCOMES`].
fn counts_by_outcome(figures: &DayFigures) -> [u64; 4] {
    [figures.verified, figures.declined, figures.failed, figures.unanswered()]
}

impl Days {
    /// Returns the sum of all days.
    pub(super) fn sum(&self) -> DayFigures {
        let mut sum = DayFigures::default();
        self.0.iter().for_each(|(_, figures)| sum += figures);
        sum
    }

    /// Returns the number of verifications on the busiest day.
    pub(super) fn busiest(&self) -> u64 {
        self.0.iter().map(|(_, figures)| counts_by_outcome(figures).iter().sum()).max().unwrap_or(0)
    }

    pub(super) const fn width(&self) -> usize {
        self.0.len() * STEP
    }

    /// Returns the first and the last day.
    pub(super) fn first_and_last(&self) -> [String; 2] {
        [self.0.first(), self.0.last()].map(|day| day.map_or_else(String::new, |(day, _)| date(*day)))
    }

    /// Returns days with verifications, newest first, with the verifications by outcome.
    pub(super) fn rows(&self) -> Vec<(String, [u64; 4])> {
        let busy_days = self.0.iter().rev().filter(|(_, figures)| figures.opened > 0);
        busy_days.map(|(day, figures)| (date(*day), counts_by_outcome(figures))).collect()
    }

    /// Returns one path for each outcome. The bars of a day are stacked upon each other.
    pub(super) fn stacks(&self) -> [Stack; 4] {
        let (busiest, sums) = (self.busiest().max(1), counts_by_outcome(&self.sum()));
        let mut below = vec![0; self.0.len()];
        [0, 1, 2, 3].map(|outcome| {
            let (style, name) = OUTCOMES[outcome];
            let mut path = String::new();
            for (index, ((_, figures), below)) in self.0.iter().zip(&mut below).enumerate() {
                let count = counts_by_outcome(figures)[outcome];
                let (from, to) = (*below * HEIGHT / busiest, (*below + count) * HEIGHT / busiest);
                *below += count;
                if to > from {
                    let x = index * STEP + BAR_OFFSET;
                    path += &format!("M{x} {}h{BAR_WIDTH}v{}h-{BAR_WIDTH}z", HEIGHT - to, to - from);
                }
            }
            Stack { style, name, count: sums[outcome], path }
        })
    }
}

/// Formats a day: `2026-03-01`.
fn date(day: Day) -> String {
    day.begin().to_string().get(..10).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_day_are_stacked_and_the_busiest_day_has_full_height() {
        let figures = |opened, verified, declined| DayFigures { opened, verified, declined, ..DayFigures::default() };
        let days = Days(vec![(Day(0), figures(4, 2, 1)), (Day(1), DayFigures::default()), (Day(2), figures(2, 2, 0))]);
        let [verified, declined, failed, unanswered] = days.stacks();
        assert_eq!(verified.path, "M3 60h14v60h-14zM43 60h14v60h-14z");
        assert_eq!([&*declined.path, &*failed.path, &*unanswered.path], ["M3 30h14v30h-14z", "", "M3 0h14v30h-14z"]);
        assert_eq!((verified.count, unanswered.count, days.width()), (4, 1, 60));
        assert_eq!(days.rows(), [("1970-01-03".to_owned(), [2, 0, 0, 0]), ("1970-01-01".to_owned(), [2, 1, 0, 1])]);
        assert_eq!(days.first_and_last(), ["1970-01-01", "1970-01-03"]);
    }
}
