//! What the link has done, for the server's metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Counts that only grow.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    repeats: AtomicU64,
    refused: AtomicU64,
    by_name: RwLock<BTreeMap<&'static str, Arc<Tally>>>,
}

#[derive(Debug, Default)]
struct Tally {
    calls: AtomicU64,
    failures: AtomicU64,
    microseconds: AtomicU64,
}

/// The figures of a link at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFigures {
    /// Calls under way.
    pub in_flight: usize,
    /// Attempts beyond the first of a call.
    pub repeats: u64,
    /// Calls that found no place.
    pub refused: u64,
    /// Calls that have ended, by script; commands that read count as `read`.
    pub calls: Vec<CallFigures>,
}

/// The figures of one script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFigures {
    /// Which.
    pub name: &'static str,
    /// Calls that have ended.
    pub calls: u64,
    /// Those of them that ended with an error.
    pub failures: u64,
    /// What they took together.
    pub took: Duration,
}

impl Tallies {
    pub(super) fn repeated(&self) {
        self.repeats.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self, name: &'static str, took: Duration, failed: bool) {
        let tally = self.tally(name);
        tally.calls.fetch_add(1, Ordering::Relaxed);
        tally.failures.fetch_add(u64::from(failed), Ordering::Relaxed);
        tally.microseconds.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn read(&self, in_flight: usize) -> LinkFigures {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        let calls = by_name.iter().map(|(&name, tally)| CallFigures {
            name,
            calls: tally.calls.load(Ordering::Relaxed),
            failures: tally.failures.load(Ordering::Relaxed),
            took: Duration::from_micros(tally.microseconds.load(Ordering::Relaxed)),
        });
        let (repeats, refused) = (self.repeats.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed));
        LinkFigures { in_flight, repeats, refused, calls: calls.collect() }
    }

    fn tally(&self, name: &'static str) -> Arc<Tally> {
        if let Some(tally) = self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Arc::clone(tally);
        }
        Arc::clone(self.by_name.write().unwrap_or_else(PoisonError::into_inner).entry(name).or_default())
    }
}
