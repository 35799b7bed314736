//! The limit on calls under way. A call beyond it is refused at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::StoreError;

/// Counts calls under way.
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

    /// A permit, or [`StoreError::Overloaded`] at the limit.
    pub(super) fn acquire(&self) -> Result<CallPermit<'_>, StoreError> {
        let permit = self.acquire_beyond_limit();
        if self.in_flight() > self.max { Err(StoreError::Overloaded) } else { Ok(permit) }
    }

    /// A permit, also beyond the limit, for calls that must not be refused.
    pub(super) fn acquire_beyond_limit(&self) -> CallPermit<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        CallPermit(&self.in_flight)
    }

    /// Calls under way.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
