//! The node's figures of the last two minutes, for `sakshi top` and the console: differences of the metrics, sampled
//! every two seconds.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::{Key, gauge};
use sakshi_actors::Tree;
use sakshi_wire::operator::nodes::NodeFigures;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::process;
use super::prometheus::{BUCKET_BOUNDS_SECONDS, BucketCounts, PrometheusRecorder};

/// Interval between two samples.
const INTERVAL: Duration = Duration::from_secs(2);
/// Number of samples kept.
const SAMPLES: usize = 60;
/// Number of samples over which the load is averaged: ten seconds.
const LOAD_SAMPLES: usize = 5;
/// Route of the long poll; its latency says nothing about the node.
const LONG_POLL: &str = "/api/v1/nationalid-ovse/result/{txnId}";
/// Prefix of the callback route.
const CALLBACK: &str = "/cb/";

/// The latest samples. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures(Arc<Mutex<VecDeque<Sample>>>);

/// The figures of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    inits: u64,
    callbacks: u64,
    webhooks: u64,
    webhooks_failed: u64,
    p99_ms: f64,
    cpu_percent: f64,
}

/// The counters at one time.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    inits: u64,
    callbacks: u64,
    webhooks: u64,
    webhooks_delivered: u64,
    latencies: BucketCounts,
    cpu: Duration,
}

