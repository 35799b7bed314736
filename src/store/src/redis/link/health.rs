//! Whether a server has answered lately, so that nothing piles up in front of one that is away.
//!
//! For as long as a call's patience, calls try: most outages are shorter. After that they are
//! refused at once, all but one at a time, which finds out whether the server is back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is known of a server.
#[derive(Debug)]
pub(super) struct Health {
    epoch: Instant,
    /// Milliseconds after the epoch of the first failure since the last answer; 0 without one.
    failing_since: AtomicU64,
    probed: AtomicBool,
}

/// What a call may do.
#[derive(Debug)]
pub(super) enum Standing<'a> {
    /// Try, and try again.
    Open,
    /// Try once: this call finds out for all others.
    Probe(#[allow(dead_code, reason = "it ends the probe when it is dropped")] Probe<'a>),
    /// Do not try.
    Away,
}

/// The one call that finds out whether a server is back.
#[derive(Debug)]
pub(super) struct Probe<'a>(&'a AtomicBool);

impl Health {
    pub(super) fn new() -> Self {
        Self { epoch: Instant::now(), failing_since: AtomicU64::new(0), probed: AtomicBool::new(false) }
    }

    /// What a call may do that would wait as long as `patience`.
    pub(super) fn standing(&self, patience: Duration) -> Standing<'_> {
        let since = self.failing_since.load(Ordering::Relaxed);
        if since == 0 || self.epoch.elapsed() < Duration::from_millis(since) + patience {
            return Standing::Open;
        }
        match self.probed.swap(true, Ordering::AcqRel) {
            false => Standing::Probe(Probe(&self.probed)),
            true => Standing::Away,
        }
    }

    /// It has answered.
    pub(super) fn answered(&self) {
        if self.failing_since.load(Ordering::Relaxed) != 0 {
            self.failing_since.store(0, Ordering::Relaxed);
        }
    }

    /// It has not.
    pub(super) fn failed(&self) {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        // Only the first failure counts.
        let _ = self.failing_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
