//! The health of a server. Calls do not pile up in front of a server that is down.
//!
//! Calls retry for as long as the time limit of a call, because most outages are shorter. After that they are refused
//! at once, except for one at a time, which probes the server.

use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Known health of a server.
#[derive(Debug)]
pub(super) struct Health {
    epoch: Instant,
    /// Milliseconds after the epoch of the first failure since the last answer; 0 without one.
    failing_since: AtomicU64,
    is_probed: AtomicBool,
}

/// Permission of a call to use a server.
#[derive(Debug)]
pub(super) enum Availability<'a> {
    /// Try, and retry.
    Up,
    /// Try once: this call probes the server on behalf of all others.
    Probe(#[allow(dead_code, reason = "it ends the probe when it is dropped")] Probe<'a>),
    /// Do not try.
    Down,
}

/// The permit of the only call that probes a server.
#[derive(Debug)]
pub(super) struct Probe<'a>(&'a AtomicBool);

impl Health {
    pub(super) fn new() -> Self {
        Self { epoch: Instant::now(), failing_since: AtomicU64::new(0), is_probed: AtomicBool::new(false) }
    }

    /// Returns the permission of a call with this time limit.
    pub(super) fn availability(&self, call_timeout: Duration) -> Availability<'_> {
        let since = self.failing_since.load(Ordering::Relaxed);
        if since == 0 || self.epoch.elapsed() < Duration::from_millis(since) + call_timeout {
            return Availability::Up;
        }
        match self.is_probed.swap(true, Ordering::AcqRel) {
            false => Availability::Probe(Probe(&self.is_probed)),
            true => Availability::Down,
        }
    }

    /// Records that the server has answered.
    pub(super) fn record_answer(&self) {
        if self.failing_since.load(Ordering::Relaxed) != 0 {
            self.failing_since.store(0, Ordering::Relaxed);
        }
    }

    /// Records that the server has failed.
    pub(super) fn record_failure(&self) {
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

#[cfg(all(test, not(feature = "interleavings")))]
mod tests {
    use super::*;

    /// Returns the permission of the next call when the server has failed for long.
    fn availability(health: &Health) -> Availability<'_> {
        loop {
            // The time of a failure is in whole milliseconds.
            match health.availability(Duration::ZERO) {
                Availability::Up => std::thread::yield_now(),
                decided => return decided,
            }
        }
    }

    #[test]
    fn one_call_at_a_time_probes_a_server_that_has_failed_for_long() {
        let health = Health::new();
        assert!(matches!(health.availability(Duration::ZERO), Availability::Up));
        health.record_failure();
        assert!(
            matches!(health.availability(Duration::from_secs(60)), Availability::Up),
            "the server has not failed for that long"
        );
        let probe = availability(&health);
        assert!(matches!(probe, Availability::Probe(_)));
        assert!(matches!(availability(&health), Availability::Down));
        drop(probe);
        assert!(matches!(availability(&health), Availability::Probe(_)));
        health.record_answer();
        assert!(matches!(health.availability(Duration::ZERO), Availability::Up));
    }

    #[test]
    fn only_the_first_failure_counts() {
        let health = Health::new();
        health.record_failure();
        let first = health.failing_since.load(Ordering::Relaxed);
        while health.epoch.elapsed() < Duration::from_millis(first + 2) {
            std::thread::yield_now();
        }
        health.record_failure();
        assert_eq!(health.failing_since.load(Ordering::Relaxed), first);
        health.record_answer();
        health.record_failure();
        assert!(health.failing_since.load(Ordering::Relaxed) > first);
    }
}

#[cfg(all(test, feature = "interleavings"))]
mod interleavings {
    use super::*;
    use crate::sync::Arc;
    use crate::sync::atomic::AtomicUsize;

    #[test]
    fn no_interleaving_lets_two_calls_probe_at_once_or_blocks_the_next_probe() {
        let scenario = || {
            let (health, probing) = (Arc::new(Health::new()), Arc::new(AtomicUsize::new(0)));
            // The server has failed for as long as a call may take.
            health.failing_since.store(1, Ordering::Relaxed);
            while health.epoch.elapsed() <= Duration::from_millis(1) {
                std::hint::spin_loop();
            }
            let threads: Vec<_> = (0..3)
                .map(|number| {
                    let (health, probing) = (Arc::clone(&health), Arc::clone(&probing));
                    shuttle::thread::spawn(move || match health.availability(Duration::ZERO) {
                        Availability::Probe(probe) => {
                            assert_eq!(probing.fetch_add(1, Ordering::SeqCst), 0);
                            if number == 0 {
                                health.record_answer()
                            } else {
                                health.record_failure()
                            }
                            probing.fetch_sub(1, Ordering::SeqCst);
                            drop(probe);
                        }
                        Availability::Up | Availability::Down => {}
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(!matches!(health.availability(Duration::ZERO), Availability::Down));
        };
        shuttle::check_random(scenario, 3_000);
    }
}
