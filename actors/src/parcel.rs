//! Something large on its way to an actor: it is never copied, and it stays the sender's until it
//! is taken.
//!
//! A question may be asked several times, so messages hold slips and not the parcel. A sender that
//! goes away, or waits no longer, takes a parcel with it that nobody has begun on: what nobody
//! answers for does not wait in a mailbox.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What is handed over once.
#[derive(Debug)]
pub(crate) struct Parcel<T>(Arc<Mutex<Option<T>>>);

impl<T> Parcel<T> {
    /// Wraps it up.
    pub(crate) fn new(contents: T) -> Self {
        Self(Arc::new(Mutex::new(Some(contents))))
    }

    /// A permission to take it.
    pub(crate) fn slip(&self) -> Slip<T> {
        Slip(Arc::downgrade(&self.0))
    }
}

/// A permission to take a parcel, as long as it is there.
#[derive(Debug)]
pub(crate) struct Slip<T>(Weak<Mutex<Option<T>>>);

impl<T> Clone for Slip<T> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

impl<T> Slip<T> {
    /// The contents; `None` when somebody else has taken them, or the sender has gone.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.upgrade()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_is_taken_once_however_many_slips_there_are() {
        let parcel = Parcel::new(Box::new(7));
        let (first, second) = (parcel.slip(), parcel.slip().clone());
        assert_eq!((first.take(), second.take()), (Some(Box::new(7)), None));
    }

    #[test]
    fn a_sender_that_goes_takes_its_parcel_along() {
        let contents = Arc::new(());
        let parcel = Parcel::new(Arc::clone(&contents));
        let slip = parcel.slip();
        drop(parcel);
        assert_eq!((Arc::strong_count(&contents), slip.take()), (1, None));
    }
}
