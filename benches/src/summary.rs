//! The summary of a run: one line for each target of all benches.

use std::fmt;

use crate::load::Measurement;
use crate::report::{Target, median, number, table};

const HEAD: [&str; 7] = ["Work", "measured", "limit it is held against", "limit measured", "ratio", "target", ""];

/// A line of the summary.
#[derive(Clone)]
pub(crate) struct Line {
    work: String,
    figure: f64,
    limit: String,
    limit_figure: f64,
    ratio: f64,
    /// The target, and the figure that it is for.
    target: Option<(Target, f64)>,
}

impl Line {
    /// Builds a line of figures and those of a limit, measured in turns; the target is for their ratio.
    pub(crate) fn new(
        (work, figures): (&str, &[f64]),
        (limit, limit_figures): (&str, &[f64]),
        target: Option<Target>,
    ) -> Self {
        let ratios: Vec<f64> = figures.iter().zip(limit_figures).map(|(figure, limit)| figure / limit).collect();
        let ratio = median(&ratios);
        Self {
            work: work.to_owned(),
            figure: median(figures),
            limit: limit.to_owned(),
            limit_figure: median(limit_figures),
            ratio,
            target: target.map(|target| (target, ratio)),
        }
    }

    /// Builds a line like [`Line::new`], of rates.
    pub(crate) fn from_rates(
        (work, turns): (&str, &[Measurement]),
        (limit, limit_turns): (&str, &[Measurement]),
        target: Option<Target>,
    ) -> Self {
        let rates = |turns: &[Measurement]| turns.iter().map(|turn| turn.rate).collect::<Vec<f64>>();
        Self::new((&format!("{work}, per s"), &rates(turns)), (&format!("{limit}, per s"), &rates(limit_turns)), target)
    }

    /// Builds a line whose limit is known, not measured; the target is for the figure itself.
    pub(crate) fn with_known_limit(
        work: &str,
        figure: f64,
        (limit, limit_figure): (&str, f64),
        target: Target,
    ) -> Self {
        Self { target: Some((target, figure)), ..Self::new((work, &[figure]), (limit, &[limit_figure]), None) }
    }

    fn cells(&self) -> [String; 7] {
        let [target, verdict] = self.target.map_or_else(Default::default, |(target, figure)| target.verdict(figure));
        let [figure, limit_figure, ratio] = [self.figure, self.limit_figure, self.ratio].map(number);
        [self.work.clone(), figure, self.limit.clone(), limit_figure, ratio, target, verdict]
    }
}

/// All lines of a run.
pub(crate) struct Summary<'a> {
    pub(crate) lines: &'a [Line],
    /// Time, command and machine of the run.
    pub(crate) run: &'a str,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<[String; 7]> = self.lines.iter().map(Line::cells).collect();
        write!(
            f,
            "## summary\n\n{}\n{}\n",
            table(&HEAD.map(str::to_owned), rows.iter().map(<[String; 7]>::as_slice)),
            self.run
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_ratios_of_each_turn() {
        let line = Line::new(("a", &[8.0, 40.0, 70.0]), ("b", &[10.0, 100.0, 100.0]), Some(Target::AtLeast(0.75)));
        let cells = line.cells();
        assert_eq!([&*cells[1], &*cells[3], &*cells[4], &*cells[6]], ["40.0", "100", "0.700", "SHORT"]);
    }

    #[test]
    fn the_target_of_a_line_with_a_known_limit_is_for_the_figure() {
        let cells = Line::with_known_limit("a", 1_000.0, ("b", 4_000.0), Target::AtMost(1_536.0)).cells();
        assert_eq!([&*cells[4], &*cells[5], &*cells[6]], ["0.250", "≤ 1536", "met"]);
    }
}
