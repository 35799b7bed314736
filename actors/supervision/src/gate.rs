//! Admission: a bound on requests in flight.
//!
//! actix mailboxes accept any number of messages whatever their capacity, so the bound is a counter in front of them. A
//! request that finds no permit left is refused at once instead of queued.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// A bounded number of permits.
#[derive(Debug)]
pub struct Gate {
    permits_max: usize,
    /// Number of permits taken.
    inside: AtomicUsize,
    /// Notified when the last permit is returned.
    emptied: Notify,
}

impl Gate {
    /// Creates a gate with `permits_max` permits.
    #[must_use]
    pub fn new(permits_max: usize) -> Arc<Self> {
        Arc::new(Self { permits_max, inside: AtomicUsize::new(0), emptied: Notify::new() })
    }

    /// Takes a permit, unless all are taken.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Option<Permit> {
        let (permit, before) = self.take();
        (before < self.permits_max).then_some(permit)
    }

    /// Takes a permit even if all are taken: for work that is counted but not bounded.
    #[must_use]
    pub fn enter_unbounded(self: &Arc<Self>) -> Permit {
        self.take().0
    }

    /// Takes a permit. Returns it with the number of permits that were taken before.
    fn take(self: &Arc<Self>) -> (Permit, usize) {
        let before = self.inside.fetch_add(1, Ordering::AcqRel);
        (Permit(Arc::clone(self)), before)
    }

    /// Returns the number of permits taken.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.inside.load(Ordering::Acquire)
    }

    /// Returns the permits taken, as a share of the bound; above 1 after [`Self::enter_unbounded`].
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        // Counts of requests need far fewer than 53 bits.
        #[allow(clippy::cast_precision_loss)]
        let ratio = self.inside() as f64 / self.permits_max.max(1) as f64;
        ratio
    }

    /// Waits until no permit is taken, for `time` at most. Returns the number still taken.
    pub async fn wait_until_empty(&self, time: Duration) -> usize {
        let emptied = async {
            loop {
                let notice = self.emptied.notified();
                if self.inside() == 0 {
                    return;
                }
                notice.await;
            }
        };
        // The returned count shows whether the wait succeeded.
        let _ = timeout(time, emptied).await;
        self.inside()
    }
}

/// A permit, returned when dropped.
#[derive(Debug)]
pub struct Permit(Arc<Gate>);

impl Drop for Permit {
    fn drop(&mut self) {
        if self.0.inside.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

#[cfg(all(test, not(feature = "interleavings")))]
mod tests {
    use super::*;

    #[test]
    fn a_gate_admits_up_to_its_bound_and_a_refusal_takes_no_permit() {
        let gate = Gate::new(2);
        let first = gate.enter().unwrap();
        let _second = gate.enter().unwrap();
        assert!(gate.enter().is_none());
        assert!(gate.enter().is_none());
        assert!((gate.fill_ratio() - 1.0).abs() < 1e-9);
        drop(first);
        assert_eq!(gate.inside(), 1);
        assert!((gate.fill_ratio() - 0.5).abs() < 1e-9);
        assert!(gate.enter().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_when_the_gate_is_empty_or_the_time_is_over() {
        let gate = Gate::new(2);
        assert_eq!(gate.wait_until_empty(Duration::from_secs(60)).await, 0, "no permit is taken");
        let permits = [gate.enter_unbounded(), gate.enter_unbounded(), gate.enter_unbounded()];
        let began = tokio::time::Instant::now();
        assert_eq!(gate.wait_until_empty(Duration::from_secs(60)).await, 3);
        assert_eq!(began.elapsed(), Duration::from_secs(60));
        let leaving = async { drop(permits) };
        assert_eq!(tokio::join!(gate.wait_until_empty(Duration::from_secs(60)), leaving).0, 0);
        let last = gate.enter();
        let leaving = async { drop(last) };
        assert_eq!(tokio::join!(gate.wait_until_empty(Duration::from_secs(60)), leaving).0, 0);
        assert_eq!(began.elapsed(), Duration::from_secs(60), "the wait ends at once");
    }
}

#[cfg(all(test, feature = "interleavings"))]
mod interleavings {
    use super::*;

    #[test]
    fn no_interleaving_exceeds_the_bound_or_loses_a_permit() {
        let scenario = || {
            let (gate, admitted) = (Gate::new(2), Arc::new(AtomicUsize::new(0)));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (gate, admitted) = (Arc::clone(&gate), Arc::clone(&admitted));
                    shuttle::thread::spawn(move || {
                        for permit in [gate.enter(), gate.enter()].into_iter().flatten() {
                            assert!(admitted.fetch_add(1, Ordering::SeqCst) < 2);
                            shuttle::thread::yield_now();
                            admitted.fetch_sub(1, Ordering::SeqCst);
                            drop(permit);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(gate.inside(), 0);
        };
        shuttle::check_random(scenario, 20_000);
    }
}
