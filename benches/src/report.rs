//! Tables of what was measured: Markdown, so that a terminal and a README show the same.

use std::fmt;
use std::path::PathBuf;

use sakshi_domain::clock::{Clock as _, SystemClock};

use crate::Failure;
use crate::load::{self, Measured};

/// What a ratio should reach.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// One bench's table.
pub(crate) struct Report {
    title: String,
    rows: Vec<[String; 5]>,
    notes: Vec<String>,
}

/// The middle of some figures.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

fn number(figure: f64) -> String {
    match figure.abs() {
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.3}"),
    }
}

impl Report {
    pub(crate) fn new(title: &str) -> Self {
        Self { title: title.to_owned(), rows: Vec::new(), notes: Vec::new() }
    }

    /// A figure of each round, without a target.
    pub(crate) fn figure(&mut self, what: &str, figures: &[f64]) {
        self.row(what, figures, String::new(), String::new());
    }

    /// A ratio or another figure that has a target.
    pub(crate) fn judged(&mut self, what: &str, figures: &[f64], target: Target) {
        let middle = median(figures);
        let (wanted, met) = match target {
            Target::AtLeast(least) => (format!("≥ {}", number(least)), middle >= least),
            Target::AtMost(most) => (format!("≤ {}", number(most)), middle <= most),
        };
        self.row(what, figures, wanted, if met { "met" } else { "SHORT" }.to_owned());
    }

    /// A sentence below the table.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn row(&mut self, what: &str, figures: &[f64], target: String, verdict: String) {
        let (least, most) = figures.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), f| (l.min(*f), m.max(*f)));
        let spread = if figures.len() > 1 { format!("{} – {}", number(least), number(most)) } else { String::new() };
        self.rows.push([what.to_owned(), number(median(figures)), spread, target, verdict]);
    }

    /// Rate and processor time of two servers that took turns, and their ratio.
    pub(crate) fn compare(&mut self, (ours, of_us): (&str, &[Measured]), (limit, of_it): (&str, &[Measured]), target: Option<Target>) {
        let rates = |turns: &[Measured]| turns.iter().map(|turn| turn.rate).collect::<Vec<_>>();
        let micros = |turns: &[Measured]| turns.iter().map(|turn| turn.server_micros).collect::<Vec<_>>();
        self.figure(&format!("{ours}, per s"), &rates(of_us));
        self.figure(&format!("{limit}, per s"), &rates(of_it));
        let ratios: Vec<f64> = of_us.iter().zip(of_it).map(|(us, it)| us.rate / it.rate).collect();
        let what = format!("**{ours} ÷ {limit}**");
        match target {
            Some(target) => self.judged(&what, &ratios, target),
            None => self.figure(&what, &ratios),
        }
        self.figure(&format!("server CPU of {ours}, µs each"), &micros(of_us));
        self.figure(&format!("server CPU of {limit}, µs each"), &micros(of_it));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["", "median", "least – most", "target", ""].map(str::to_owned);
        let width = |column: usize| self.rows.iter().chain([&head]).map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..5).map(width).collect();
        writeln!(f, "### {}\n", self.title)?;
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

/// When, on what, and by which command.
pub(crate) fn machine() -> Result<String, Failure> {
    let information = std::fs::read_to_string("/proc/cpuinfo")?;
    let model =
        information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map_or("unknown", |(_, name)| name.trim());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let date = SystemClock.now();
    Ok(format!("{date}, {} cores of {model}: `cargo run --release -p sakshi-benches -- {}`\n", load::cores(), arguments.join(" ")))
}

const BEGIN: &str = "<!-- results -->\n";
const END: &str = "<!-- end of results -->";

/// Replaces the results in benches/README.md.
pub(crate) fn write(results: &str) -> Result<(), Failure> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(&path)?;
    let place = text.find(BEGIN).map(|at| at + BEGIN.len()).zip(text.find(END));
    let (from, to) = place.filter(|(from, to)| from <= to).ok_or("README.md has no place for results")?;
    std::fs::write(path, format!("{}\n{results}\n{}", &text[..from], &text[to..])).map_err(Into::into)
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
