//! The table of a series: a column for each size, and a verdict for each row.

use std::fmt;

use super::open_loop::Turn;
use crate::report::{median, table};

/// The largest ratio of processor time, last size to first, that counts as flat. A hundred times as many rows make a
/// tree one level deeper and no longer fit into the processor's caches.
const COST_RATIO_MAX: f64 = 1.3;
/// The largest ratio of latencies that counts as flat; latencies vary more.
const TIME_RATIO_MAX: f64 = 1.5;

/// The largest share of late requests in a usable result.
const LATE_MAX: f64 = 0.05;

/// The table of one series.
pub(super) struct Table {
    title: &'static str,
    sizes: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// Writes a size with thousands separators.
pub(super) fn format_size(size: usize) -> String {
    let digits = size.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    parts.join(",")
}

/// Writes a figure in three digits; empty for NaN.
fn number(figure: f64) -> String {
    match figure.abs() {
        nan if nan.is_nan() => String::new(),
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

impl Table {
    /// Builds an empty table with these sizes.
    pub(super) fn new(title: &'static str, sizes: &[usize]) -> Self {
        Self { title, sizes: sizes.iter().copied().map(format_size).collect(), rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds rows for a kind of request: processor time of the node, and latency.
    pub(super) fn turns(&mut self, label: &str, turns: &[Vec<Turn>]) {
        let medians = |figure: fn(&Turn) -> f64| {
            turns.iter().map(|turns| median(&turns.iter().map(figure).collect::<Vec<_>>())).collect::<Vec<f64>>()
        };
        self.figure_with_target(
            &format!("**{label}**, µs of processor time"),
            &medians(|turn| turn.micros),
            COST_RATIO_MAX,
        );
        self.figure_with_target(&format!("{label}, p50 in ms"), &medians(|turn| turn.quantile(0.5)), TIME_RATIO_MAX);
        self.figure_with_target(&format!("{label}, p99 in ms"), &medians(|turn| turn.quantile(0.99)), TIME_RATIO_MAX);
    }

    /// Adds rows for latencies at each size, in milliseconds, sorted.
    pub(super) fn times(&mut self, label: &str, times: &[Vec<f64>]) {
        let quantiles =
            |share| times.iter().map(|times| super::open_loop::quantile(times, share)).collect::<Vec<f64>>();
        self.figure_with_target(&format!("{label}, p50 in ms"), &quantiles(0.5), TIME_RATIO_MAX);
        self.figure_with_target(&format!("{label}, p99 in ms"), &quantiles(0.99), TIME_RATIO_MAX);
    }

    /// Adds a figure that may grow by at most a ratio.
    pub(super) fn figure_with_target(&mut self, label: &str, figures: &[f64], ratio_max: f64) {
        let mut known = figures.iter().filter(|figure| !figure.is_nan());
        let ratio = known.next().zip(known.next_back()).map_or(f64::NAN, |(first, last)| last / first);
        let verdict = if ratio <= ratio_max { "flat" } else { "grows" };
        self.row(label, figures, [format!("{ratio:.2}"), format!("≤ {ratio_max}"), verdict.to_owned()]);
    }

    /// Adds a figure at each size.
    pub(super) fn figure(&mut self, label: &str, figures: &[f64]) {
        self.row(label, figures, Default::default());
    }

    /// Adds a row: a label, a figure for each size, and the last three cells.
    fn row(&mut self, label: &str, figures: &[f64], verdict: [String; 3]) {
        let cells = std::iter::once(label.to_owned()).chain(figures.iter().copied().map(number));
        self.rows.push(cells.chain(verdict).collect());
    }

    /// Adds a paragraph below the table.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds the share of late requests, and a warning if it is too high.
    pub(super) fn note_late<'a>(&mut self, turns: impl IntoIterator<Item = &'a Vec<Turn>>) {
        let late: Vec<f64> = turns.into_iter().flatten().map(|turn| turn.late_share).collect();
        let (median_share, worst_share) = (median(&late), late.iter().copied().fold(0.0, f64::max));
        let (usual_percent, worst_percent) = (median_share * 100.0, worst_share * 100.0);
        self.note(format!(
            "{usual_percent:.1} % of the requests were sent late because their connection was still waiting; in the \
         worst turn {worst_percent:.1} %."
        ));
        if median_share > LATE_MAX {
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

    fn is_flat(figures: [f64; 3]) -> bool {
        let mut table = Table::new("x", &[1, 1_000, 1_000_000]);
        table.figure_with_target("a", &figures, 1.3);
        let text = table.to_string();
        assert!(text.contains("1,000,000"));
        text.contains("flat")
    }

    #[test]
    fn a_figure_is_flat_up_to_the_ratio_and_grows_above_it() {
        assert!(is_flat([10.0, 40.0, 12.9]));
        assert!(!is_flat([10.0, 10.0, 20.0]));
    }
}
