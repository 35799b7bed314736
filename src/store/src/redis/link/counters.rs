//! Counters of the link, for the metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The counters, which only grow.
#[derive(Debug, Default)]
pub(super) struct Counters {
    repeats: AtomicU64,
    refusals: AtomicU64,
    by_name: RwLock<BTreeMap<&'static str, Arc<CallCounters>>>,
}

/// The counters of one script.
#[derive(Debug, Default)]
struct CallCounters {
    calls: AtomicU64,
    failures: AtomicU64,
    microseconds: AtomicU64,
}

/// The counters of a link at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFigures {
    /// Number of calls in flight.
    pub in_flight: usize,
    /// Number of attempts beyond the first of a call.
    pub repeats: u64,
    /// Number of calls refused at the limit.
    pub refused: u64,
    /// Calls that have ended, by script; commands that read count as `read`.
    pub calls: Vec<CallFigures>,
}

/// The counters of one script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFigures {
    /// Name of the script.
    pub name: &'static str,
    /// Number of calls that have ended.
    pub calls: u64,
    /// Number of calls that ended with an error.
    pub failures: u64,
    /// Total duration of all calls.
    pub total_duration: Duration,
}

impl Counters {
    /// Counts an attempt beyond the first of a call.
    pub(super) fn count_repeat(&self) {
        self.repeats.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call refused at the limit.
    pub(super) fn count_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call of a script (or `read`, `read_all`) that has ended after this time.
    pub(super) fn count_call(&self, name: &'static str, duration: Duration, has_failed: bool) {
        let counters = self.counters_of(name);
        counters.calls.fetch_add(1, Ordering::Relaxed);
        counters.failures.fetch_add(u64::from(has_failed), Ordering::Relaxed);
        counters.microseconds.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the counters, with this number of calls in flight.
    pub(super) fn snapshot(&self, in_flight: usize) -> LinkFigures {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        let calls = by_name.iter().map(|(&name, counters)| CallFigures {
            name,
            calls: counters.calls.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
            total_duration: Duration::from_micros(counters.microseconds.load(Ordering::Relaxed)),
        });
        let (repeats, refused) = (self.repeats.load(Ordering::Relaxed), self.refusals.load(Ordering::Relaxed));
        LinkFigures { in_flight, repeats, refused, calls: calls.collect() }
    }

    fn counters_of(&self, name: &'static str) -> Arc<CallCounters> {
        if let Some(counters) = self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Arc::clone(counters);
        }
        Arc::clone(self.by_name.write().unwrap_or_else(PoisonError::into_inner).entry(name).or_default())
    }
}
