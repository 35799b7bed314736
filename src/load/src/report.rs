//! What a run says at the end: figures that can be written as a table, as one HTML file and as JSON.

use std::time::Duration;

use sakshi_judge::{Finding, Verdict, WebhookCounts};
use serde::Serialize;

use crate::record::{Latencies, Step, StepRecord};

pub mod html;
mod plot;
pub mod table;

/// Everything that is reported.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// Who came and when, in words.
    pub model: String,
    /// How the latencies were corrected, in words.
    pub correction: String,
    /// When it began, RFC 3339.
    pub began: String,
    /// How long it took until the last guest had gone, in seconds.
    pub seconds: f64,
    /// How it ended.
    pub verdict: Verdict,
    /// Guests.
    pub guests: Guests,
    /// Each rule.
    pub findings: Vec<Finding>,
    /// Each step.
    pub steps: Vec<StepSummary>,
    /// The webhooks.
    pub webhooks: WebhookCounts,
    /// Credits that were spent, and the least and most that may have been.
    pub credits: Credits,
    /// The event's places with its registrations.
    pub places: Option<Places>,
    /// How much the tester was strained.
    pub tester: Tester,
    /// Seconds and resident bytes of the service.
    pub memory: Vec<(f64, u64)>,
    /// The service's processes on this machine, as far as they were named.
    pub processes: Vec<Process>,
    /// What went wrong, in words, the first few.
    pub troubles: Vec<String>,
}

/// Guests by what became of them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Guests {
    pub let_in: u64,
    pub completed: u64,
    pub declined: u64,
    pub left: u64,
    pub turned_away: u64,
    pub failed: u64,
}

/// A process of the service.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// Processor time for one guest, in ms.
    pub ms_per_guest: f64,
}

/// Credits.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Credits {
    pub spent: i64,
    pub least: u64,
    pub most: u64,
}

/// An event's places.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Places {
    pub registered: u64,
    pub max_guests: u64,
}

/// The tester's own strain.
#[derive(Clone, Debug, Serialize)]
pub struct Tester {
    /// How late guests were let in, p99 and highest in ms.
    pub lag_ms: (f64, f64),
    /// How long they waited for a credential, p99 and highest in ms.
    pub wait_ms: (f64, f64),
    /// Share of all processors.
    pub busy: Option<f64>,
    /// Signs that the tester was the limit.
    pub signs: Vec<String>,
}

/// Percentiles in ms.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct StepSummary {
    /// Its request.
    pub title: &'static str,
    /// How many were made.
    pub count: u64,
    /// Per second.
    pub per_second: f64,
    /// From when they were sent.
    pub sent: Percentiles,
    /// From when they were due.
    pub due: Percentiles,
    /// How they ended.
    pub outcomes: Vec<(String, u64)>,
    /// Over time.
    pub over_time: Vec<Slice>,
    /// Percentile and ms, for the curve.
    pub curve: Vec<(f64, f64)>,
}

/// One slice of time.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Slice {
    pub from_s: f64,
    pub per_second: f64,
    pub p50: f64,
    pub p99: f64,
}

/// Points of a curve: half as far from 1 each.
const CURVE: [f64; 14] = [0.0, 50.0, 75.0, 87.5, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.99, 99.999];

/// A value in ms.
#[must_use]
pub fn at(latencies: &Latencies, percentile: f64) -> f64 {
    latencies.value_at_percentile(percentile) as f64 / 1_000.0
}

impl Percentiles {
    /// Of a histogram.
    #[must_use]
    pub fn of(latencies: &Latencies) -> Self {
        Self {
            p50: at(latencies, 50.0),
            p90: at(latencies, 90.0),
            p99: at(latencies, 99.0),
            p999: at(latencies, 99.9),
            max: latencies.max() as f64 / 1_000.0,
        }
    }
}

impl StepSummary {
    /// Of what was recorded.
    #[must_use]
    pub fn of(step: Step, record: &StepRecord, slice: Duration, seconds: f64) -> Self {
        let count = record.outcomes.values().sum();
        let over_time = record.slices.iter().enumerate().filter(|(_, latencies)| !latencies.is_empty());
        let over_time = over_time.map(|(number, latencies)| Slice {
            from_s: number as f64 * slice.as_secs_f64(),
            per_second: latencies.len() as f64 / slice.as_secs_f64(),
            p50: at(latencies, 50.0),
            p99: at(latencies, 99.0),
        });
        Self {
            title: step.title(),
            count,
            per_second: count as f64 / seconds.max(f64::EPSILON),
            sent: Percentiles::of(&record.sent),
            due: Percentiles::of(&record.due),
            outcomes: record.outcomes.iter().map(|(outcome, count)| (outcome.to_string(), *count)).collect(),
            over_time: over_time.collect(),
            curve: CURVE.iter().map(|percentile| (*percentile, at(&record.due, *percentile))).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
