//! Latencies and outcomes of every step, over the whole run and over time.
//!
//! Each step has two histograms. `sent` counts from the sending of the request. `due` counts from the intended time: it
//! corrects for coordinated omission, and so shows every stall. The closed model has no intended times. There, `due`
//! contains additional samples for the requests that a stalled user did not send.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

/// Latencies in microseconds.
pub(crate) type Latencies = Histogram<u32>;

/// Longest recorded time, in microseconds: an hour.
const TIME_MAX_US: u64 = 3_600_000_000;

/// A request that guests or backends make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Page,
    Start,
    Verify,
    Init,
    Pending,
    Intent,
    Callback,
    Result,
    Guests,
    CheckIn,
}

impl Due {
    /// The sending of a request that has neither an intended time nor an interval.
    pub(crate) const SENDING: Self = Self::Every(None);
}

impl Step {
    /// Returns the request of the step, as a title.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Page => "GET /e/{id}",
            Self::Start => "POST /e/{id}/start",
            Self::Verify => "GET /v/{txn}",
            Self::Init => "POST init",
            Self::Pending => "GET result, pending",
            Self::Intent => "GET intent",
            Self::Callback => "POST callback",
            Self::Result => "GET result, finished",
            Self::Guests => "GET guests at a door",
            Self::CheckIn => "POST check-in",
        }
    }
}

/// The moment from which the latency of a request counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// The intended time of the request.
    At(Instant),
    /// The sending of the request. The user sends such a request at this interval; `None` if at no fixed interval.
    Every(Option<Duration>),
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Status(u16),
    TimedOut,
    Unreachable,
    Broken,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(formatter, "{status}"),
            Self::TimedOut => formatter.write_str("timed out"),
            Self::Unreachable => formatter.write_str("unreachable"),
            Self::Broken => formatter.write_str("connection broken"),
        }
    }
}

/// Records of a step.
#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    /// Latencies from the sending of the request.
    pub(crate) sent: Latencies,
    /// Latencies from the intended time.
    pub(crate) due: Latencies,
    /// Latencies from the intended time, for each slice of time.
    pub(crate) slices: Vec<Latencies>,
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
}

/// Records steps from any thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Beginning of the first slice.
    run_start: Instant,
    /// Length of a slice of time, which is a point of the report's plots.
    slice: Duration,
    steps: Mutex<BTreeMap<Step, StepRecord>>,
}

/// Significant digits of a latency, and of a latency within a slice of time.
pub(crate) const DIGITS: u8 = 3;
const SLICE_DIGITS: u8 = 2;

/// Creates an empty histogram with this number of significant digits.
///
/// # Panics
/// If there are more than 5 digits.
#[allow(clippy::expect_used)]
pub(crate) fn empty_latencies(digits: u8) -> Latencies {
    Histogram::new(digits).expect("a histogram keeps up to 5 digits")
}

/// Latencies recorded from any thread.
#[derive(Debug)]
pub(crate) struct SharedLatencies(Mutex<Latencies>);

impl Default for SharedLatencies {
    fn default() -> Self {
        Self(Mutex::new(empty_latencies(DIGITS)))
    }
}

