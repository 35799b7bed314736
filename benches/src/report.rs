//! Result tables in Markdown, for the terminal and for `target/benches.md`.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::load::Measured;
use crate::summary::Line;

/// The target of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    /// Returns the target as text, and its verdict on a figure.
    pub(crate) fn judge(self, figure: f64) -> [String; 2] {
        let (wanted, met) = match self {
            Self::AtLeast(least) => (format!("≥ {}", number(least)), figure >= least),
            Self::AtMost(most) => (format!("≤ {}", number(most)), figure <= most),
        };
        [wanted, if met { "met" } else { "SHORT" }.to_owned()]
    }
}

/// Index of the column for [`Report::beside_arithmetic`], absent from tables without such rows.
const TIMES: usize = 3;

/// One bench's table.
pub(crate) struct Report {
    /// Its heading.
    pub(crate) title: String,
    /// Its lines in the summary.
    pub(crate) lines: Vec<Line>,
    /// Costs for `costs.json`, if it measured them.
    pub(crate) costs: Option<Value>,
    /// Processor time of processes that its child processes started, which would count as others'.
    pub(crate) indirect: Duration,
    rows: Vec<[String; 6]>,
    notes: Vec<String>,
}

/// Returns the median.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

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
    pub(crate) fn figure(&mut self, what: &str, figures: &[f64]) {
        self.row(what, figures, Default::default());
    }

    /// Adds a processor time of each round, beside its unavoidable cryptographic arithmetic, both in microseconds.
    pub(crate) fn beside_arithmetic(&mut self, what: &str, figures: &[f64], arithmetic: f64) {
        self.row(what, figures, [number(median(figures) / arithmetic), String::new(), String::new()]);
    }

    /// Adds a figure with a target.
    pub(crate) fn judged(&mut self, what: &str, figures: &[f64], target: Target) {
        let [wanted, verdict] = target.judge(median(figures));
        self.row(what, figures, [String::new(), wanted, verdict]);
    }

    /// Adds a sentence below the table.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn row(&mut self, what: &str, figures: &[f64], [times, target, verdict]: [String; 3]) {
        let (least, most) = figures.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), f| (l.min(*f), m.max(*f)));
        let spread = if figures.len() > 1 { format!("{} – {}", number(least), number(most)) } else { String::new() };
        self.rows.push([what.to_owned(), number(median(figures)), spread, times, target, verdict]);
    }

    /// Adds rate and processor time of one server.
    pub(crate) fn rates(&mut self, what: &str, turns: &[Measured]) {
        self.figure(&format!("{what}, per s"), &turns.iter().map(|turn| turn.rate).collect::<Vec<_>>());
        self.micros(what, turns);
    }

    fn micros(&mut self, what: &str, turns: &[Measured]) {
        let micros: Vec<f64> = turns.iter().map(|turn| turn.server_micros).collect();
        self.figure(&format!("server CPU of {what}, µs each"), &micros);
    }

    /// Adds rate and processor time of two servers that took turns, and their ratio.
    pub(crate) fn compare(
        &mut self,
        (ours, of_us): (&str, &[Measured]),
        (limit, of_it): (&str, &[Measured]),
        target: Option<Target>,
    ) {
        let rates = |turns: &[Measured]| turns.iter().map(|turn| turn.rate).collect::<Vec<_>>();
        self.figure(&format!("{ours}, per s"), &rates(of_us));
        self.figure(&format!("{limit}, per s"), &rates(of_it));
        let ratios: Vec<f64> = of_us.iter().zip(of_it).map(|(us, it)| us.rate / it.rate).collect();
        let what = format!("**{ours} ÷ {limit}**");
        match target {
            Some(target) => self.judged(&what, &ratios, target),
            None => self.figure(&what, &ratios),
        }
        self.micros(ours, of_us);
        self.micros(limit, of_it);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["", "median", "least – most", "× the arithmetic", "target", ""].map(str::to_owned);
        let has_times = self.rows.iter().any(|row| !row[TIMES].is_empty());
        let shown = |row: &[String; 6]| {
            let cells = row.iter().enumerate().filter(|(place, _)| has_times || *place != TIMES);
            cells.map(|(_, cell)| cell.clone()).collect::<Vec<_>>()
        };
        let rows: Vec<_> = self.rows.iter().map(shown).collect();
        write!(f, "## {}\n\n{}", self.title, table(&shown(&head), rows.iter().map(Vec::as_slice)))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "\n{note}"))
    }
}

/// Writes a Markdown table of cells; every row has as many as the head.
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
        report.judged("a", &[0.8], Target::AtLeast(0.85));
        report.judged("b", &[1.2], Target::AtMost(1.3));
        let text = report.to_string();
        assert!(text.lines().any(|line| line.contains("| a ") && line.contains("SHORT")));
        assert!(text.lines().any(|line| line.contains("| b ") && line.contains("met")));
    }
}