impl Figures {
    /// Starts sampling on the current arbiter, until the returned figures are dropped. Publishes the load as a share of
    /// `processors`.
    pub(crate) fn watch(recorder: PrometheusRecorder, tree: Tree, processors: usize) -> Self {
        let figures = Self::default();
        let samples = Arc::downgrade(&figures.0);
        actix_rt::spawn(async move {
            let mut ticks = interval(INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks.tick().await;
            let mut before = Reading::take(&recorder);
            loop {
                ticks.tick().await;
                let Some(samples) = samples.upgrade() else { return };
                let now = Reading::take(&recorder);
                let figures = Self(samples);
                figures.push(now.since(&before));
                before = now;
                gauge!("sakshi_load_ratio").set(figures.cpu_ratio(processors).max(tree.admission_ratio()).min(1.0));
            }
        });
        figures
    }

    /// Adds a sample, and drops the oldest one beyond [`SAMPLES`].
    fn push(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Returns the processor time of the last ten seconds, as a share of these processors.
    fn cpu_ratio(&self, processors: usize) -> f64 {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = samples.iter().rev().take(LOAD_SAMPLES);
        // Counts of samples and processors are far below 53 bits.
        #[allow(clippy::cast_precision_loss)]
        let percent_available = 100.0 * (latest.len().max(1) * processors.max(1)) as f64;
        latest.map(|sample| sample.cpu_percent).sum::<f64>() / percent_available
    }

    /// Returns the samples as one series for each figure.
    pub(crate) fn series(&self) -> NodeFigures {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let integers = |figure: fn(&Sample) -> u64| samples.iter().map(figure).collect();
        let decimals = |figure: fn(&Sample) -> f64| samples.iter().map(figure).collect();
        NodeFigures {
            interval_s: INTERVAL.as_secs(),
            inits: integers(|sample| sample.inits),
            callbacks: integers(|sample| sample.callbacks),
            webhooks: integers(|sample| sample.webhooks),
            webhooks_failed: integers(|sample| sample.webhooks_failed),
            p99_ms: decimals(|sample| sample.p99_ms),
            cpu_percent: decimals(|sample| sample.cpu_percent),
        }
    }
}

impl Reading {
    /// Reads the counters now.
    fn take(recorder: &PrometheusRecorder) -> Self {
        let all = |_: &Key| true;
        let is_callback = |key: &Key| route(key).starts_with(CALLBACK);
        let is_request = |key: &Key| is_callback(key) || route(key).starts_with("/api/v1/") && route(key) != LONG_POLL;
        let is_delivered =
            |key: &Key| key.labels().any(|label| label.key() == "outcome" && label.value() == "delivered");
        Self {
            at: Instant::now(),
            inits: recorder.sum("sakshi_transactions_opened_total", all),
            callbacks: recorder.sum("sakshi_http_requests_total", is_callback),
            webhooks: recorder.sum("sakshi_webhook_attempts_total", all),
            webhooks_delivered: recorder.sum("sakshi_webhook_attempts_total", is_delivered),
            latencies: recorder.buckets("sakshi_http_request_seconds", is_request),
            cpu: process::cpu_time(),
        }
    }

    /// Returns the figures between an earlier reading and this one.
    fn since(&self, before: &Self) -> Sample {
        let webhooks = self.webhooks.saturating_sub(before.webhooks);
        let mut latencies = self.latencies;
        latencies.iter_mut().zip(before.latencies).for_each(|(count, before)| *count = count.saturating_sub(before));
        let elapsed = self.at.duration_since(before.at).as_secs_f64().max(f64::MIN_POSITIVE);
        Sample {
            inits: self.inits.saturating_sub(before.inits),
            callbacks: self.callbacks.saturating_sub(before.callbacks),
            webhooks,
            webhooks_failed: webhooks.saturating_sub(self.webhooks_delivered.saturating_sub(before.webhooks_delivered)),
            p99_ms: round_to_hundredths(1_000.0 * percentile_99(&latencies)),
            cpu_percent: round_to_hundredths(100.0 * self.cpu.saturating_sub(before.cpu).as_secs_f64() / elapsed),
        }
    }
}

/// Returns the route of a series.
fn route(key: &Key) -> &str {
    key.labels().find(|label| label.key() == "route").map_or("", |label| label.value())
}

/// Estimates the 99th percentile in seconds, within its bucket; 0 without values. Values above all bounds count as the
/// largest bound.
fn percentile_99(counts: &BucketCounts) -> f64 {
    let total: u64 = counts.iter().sum();
    let wanted_rank = (total * 99).div_ceil(100);
    let mut count_below = 0;
    for (index, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        if count_below + count >= wanted_rank {
            let from = index.checked_sub(1).map_or(0.0, |before| BUCKET_BOUNDS_SECONDS[before]);
            let to = BUCKET_BOUNDS_SECONDS.get(index).copied().unwrap_or(from);
            // Counts of two seconds are far below 53 bits.
            #[allow(clippy::cast_precision_loss)]
            let share = (wanted_rank - count_below) as f64 / *count as f64;
            return from + (to - from) * share;
        }
        count_below += count;
    }
    0.0
}

/// Rounds to two decimals, for display.
fn round_to_hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use metrics::{counter, histogram, with_local_recorder};

    use super::*;

    #[test]
    fn a_sample_counts_since_the_previous_reading() {
        let recorder = PrometheusRecorder::default();
        let mut before = Reading::take(&recorder);
        let callback = "/cb/{txnId}/{capability}";
        with_local_recorder(&recorder, || {
            counter!("sakshi_transactions_opened_total").increment(3);
            counter!("sakshi_http_requests_total", "route" => callback, "status" => "2xx").increment(2);
            counter!("sakshi_http_requests_total", "route" => callback, "status" => "4xx").increment(1);
            counter!("sakshi_http_requests_total", "route" => "/api/ping").increment(9);
            counter!("sakshi_webhook_attempts_total", "outcome" => "delivered").increment(4);
            counter!("sakshi_webhook_attempts_total", "outcome" => "refused").increment(1);
            histogram!("sakshi_http_request_seconds", "route" => callback).record(0.002);
            histogram!("sakshi_http_request_seconds", "route" => LONG_POLL).record(29.0);
            histogram!("sakshi_http_request_seconds", "route" => "/portal").record(29.0);
        });
        before.at -= Duration::from_secs(2);
        let sample =
            Reading { cpu: before.cpu + Duration::from_millis(500), ..Reading::take(&recorder) }.since(&before);
        assert_eq!((sample.inits, sample.callbacks, sample.webhooks, sample.webhooks_failed), (3, 3, 5, 1));
        // The slowest counted request takes 2 ms, in the bucket up to 2.5 ms.
        assert!((sample.p99_ms - 2.5).abs() < 0.01 && (24.0..=25.0).contains(&sample.cpu_percent), "{sample:?}");
        let now = Reading::take(&recorder);
        assert_eq!(Sample { cpu_percent: 0.0, ..now.since(&now) }, Sample::default());
    }

    #[test]
    fn the_percentile_is_within_the_bucket_of_its_value() {
        let percentile_of = |values: &[(usize, u64)]| {
            let mut counts = BucketCounts::default();
            values.iter().for_each(|(bucket, count)| counts[*bucket] = *count);
            percentile_99(&counts)
        };
        assert!(percentile_of(&[]) == 0.0);
        assert!(percentile_of(&[(3, 99), (8, 1)]) == 0.001, "one in a hundred is left out");
        assert!(
            (percentile_of(&[(3, 98), (8, 2)]) - 0.15).abs() < 0.001,
            "one in fifty is not: the middle of the bucket from 0.05 to 0.25 seconds"
        );
        assert!(percentile_of(&[(12, 1)]) == 30.0, "above all bounds");
    }

    #[test]
    fn the_load_is_the_average_of_ten_seconds_over_all_processors() {
        let figures = Figures::default();
        assert!(figures.cpu_ratio(2) == 0.0, "before the first sample");
        for cpu_percent in [200.0, 0.0, 150.0, 100.0, 150.0, 100.0] {
            figures.push(Sample { cpu_percent, ..Sample::default() });
        }
        assert!((figures.cpu_ratio(2) - 0.5).abs() < 1e-9 && (figures.cpu_ratio(4) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn the_latest_sixty_samples_are_kept_oldest_first() {
        let figures = Figures::default();
        (0..70).for_each(|inits| figures.push(Sample { inits, ..Sample::default() }));
        let series = figures.series();
        assert_eq!((series.inits, series.p99_ms.len(), series.interval_s), ((10..70).collect(), 60, 2));
    }
}