impl SharedLatencies {
    pub(crate) fn add(&self, time: Duration) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), time);
    }

    pub(crate) fn snapshot(&self) -> Latencies {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Records a time, rounded to microseconds.
pub(crate) fn add(histogram: &mut Latencies, time: Duration) {
    // The histogram grows to the highest time. If it cannot grow, its highest possible value is counted.
    if histogram.record(micros(time)).is_err() {
        histogram.saturating_record(micros(time));
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(TIME_MAX_US).clamp(1, TIME_MAX_US)
}

impl Recorder {
    /// Creates a recorder that counts time from `run_start` in slices.
    pub(crate) const fn new(run_start: Instant, slice: Duration) -> Self {
        Self { run_start, slice, steps: Mutex::new(BTreeMap::new()) }
    }

    /// Records a request.
    pub(crate) fn record(&self, step: Step, due: Due, sent_at: Instant, done_at: Instant, outcome: Outcome) {
        let mut steps = self.steps();
        let record = steps.entry(step).or_insert_with(|| StepRecord {
            sent: empty_latencies(DIGITS),
            due: empty_latencies(DIGITS),
            slices: Vec::new(),
            outcomes: BTreeMap::new(),
        });
        *record.outcomes.entry(outcome).or_default() += 1;
        add(&mut record.sent, done_at - sent_at);
        let from = match due {
            Due::At(moment) => moment.min(sent_at),
            Due::Every(_) => sent_at,
        };
        let slice =
            ((from.saturating_duration_since(self.run_start)).as_secs_f64() / self.slice.as_secs_f64()) as usize;
        if record.slices.len() <= slice {
            record.slices.resize(slice + 1, empty_latencies(SLICE_DIGITS));
        }
        for histogram in [Some(&mut record.due), record.slices.get_mut(slice)].into_iter().flatten() {
            match due {
                Due::Every(Some(cadence)) => add_corrected(histogram, done_at - sent_at, cadence),
                Due::At(_) | Due::Every(None) => add(histogram, done_at - from),
            }
        }
    }

    /// Returns the records so far.
    pub(crate) fn snapshot(&self) -> BTreeMap<Step, StepRecord> {
        self.steps().clone()
    }

    /// Returns the number of requests so far, by outcome.
    pub(crate) fn outcomes(&self) -> BTreeMap<Outcome, u64> {
        let mut sums = BTreeMap::new();
        for (outcome, count) in self.steps().values().flat_map(|record| &record.outcomes) {
            *sums.entry(*outcome).or_default() += count;
        }
        sums
    }

    fn steps(&self) -> MutexGuard<'_, BTreeMap<Step, StepRecord>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a time, and the times of the requests that the user would have sent meanwhile at its cadence: the time less one
/// cadence, less two, and so on.
fn add_corrected(histogram: &mut Latencies, time: Duration, cadence: Duration) {
    add(histogram, time);
    let cadence = cadence.max(Duration::from_millis(1));
    let mut missing = time.saturating_sub(cadence);
    while missing >= cadence {
        add(histogram, missing);
        missing -= cadence;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentile_ms(histogram: &Latencies, percentile: f64) -> f64 {
        histogram.value_at_percentile(percentile) as f64 / 1_000.0
    }

    #[test]
    fn the_latency_of_a_late_request_counts_from_its_intended_time() {
        let run_start = Instant::now();
        let recorder = Recorder::new(run_start, Duration::from_secs(1));
        for number in 0..100 {
            // Due every 10 ms. The tester stalled for a second and then sent all requests.
            let (due, sent) = (run_start + Duration::from_millis(10 * number), run_start + Duration::from_secs(1));
            recorder.record(Step::Page, Due::At(due), sent, sent + Duration::from_millis(1), Outcome::Status(200));
        }
        let record = &recorder.snapshot()[&Step::Page];
        assert!((percentile_ms(&record.sent, 99.0) - 1.0).abs() < 0.1);
        assert!((percentile_ms(&record.due, 50.0) - 501.0).abs() < 15.0, "{}", percentile_ms(&record.due, 50.0));
        assert_eq!(record.outcomes, BTreeMap::from([(Outcome::Status(200), 100)]));
    }

    #[test]
    fn a_stall_of_a_closed_user_adds_samples_for_unsent_requests() {
        let run_start = Instant::now();
        let recorder = Recorder::new(run_start, Duration::from_secs(60));
        let cadence = Due::Every(Some(Duration::from_millis(10)));
        for _ in 0..99 {
            recorder.record(
                Step::Start,
                cadence,
                run_start,
                run_start + Duration::from_millis(1),
                Outcome::Status(303),
            );
        }
        recorder.record(Step::Start, cadence, run_start, run_start + Duration::from_secs(1), Outcome::Status(303));
        let record = &recorder.snapshot()[&Step::Start];
        assert!(percentile_ms(&record.sent, 98.0) < 1.1, "one in a hundred hides the stall");
        assert!(percentile_ms(&record.due, 75.0) > 450.0, "the stall took as long as all other requests together");
        assert_eq!(record.outcomes[&Outcome::Status(303)], 100, "an added sample is not a request");
    }

    #[test]
    fn a_request_belongs_to_the_slice_of_its_intended_time() {
        let run_start = Instant::now();
        let recorder = Recorder::new(run_start, Duration::from_secs(1));
        for second in [0, 0, 2] {
            let at = run_start + Duration::from_secs(second);
            recorder.record(Step::Page, Due::At(at), at, at + Duration::from_millis(5), Outcome::Broken);
        }
        let record = &recorder.snapshot()[&Step::Page];
        assert_eq!(record.slices.iter().map(Histogram::len).collect::<Vec<_>>(), [2, 0, 1]);
    }
}
