//! What a series found: a column for each size, and a verdict for each row.

use std::fmt;

use super::pace::Turn;
use crate::report::median;

/// Processor time is flat when the last size takes at most so many times what the first one takes:
/// a hundred times as many rows make a tree one level deeper, and push what it is made of out of
/// the processor's caches.
const COST_MOST: f64 = 1.3;
/// The same for waiting times, which the machine spreads more.
const TIME_MOST: f64 = 1.5;

/// The share of late requests beyond which a turn was no longer an open loop.
const LATE_MOST: f64 = 0.05;

/// The table of one series.
pub(super) struct Table {
    title: &'static str,
    sizes: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// A size with its thousands set apart.
pub(super) fn counted(size: usize) -> String {
    let digits = size.to_string();
    let parts: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    parts.join(",")
}

/// A figure in three digits; nothing where there is none.
fn number(figure: f64) -> String {
    match figure.abs() {
        none if none.is_nan() => String::new(),
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

impl Table {
    /// A table about what grows, at these sizes.
    pub(super) fn new(title: &'static str, sizes: &[usize]) -> Self {
        Self { title, sizes: sizes.iter().copied().map(counted).collect(), rows: Vec::new(), notes: Vec::new() }
    }

    /// What a kind of request took at each size: processor time of the node, and time until the answer.
    pub(super) fn turns(&mut self, what: &str, turns: &[Vec<Turn>]) {
        let medians = |figure: fn(&Turn) -> f64| {
            turns.iter().map(|turns| median(&turns.iter().map(figure).collect::<Vec<_>>())).collect::<Vec<f64>>()
        };
        self.judged(&format!("**{what}**, µs of processor time"), &medians(|turn| turn.micros), COST_MOST);
        self.judged(&format!("{what}, p50 in ms"), &medians(|turn| turn.quantile(0.5)), TIME_MOST);
        self.judged(&format!("{what}, p99 in ms"), &medians(|turn| turn.quantile(0.99)), TIME_MOST);
    }

    /// Waiting times at each size, in milliseconds, sorted.
    pub(super) fn times(&mut self, what: &str, times: &[Vec<f64>]) {
        let at = |share| times.iter().map(|times| super::pace::quantile(times, share)).collect::<Vec<f64>>();
        self.judged(&format!("{what}, p50 in ms"), &at(0.5), TIME_MOST);
        self.judged(&format!("{what}, p99 in ms"), &at(0.99), TIME_MOST);
    }

    /// A figure at each size where there is one, that should not grow by more than this.
    pub(super) fn judged(&mut self, what: &str, figures: &[f64], most: f64) {
        let mut there = figures.iter().filter(|figure| !figure.is_nan());
        let ratio = there.next().zip(there.next_back()).map_or(f64::NAN, |(first, last)| last / first);
        let verdict = if ratio <= most { "flat" } else { "grows" };
        self.row(what, figures, [format!("{ratio:.2}"), format!("≤ {most}"), verdict.to_owned()]);
    }

    /// A figure at each size.
    pub(super) fn figure(&mut self, what: &str, figures: &[f64]) {
        self.row(what, figures, Default::default());
    }

    fn row(&mut self, what: &str, figures: &[f64], rest: [String; 3]) {
        let cells = std::iter::once(what.to_owned()).chain(figures.iter().copied().map(number));
        self.rows.push(cells.chain(rest).collect());
    }

    /// A sentence below the table.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Says it when the machine was too busy for the times to mean what they say.
    pub(super) fn note_late<'a>(&mut self, turns: impl IntoIterator<Item = &'a Vec<Turn>>) {
        let late: Vec<f64> = turns.into_iter().flatten().map(|turn| turn.late).collect();
        let (usual, worst) = (median(&late), late.iter().copied().fold(0.0, f64::max));
        let (usual_percent, worst_percent) = (usual * 100.0, worst * 100.0);
        self.note(format!(
            "{usual_percent:.1} % of the requests were sent late because their connection was still waiting, in the worst turn {worst_percent:.1} %."
        ));
        if usual > LATE_MOST {
            self.note("**That is too many: the machine was too busy, and the times say nothing about growth.**");
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut head = vec![String::new()];
        head.extend(self.sizes.iter().cloned());
        head.extend(["last ÷ first", "bound", ""].map(str::to_owned));
        let width = |column: usize| self.rows.iter().chain([&head]).map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        writeln!(f, "## growth: {}\n", self.title)?;
        for (index, row) in std::iter::once(&head).chain(&self.rows).enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")?;
            if index == 0 {
                writeln!(f, "|{}", widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect::<String>())?;
            }
        }
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
