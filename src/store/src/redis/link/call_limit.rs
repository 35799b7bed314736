//! The limit on calls in flight. Further calls are refused at once.

use crate::error::StoreError;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Counter of calls in flight.
#[derive(Debug)]
pub(super) struct CallLimit {
    in_flight: AtomicUsize,
    max: usize,
}

/// The permit of a call, released when the call has ended or is dropped.
#[derive(Debug)]
pub(super) struct CallPermit<'a>(&'a AtomicUsize);

impl CallLimit {
    pub(super) const fn new(max: usize) -> Self {
        Self { in_flight: AtomicUsize::new(0), max }
    }

    /// Returns a permit, or [`StoreError::Overloaded`] at the limit.
    pub(super) fn acquire(&self) -> Result<CallPermit<'_>, StoreError> {
        let permit = self.acquire_beyond_limit();
        if self.in_flight() > self.max { Err(StoreError::Overloaded) } else { Ok(permit) }
    }

    /// Returns a permit, also beyond the limit, for calls that must not be refused.
    pub(super) fn acquire_beyond_limit(&self) -> CallPermit<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        CallPermit(&self.in_flight)
    }

    /// Returns the number of calls in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, feature = "interleavings"))]
mod interleavings {
    use super::*;
    use crate::sync::Arc;

    #[test]
    fn no_interleaving_lets_more_calls_through_than_the_limit_or_loses_a_permit() {
        let scenario = || {
            const CALLS_MAX: usize = 2;
            let (limit, admitted) = (Arc::new(CallLimit::new(CALLS_MAX)), Arc::new(AtomicUsize::new(0)));
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let (limit, admitted) = (Arc::clone(&limit), Arc::clone(&admitted));
                    shuttle::thread::spawn(move || {
                        if let Ok(permit) = limit.acquire() {
                            assert!(admitted.fetch_add(1, Ordering::SeqCst) < CALLS_MAX);
                            shuttle::thread::yield_now();
                            admitted.fetch_sub(1, Ordering::SeqCst);
                            drop(permit);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(limit.in_flight(), 0);
        };
        shuttle::check_random(scenario, 20_000);
    }
}
