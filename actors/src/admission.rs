//! Admission: how much work may be inside at once.
//!
//! actix mailboxes accept any number of messages whatever their capacity, so the bound is a
//! counter at the door: a request that finds it full is shed at once instead of waiting in line.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// A bounded number of permits.
#[derive(Clone, Debug)]
pub struct Admission {
    door: Arc<Door>,
    most: usize,
}

#[derive(Debug, Default)]
struct Door {
    inside: AtomicUsize,
    emptied: Notify,
}

impl Admission {
    /// At most `most` permits at a time.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { door: Arc::default(), most }
    }

    /// A permit, unless all are taken.
    #[must_use]
    pub fn enter(&self) -> Option<Permit> {
        let (permit, before) = self.take();
        (before < self.most).then_some(permit)
    }

    /// A permit, however many are taken: for work that is only counted.
    #[must_use]
    pub fn enter_anyway(&self) -> Permit {
        self.take().0
    }

    fn take(&self) -> (Permit, usize) {
        let before = self.door.inside.fetch_add(1, Ordering::AcqRel);
        (Permit(Arc::clone(&self.door)), before)
    }

    /// Permits taken.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.door.inside.load(Ordering::Acquire)
    }

    /// Waits until no permit is taken, for `patience` at most; returns how many still are.
    pub async fn emptied(&self, patience: Duration) -> usize {
        let emptied = async {
            loop {
                let notice = self.door.emptied.notified();
                if self.inside() == 0 {
                    return;
                }
                notice.await;
            }
        };
        // Whether it is over or was given up, the count tells.
        let _ = timeout(patience, emptied).await;
        self.inside()
    }
}

/// A permit, returned when dropped.
#[derive(Debug)]
pub struct Permit(Arc<Door>);

impl Drop for Permit {
    fn drop(&mut self) {
        if self.0.inside.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.emptied.notify_waiters();
        }
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

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_last_to_leave_is_told_at_once_or_when_patience_ends() {
        let door = Admission::new(2);
        assert_eq!(door.emptied(Duration::from_secs(60)).await, 0, "nobody is inside");
        let permits = [door.enter_anyway(), door.enter_anyway(), door.enter_anyway()];
        let began = tokio::time::Instant::now();
        assert_eq!(door.emptied(Duration::from_secs(60)).await, 3);
        assert_eq!(began.elapsed(), Duration::from_secs(60));
        let leaving = async { drop(permits) };
        assert_eq!(tokio::join!(door.emptied(Duration::from_secs(60)), leaving).0, 0);
        assert_eq!(began.elapsed(), Duration::from_secs(60), "without waiting any longer");
    }
}
