//! How many calls are under way, and no more: a caller that finds no place is refused at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::StoreError;

/// The places for calls.
#[derive(Debug)]
pub(super) struct Admission {
    taken: AtomicUsize,
    places: usize,
}

/// A place, given back when the call has ended or nobody waits for it.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a AtomicUsize);

impl Admission {
    pub(super) const fn new(places: usize) -> Self {
        Self { taken: AtomicUsize::new(0), places }
    }

    /// A place, if there is one.
    pub(super) fn enter(&self) -> Result<Place<'_>, StoreError> {
        let place = self.enter_in_any_case();
        if self.taken.load(Ordering::Relaxed) > self.places { Err(StoreError::Overloaded) } else { Ok(place) }
    }

    /// A place beyond the last one if need be, for those who must not be turned away.
    pub(super) fn enter_in_any_case(&self) -> Place<'_> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        Place(&self.taken)
    }

    /// Calls under way.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
