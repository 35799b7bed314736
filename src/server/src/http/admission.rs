//! How many requests are under way at one moment, and whether new ones are taken at all.
//!
//! Mailboxes of actors do not bound anything, so load is shed here, before it becomes messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::error::ApiError;

/// Counts requests under way; one for the whole process, in the public app's data as `Arc<Admission>`.
#[derive(Debug)]
pub struct Admission {
    under_way: AtomicUsize,
    limit: usize,
    closed: AtomicBool,
}

/// A request that is under way until this is dropped.
///
/// The edge keeps it in the request's extensions. A handler that only waits, as a long poll does,
/// takes it out and so gives its place to others.
#[derive(Debug)]
pub struct Permit(Arc<Admission>);

impl Admission {
    /// At most `limit` at one moment.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { under_way: AtomicUsize::new(0), limit, closed: AtomicBool::new(false) })
    }

    /// Takes one more request.
    ///
    /// # Errors
    /// [`ApiError::Overloaded`] at the limit, [`ApiError::Unavailable`] once closed.
    pub fn enter(self: &Arc<Self>) -> Result<Permit, ApiError> {
        let before = self.under_way.fetch_add(1, Ordering::SeqCst);
        let permit = Permit(Arc::clone(self));
        if self.closed.load(Ordering::SeqCst) {
            return Err(ApiError::Unavailable { code: "draining", retry_after: Duration::from_secs(1) });
        }
        if before >= self.limit { Err(ApiError::Overloaded) } else { Ok(permit) }
    }

    /// Takes no further request; those under way finish.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Requests under way now.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_over_the_limit_is_shed_until_one_ends() {
        let admission = Admission::new(2);
        let (first, _second) = (admission.enter().unwrap(), admission.enter().unwrap());
        assert_eq!(admission.enter().unwrap_err(), ApiError::Overloaded);
        assert_eq!(admission.under_way(), 2);
        drop(first);
        assert!(admission.enter().is_ok());
    }

    #[test]
    fn a_closed_admission_lets_what_is_under_way_finish() {
        let admission = Admission::new(2);
        let permit = admission.enter().unwrap();
        admission.close();
        assert!(matches!(admission.enter(), Err(ApiError::Unavailable { code: "draining", .. })));
        assert_eq!(admission.under_way(), 1);
        drop(permit);
        assert_eq!(admission.under_way(), 0);
    }
}
