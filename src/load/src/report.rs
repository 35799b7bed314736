//! The summary of a run: figures for a table, an HTML file and JSON.

use std::time::Duration;

use sakshi_client::judge::{Finding, Verdict, WebhookCounts};
use serde::Serialize;

use crate::record::{Latencies, Step, StepRecord};

pub(crate) mod html;
mod plot;
pub(crate) mod table;

/// All reported figures.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) scenario: String,
    /// Description of the number and arrivals of guests.
    pub(crate) model: String,
    /// Description of the correction of the latencies.
    pub(crate) correction: String,
    /// Start of the run, in RFC 3339.
    pub(crate) began: String,
    /// Seconds until the last guest had finished.
    pub(crate) seconds: f64,
    pub(crate) verdict: Verdict,
    pub(crate) guests: Guests,
    pub(crate) findings: Vec<Finding>,
    pub(crate) steps: Vec<StepSummary>,
    pub(crate) webhooks: WebhookCounts,
    /// Spent credits, with the expected minimum and maximum.
    pub(crate) credits: Credits,
    /// The places of the event, with its registrations.
    pub(crate) places: Option<Places>,
    /// Check-ins at the doors of the event.
    pub(crate) doors: Option<Doors>,
    /// Measurements of the tester itself.
    pub(crate) tester: Tester,
    /// Resident bytes of the service, with the seconds since the start.
    pub(crate) memory: Vec<(f64, u64)>,
    /// The processes of the service on this machine that `--pid` names.
    pub(crate) processes: Vec<Process>,
    /// Descriptions of the first problems.
    pub(crate) problems: Vec<String>,
}

/// Guests by outcome.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Guests {
    pub(crate) started: u64,
    pub(crate) completed: u64,
    pub(crate) declined: u64,
    /// Guests who left before they answered.
    pub(crate) left: u64,
    pub(crate) turned_away: u64,
    /// Guests who were refused because the person is already registered.
    pub(crate) already_registered: u64,
    pub(crate) failed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Process {
    pub(crate) name: String,
    /// Processor time per guest, in ms.
    pub(crate) ms_per_guest: f64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Credits {
    pub(crate) spent: i64,
    /// Expected minimum and maximum.
    pub(crate) least: u64,
    pub(crate) most: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Places {
    pub(crate) registered: u64,
    pub(crate) max_guests: u64,
}

/// Check-ins at doors.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Doors {
    pub(crate) doors: u64,
    /// Guests who were checked in.
    pub(crate) checked_in: u64,
    /// Guests whose tickets were scanned at two doors.
    pub(crate) at_two_doors: u64,
    /// Scans that were queued without a network.
    pub(crate) sent_later: u64,
}

/// Measurements that show if the tester itself was the limit.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Tester {
    /// Delays of guests' starts, p99 and maximum in ms. In the open model they are part of the latencies.
    pub(crate) lag_ms: (f64, f64),
    /// Times for which guests waited for a credential, p99 and maximum in ms.
    pub(crate) wait_ms: (f64, f64),
    /// Share of all processors that the tester used, where the system reports it.
    pub(crate) busy: Option<f64>,
    /// Signs that the tester was the limit.
    pub(crate) signs: Vec<String>,
}

/// Percentiles in ms.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

/// Figures of a step, which is one kind of request.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepSummary {
    pub(crate) title: &'static str,
    pub(crate) count: u64,
    pub(crate) per_second: f64,
    /// Latencies from the sending of the request.
    pub(crate) sent: Percentiles,
    /// Latencies from the intended time.
    pub(crate) due: Percentiles,
    pub(crate) outcomes: Vec<(String, u64)>,
    pub(crate) over_time: Vec<Slice>,
    /// Points of the curve: percentile and ms.
    pub(crate) curve: Vec<(f64, f64)>,
}

/// Figures of a slice of time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Slice {
    pub(crate) from_s: f64,
    pub(crate) per_second: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Percentiles of a curve's points.
const CURVE_PERCENTILES: [f64; 14] =
    [0.0, 50.0, 75.0, 87.5, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.99, 99.999];

/// Returns the value at a percentile, in ms.
pub(crate) fn value_ms(latencies: &Latencies, percentile: f64) -> f64 {
    latencies.value_at_percentile(percentile) as f64 / 1_000.0
}

impl Percentiles {
    pub(crate) fn new(latencies: &Latencies) -> Self {
        Self {
            p50: value_ms(latencies, 50.0),
            p90: value_ms(latencies, 90.0),
            p99: value_ms(latencies, 99.0),
            p999: value_ms(latencies, 99.9),
            max: latencies.max() as f64 / 1_000.0,
        }
    }
}

/// Largest p99, in ms, of the delays of starts and of the waits for credentials. With a larger p99 the tester was the
/// limit.
const LAG_MS_MAX: f64 = 10.0;
/// Largest share of all processors that the tester may use. With a larger share the tester may be the limit.
const BUSY_MAX: f64 = 0.6;

impl Tester {
    /// Evaluates the delays of starts, the waits for credentials, and the share of all processors used.
    pub(crate) fn evaluate(lag: &Latencies, waits: &Latencies, busy: Option<f64>) -> Self {
        let p99_and_max = |latencies: &Latencies| (value_ms(latencies, 99.0), latencies.max() as f64 / 1_000.0);
        let (lag_ms, wait_ms) = (p99_and_max(lag), p99_and_max(waits));
        let mut signs = Vec::new();
        let ((lag_p99, _), (wait_p99, _)) = (lag_ms, wait_ms);
        if lag_p99 > LAG_MS_MAX {
            signs.push(format!("guests started {lag_p99:.1} ms late at p99"));
        }
        if wait_p99 > LAG_MS_MAX {
            signs.push(format!("guests waited {wait_p99:.1} ms at p99 for the tester to sign"));
        }
        if let Some(busy) = busy.filter(|busy| *busy > BUSY_MAX) {
            signs.push(format!("the tester used {:.0} % of the machine's processors", busy * 100.0));
        }
        Self { lag_ms, wait_ms, busy, signs }
    }
}

impl StepSummary {
    pub(crate) fn new(step: Step, record: &StepRecord, slice: Duration, seconds: f64) -> Self {
        let count = record.outcomes.values().sum();
        let over_time = record.slices.iter().enumerate().filter(|(_, latencies)| !latencies.is_empty());
        let over_time = over_time.map(|(number, latencies)| Slice {
            from_s: number as f64 * slice.as_secs_f64(),
            per_second: latencies.len() as f64 / slice.as_secs_f64(),
            p50: value_ms(latencies, 50.0),
            p99: value_ms(latencies, 99.0),
        });
        Self {
            title: step.title(),
            count,
            per_second: count as f64 / seconds.max(f64::EPSILON),
            sent: Percentiles::new(&record.sent),
            due: Percentiles::new(&record.due),
            outcomes: record.outcomes.iter().map(|(outcome, count)| (outcome.to_string(), *count)).collect(),
            over_time: over_time.collect(),
            curve: CURVE_PERCENTILES
                .iter()
                .map(|percentile| (*percentile, value_ms(&record.due, *percentile)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
