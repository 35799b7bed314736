//! The summary as a self-contained HTML file with style and drawings.

use askama::Template;

use super::plot::{HEIGHT, Plot, WIDTH};
use super::{StepSummary, Summary};

/// CSS classes of the lines of a plot, each with its colour.
const COLOUR_CLASSES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    summary: &'a Summary,
    plots: Vec<Plot>,
    width: f64,
    height: f64,
}

/// Renders the page.
///
/// # Errors
/// Any error of the template.
pub(crate) fn to_html(summary: &Summary) -> askama::Result<String> {
    let mut plots = vec![throughput(&summary.steps)];
    plots.extend(summary.steps.iter().flat_map(|step| [over_time(step), curve(step)]));
    if !summary.memory.is_empty() {
        let points = summary.memory.iter().map(|(at, bytes)| (*at, *bytes as f64 / 1_048_576.0)).collect();
        plots.push(Plot::over_time(
            "Resident memory of the service",
            "MiB",
            vec![("resident".to_owned(), "a", points)],
        ));
    }
    Page { summary, plots, width: WIDTH, height: HEIGHT }.render()
}

/// Plots the requests per second of every step.
fn throughput(steps: &[StepSummary]) -> Plot {
    let series = steps.iter().zip(COLOUR_CLASSES).map(|(step, class)| {
        let points = step.over_time.iter().map(|slice| (slice.from_s, slice.per_second)).collect();
        (step.title.to_owned(), class, points)
    });
    Plot::over_time("Requests per second, by intended time", "/s", series.collect())
}

/// Plots the latencies of a step over time.
fn over_time(step: &StepSummary) -> Plot {
    let points =
        |value: fn(&super::Slice) -> f64| step.over_time.iter().map(|slice| (slice.from_s, value(slice))).collect();
    let series =
        vec![("p50".to_owned(), "a", points(|slice| slice.p50)), ("p99".to_owned(), "b", points(|slice| slice.p99))];
    Plot::over_time(&format!("{}: latency over time", step.title), "ms", series)
}

/// Plots the latencies of a step by percentile.
fn curve(step: &StepSummary) -> Plot {
    Plot::by_percentile(
        &format!("{}: latency by percentile", step.title),
        "ms",
        vec![("from the intended time".to_owned(), "a", step.curve.clone())],
    )
}
