//! Result tables in Markdown, for the terminal and for `target/benches.md`.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::load::Measurement;
use crate::summary::Line;

/// The target of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    /// Returns the target and its verdict on a figure, as text.
    pub(crate) fn verdict(self, figure: f64) -> [String; 2] {
        let (target, is_met) = match self {
            Self::AtLeast(least) => (format!("≥ {}", number(least)), figure >= least),
            Self::AtMost(most) => (format!("≤ {}", number(most)), figure <= most),
        };
        [target, if is_met { "met" } else { "SHORT" }.to_owned()]
    }
}

/// Index of the column for [`Report::figure_beside_arithmetic`], absent from tables without such rows.
const TIMES_COLUMN: usize = 3;

/// The table of a bench.
pub(crate) struct Report {
    /// Heading of the table.
    pub(crate) title: String,
    /// Lines for the summary.
    pub(crate) lines: Vec<Line>,
    /// Costs for `costs.json`, if the bench measured them.
    pub(crate) costs: Option<Value>,
    /// Processor time of the child processes' own children, which would otherwise count as that of others.
    pub(crate) indirect: Duration,
    rows: Vec<[String; 6]>,
    notes: Vec<String>,
}

/// Returns the median; NaN without figures.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

/// Writes a figure with at least three digits.
pub(crate) fn number(figure: f64) -> String {
    match figure.abs() {
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.3}"),
    }
}

impl Report {
    pub(crate) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            lines: Vec::new(),
            costs: None,
            indirect: Duration::ZERO,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a figure of each round, without a target.
    pub(crate) fn figure(&mut self, label: &str, figures: &[f64]) {
        self.row(label, figures, Default::default());
    }

    /// Adds a processor time of each round and the arithmetic that it cannot avoid, both in microseconds.
    pub(crate) fn figure_beside_arithmetic(&mut self, label: &str, figures: &[f64], arithmetic: f64) {
        self.row(label, figures, [number(median(figures) / arithmetic), String::new(), String::new()]);
    }

    /// Adds a figure with a target.
    pub(crate) fn figure_with_target(&mut self, label: &str, figures: &[f64], target: Target) {
        let [target, verdict] = target.verdict(median(figures));
        self.row(label, figures, [String::new(), target, verdict]);
    }

    /// Adds a paragraph below the table.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn row(&mut self, label: &str, figures: &[f64], [times, target, verdict]: [String; 3]) {
        let (least, most) = figures
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), figure| (least.min(*figure), most.max(*figure)));
        let spread = if figures.len() > 1 { format!("{} – {}", number(least), number(most)) } else { String::new() };
        self.rows.push([label.to_owned(), number(median(figures)), spread, times, target, verdict]);
    }

    /// Adds the rate and the processor time of one server.
    pub(crate) fn rates(&mut self, label: &str, turns: &[Measurement]) {
        self.figure(&format!("{label}, per s"), &turns.iter().map(|turn| turn.rate).collect::<Vec<_>>());
        self.micros(label, turns);
    }

    fn micros(&mut self, label: &str, turns: &[Measurement]) {
        let micros: Vec<f64> = turns.iter().map(|turn| turn.server_micros).collect();
        self.figure(&format!("server CPU of {label}, µs each"), &micros);
    }

    /// Adds the rates and processor times of two servers that took turns, and the ratio of the rates.
    pub(crate) fn compare(
        &mut self,
        (work, turns): (&str, &[Measurement]),
        (limit, limit_turns): (&str, &[Measurement]),
        target: Option<Target>,
    ) {
        let rates = |turns: &[Measurement]| turns.iter().map(|turn| turn.rate).collect::<Vec<_>>();
        self.figure(&format!("{work}, per s"), &rates(turns));
        self.figure(&format!("{limit}, per s"), &rates(limit_turns));
        let ratios: Vec<f64> = turns.iter().zip(limit_turns).map(|(turn, limit)| turn.rate / limit.rate).collect();
        let label = format!("**{work} ÷ {limit}**");
        match target {
            Some(target) => self.figure_with_target(&label, &ratios, target),
            None => self.figure(&label, &ratios),
        }
        self.micros(work, turns);
        self.micros(limit, limit_turns);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["", "median", "least – most", "× the arithmetic", "target", ""].map(str::to_owned);
        let has_times = self.rows.iter().any(|row| !row[TIMES_COLUMN].is_empty());
        let visible_cells = |row: &[String; 6]| {
            let cells = row.iter().enumerate().filter(|(column, _)| has_times || *column != TIMES_COLUMN);
            cells.map(|(_, cell)| cell.clone()).collect::<Vec<_>>()
        };
        let rows: Vec<_> = self.rows.iter().map(visible_cells).collect();
        write!(f, "## {}\n\n{}", self.title, table(&visible_cells(&head), rows.iter().map(Vec::as_slice)))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "\n{note}"))
    }
}

/// Writes a Markdown table; every row has as many cells as the head.
pub(crate) fn table<'a>(head: &'a [String], rows: impl IntoIterator<Item = &'a [String]>) -> String {
    let rows: Vec<&[String]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut lines: Vec<String> = Vec::with_capacity(rows.len() + 1);
    for row in rows {
        lines
            .push(row.iter().zip(&widths).map(|(cell, width)| format!("| {cell:width$} ")).collect::<String>() + "|\n");
    }
    lines.insert(
        1,
        format!("|{}\n", widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect::<String>()),
    );
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_short_of_its_target_is_called_short() {
        let mut report = Report::new("x");
        report.figure_with_target("a", &[0.8], Target::AtLeast(0.85));
        report.figure_with_target("b", &[1.2], Target::AtMost(1.3));
        let text = report.to_string();
        assert!(text.lines().any(|line| line.contains("| a ") && line.contains("SHORT")));
        assert!(text.lines().any(|line| line.contains("| b ") && line.contains("met")));
    }
}
