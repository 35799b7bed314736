//! The table of a series: a column for each size, and a verdict for each row.

use std::fmt;

use super::open_loop::Turn;
use crate::report::{median, table};

/// Largest flat ratio of processor time at the last size to that at the first. A hundred times as many rows make a tree
/// one level deeper, and no longer fit into the processor's caches.
const COST_RATIO_MAX: f64 = 1.3;
/// Largest flat ratio of latencies, which vary more.
const TIME_RATIO_MAX: f64 = 1.5;

/// Share of late requests above which the result is not usable.
const LATE_MAX: f64 = 0.05;

/// The table of one series.
pub(super) struct Table {
    title: &'static str,
    sizes: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// Writes a size with separators between thousands.
pub(super) fn counted(size: usize) -> String {
    let digits = size.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    parts.join(",")
}

/// Writes a figure in three digits; empty for NaN.
fn number(figure: f64) -> String {
    match figure.abs() {
        none if none.is_nan() => String::new(),
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

impl Table {
    /// An empty table with these sizes.
    pub(super) fn new(title: &'static str, sizes: &[usize]) -> Self {
        Self { title, sizes: sizes.iter().copied().map(counted).collect(), rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds rows for a kind of request: processor time of the node, and latency.
    pub(super) fn turns(&mut self, what: &str, turns: &[Vec<Turn>]) {
        let medians = |figure: fn(&Turn) -> f64| {
            turns.iter().map(|turns| median(&turns.iter().map(figure).collect::<Vec<_>>())).collect::<Vec<f64>>()
        };
        self.judged(&format!("**{what}**, µs of processor time"), &medians(|turn| turn.micros), COST_RATIO_MAX);
        self.judged(&format!("{what}, p50 in ms"), &medians(|turn| turn.quantile(0.5)), TIME_RATIO_MAX);
        self.judged(&format!("{what}, p99 in ms"), &medians(|turn| turn.quantile(0.99)), TIME_RATIO_MAX);
    }

    /// Adds rows for latencies at each size, in milliseconds, sorted.
    pub(super) fn times(&mut self, what: &str, times: &[Vec<f64>]) {
        let at = |share| times.iter().map(|times| super::open_loop::quantile(times, share)).collect::<Vec<f64>>();
        self.judged(&format!("{what}, p50 in ms"), &at(0.5), TIME_RATIO_MAX);
        self.judged(&format!("{what}, p99 in ms"), &at(0.99), TIME_RATIO_MAX);
    }

    /// Adds a figure that may grow by at most this ratio.
    pub(super) fn judged(&mut self, what: &str, figures: &[f64], most: f64) {
        let mut there = figures.iter().filter(|figure| !figure.is_nan());
        let ratio = there.next().zip(there.next_back()).map_or(f64::NAN, |(first, last)| last / first);
        let verdict = if ratio <= most { "flat" } else { "grows" };
        self.row(what, figures, [format!("{ratio:.2}"), format!("≤ {most}"), verdict.to_owned()]);
    }

    /// Adds a figure at each size.
    pub(super) fn figure(&mut self, what: &str, figures: &[f64]) {
        self.row(what, figures, Default::default());
    }

    fn row(&mut self, what: &str, figures: &[f64], rest: [String; 3]) {
        let cells = std::iter::once(what.to_owned()).chain(figures.iter().copied().map(number));
        self.rows.push(cells.chain(rest).collect());
    }

    /// Adds a sentence below the table.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds the share of late requests, and a warning if it is too high.
    pub(super) fn note_late<'a>(&mut self, turns: impl IntoIterator<Item = &'a Vec<Turn>>) {
        let late: Vec<f64> = turns.into_iter().flatten().map(|turn| turn.late).collect();
        let (usual, worst) = (median(&late), late.iter().copied().fold(0.0, f64::max));
        let (usual_percent, worst_percent) = (usual * 100.0, worst * 100.0);
        self.note(format!(
            "{usual_percent:.1} % of the requests were sent late because their connection was still waiting; in the \
         worst turn {worst_percent:.1} %."
        ));
        if usual > LATE_MAX {
            self.note("**That is too many: the machine was too busy, and the times say nothing about growth.**");
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut head = vec![String::new()];
        head.extend(self.sizes.iter().cloned());
        head.extend(["last ÷ first", "bound", ""].map(str::to_owned));
        write!(f, "## growth: {}\n\n{}", self.title, table(&head, self.rows.iter().map(Vec::as_slice)))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "\n{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(figures: [f64; 3]) -> bool {
        let mut table = Table::new("x", &[1, 1_000, 1_000_000]);
        table.judged("a", &figures, 1.3);
        let text = table.to_string();
        assert!(text.contains("1,000,000"));
        text.contains("flat")
    }

    #[test]
    fn what_takes_a_little_more_at_the_last_size_is_flat_and_what_takes_twice_as_much_grows() {
        assert!(verdict_of([10.0, 40.0, 12.9]));
        assert!(!verdict_of([10.0, 10.0, 20.0]));
    }
}
