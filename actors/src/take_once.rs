//! A large value for an actor: it is never copied, and the sender owns it until the actor takes it.
//!
//! The same message may be sent several times, so messages hold a ticket (a weak reference) and not the value. When the
//! sender stops waiting, a value that nobody has taken is freed, although the ticket may still be in a mailbox.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A value that can be taken once; the sender holds it.
#[derive(Debug)]
pub(crate) struct TakeOnce<T>(Arc<Mutex<Option<T>>>);

impl<T> TakeOnce<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(Some(value))))
    }

    /// A ticket for the value.
    pub(crate) fn ticket(&self) -> TakeTicket<T> {
        TakeTicket(Arc::downgrade(&self.0))
    }
}

/// Takes the value, if its sender still waits.
#[derive(Debug)]
pub(crate) struct TakeTicket<T>(Weak<Mutex<Option<T>>>);

impl<T> Clone for TakeTicket<T> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

impl<T> TakeTicket<T> {
    /// The value; `None` when it was taken before or the sender has stopped waiting.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.upgrade()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_taken_once_however_many_tickets_there_are() {
        let value = TakeOnce::new(Box::new(7));
        let (first, second) = (value.ticket(), value.ticket().clone());
        assert_eq!((first.take(), second.take()), (Some(Box::new(7)), None));
    }

    #[test]
    fn a_sender_that_stops_waiting_frees_its_value() {
        let inner = Arc::new(());
        let value = TakeOnce::new(Arc::clone(&inner));
        let ticket = value.ticket();
        drop(value);
        assert_eq!((Arc::strong_count(&inner), ticket.take()), (1, None));
    }
}
