//! Coordinates of line plots. The page draws the plots as inline SVG.

/// Size of the drawing in its own units, without the labels.
pub(crate) const WIDTH: f64 = 640.0;
pub(crate) const HEIGHT: f64 = 160.0;
/// Number of intervals between the lines of the grid.
const GRID_INTERVALS: usize = 4;

/// A plot ready to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) rows: Vec<Tick>,
    pub(crate) columns: Vec<Tick>,
}

/// A line of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) class: &'static str,
    pub(crate) points: String,
}

/// A line of the grid with its label.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    /// Distance from the left or the top.
    pub(crate) position: f64,
    pub(crate) label: String,
}

/// A named line in the units of its axes, with the class that colours it.
pub(crate) type Series = (String, &'static str, Vec<(f64, f64)>);

impl Plot {
    /// Plots values over time in seconds.
    pub(crate) fn over_time(title: &str, unit: &str, series: Vec<Series>) -> Self {
        let end = maximum(series.iter().flat_map(|(.., points)| points.iter().map(|(x, _)| *x))).max(1.0);
        let columns = (0..=GRID_INTERVALS).map(|tick| tick as f64 / GRID_INTERVALS as f64);
        let columns =
            columns.map(|part| Tick { position: part * WIDTH, label: format!("{:.0} s", part * end) }).collect();
        Self::new(title, unit, series, columns, |x| x / end)
    }

    /// Plots values by percentile, stretched towards 100.
    pub(crate) fn by_percentile(title: &str, unit: &str, series: Vec<Series>) -> Self {
        // Each further nine takes a fifth of the width.
        let share_of_width = |percentile: f64| (-(1.0 - percentile.min(99.999) / 100.0).log10()) / 5.0;
        let columns = [0.0, 90.0, 99.0, 99.9, 99.99, 99.999]
            .map(|p| Tick { position: share_of_width(p) * WIDTH, label: format!("{p} %") });
        Self::new(title, unit, series, columns.to_vec(), share_of_width)
    }

    /// Plots values; `share_of_width` converts a value of the horizontal axis.
    fn new(
        title: &str,
        unit: &str,
        series: Vec<Series>,
        columns: Vec<Tick>,
        share_of_width: impl Fn(f64) -> f64,
    ) -> Self {
        let top = maximum(series.iter().flat_map(|(.., points)| points.iter().map(|(_, y)| *y))).max(f64::MIN_POSITIVE);
        let rows = (0..=GRID_INTERVALS).map(|tick| tick as f64 / GRID_INTERVALS as f64);
        let rows = rows
            .map(|part| Tick {
                position: HEIGHT - part * HEIGHT,
                label: format!("{} {unit}", format_value(part * top)),
            })
            .collect();
        let lines = series.into_iter().map(|(name, class, points)| {
            let points = points
                .iter()
                .map(|(x, y)| format!("{:.1},{:.1}", share_of_width(*x) * WIDTH, HEIGHT - y / top * HEIGHT));
            Line { name, class, points: points.collect::<Vec<_>>().join(" ") }
        });
        Self { title: title.to_owned(), lines: lines.collect(), rows, columns }
    }
}

fn maximum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

fn format_value(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
