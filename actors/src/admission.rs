//! Admission: how much work may be inside at once.
//!
//! actix mailboxes accept any number of messages whatever their capacity, so the bound is a
//! counter at the door: a request that finds it full is shed at once instead of waiting in line.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bounded number of permits.
#[derive(Clone, Debug)]
pub struct Admission {
    inside: Arc<AtomicUsize>,
    most: usize,
}

impl Admission {
    /// At most `most` permits at a time.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { inside: Arc::default(), most }
    }

    /// A permit, unless all are taken.
    #[must_use]
    pub fn enter(&self) -> Option<Permit> {
        let before = self.inside.fetch_add(1, Ordering::AcqRel);
        let permit = Permit(Arc::clone(&self.inside));
        (before < self.most).then_some(permit)
    }

    /// Permits taken.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.inside.load(Ordering::Acquire)
    }
}

/// A permit, returned when dropped.
#[derive(Debug)]
pub struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_bound_are_inside_and_a_refusal_takes_no_place() {
        let door = Admission::new(2);
        let first = door.enter().unwrap();
        let _second = door.enter().unwrap();
        assert!(door.enter().is_none());
        assert!(door.enter().is_none());
        drop(first);
        assert_eq!(door.inside(), 1);
        assert!(door.enter().is_some());
    }
}
