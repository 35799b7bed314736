//! The summary of a run: one line for each target of all benches.

use std::fmt;

use crate::load::Measured;
use crate::report::{Target, median, number, table};

const HEAD: [&str; 7] = ["Work", "measured", "limit it is held against", "limit measured", "ratio", "target", ""];

/// A line of the summary.
#[derive(Clone)]
pub(crate) struct Line {
    work: String,
    measured: f64,
    limit: String,
    limit_measured: f64,
    ratio: f64,
    /// The target and its figure.
    target: Option<(Target, f64)>,
}

impl Line {
    /// Builds a line of figures beside those of a limit, measured in turns; the target is for their ratio.
    pub(crate) fn of((work, measured): (&str, &[f64]), (limit, of_it): (&str, &[f64]), target: Option<Target>) -> Self {
        let ratios: Vec<f64> = measured.iter().zip(of_it).map(|(measured, limit)| measured / limit).collect();
        let ratio = median(&ratios);
        Self {
            work: work.to_owned(),
            measured: median(measured),
            limit: limit.to_owned(),
            limit_measured: median(of_it),
            ratio,
            target: target.map(|target| (target, ratio)),
        }
    }

    /// As [`Line::of`], for rates.
    pub(crate) fn of_rates(
        (work, measured): (&str, &[Measured]),
        (limit, of_it): (&str, &[Measured]),
        target: Option<Target>,
    ) -> Self {
        let rates = |turns: &[Measured]| turns.iter().map(|turn| turn.rate).collect::<Vec<_>>();
        Self::of((&format!("{work}, per s"), &rates(measured)), (&format!("{limit}, per s"), &rates(of_it)), target)
    }

    /// Builds a line with its own target; the limit is a known number that is not measured.
    pub(crate) fn known(work: &str, measured: f64, (limit, known): (&str, f64), target: Target) -> Self {
        Self { target: Some((target, measured)), ..Self::of((work, &[measured]), (limit, &[known]), None) }
    }

    fn cells(&self) -> [String; 7] {
        let [wanted, verdict] = self.target.map_or_else(Default::default, |(target, figure)| target.judge(figure));
        let figures = [self.measured, self.limit_measured, self.ratio].map(number);
        let [measured, limit_measured, ratio] = figures;
        [self.work.clone(), measured, self.limit.clone(), limit_measured, ratio, wanted, verdict]
    }
}

/// All lines of a run.
pub(crate) struct Summary<'a> {
    pub(crate) lines: &'a [Line],
    /// Time, command and machine.
    pub(crate) measured: &'a str,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<[String; 7]> = self.lines.iter().map(Line::cells).collect();
        write!(
            f,
            "## summary\n\n{}\n{}\n",
            table(&HEAD.map(str::to_owned), rows.iter().map(<[String; 7]>::as_slice)),
            self.measured
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_within_a_turn_and_held_against_its_target() {
        let line = Line::of(("a", &[8.0, 40.0, 70.0]), ("b", &[10.0, 100.0, 100.0]), Some(Target::AtLeast(0.75)));
        let cells = line.cells();
        assert_eq!([&*cells[1], &*cells[3], &*cells[4], &*cells[6]], ["40.0", "100", "0.700", "SHORT"]);
    }

    #[test]
    fn a_known_limit_is_shown_and_the_figure_itself_is_judged() {
        let cells = Line::known("a", 1_000.0, ("b", 4_000.0), Target::AtMost(1_536.0)).cells();
        assert_eq!([&*cells[4], &*cells[5], &*cells[6]], ["0.250", "≤ 1536", "met"]);
    }
}
