//! Ending in good order: a flag that everybody sees, and a count of requests under way.
//!
//! Long polls and event streams end when the flag is raised; every answer from then on closes its
//! connection; the process ends when nothing is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// The state of the drain, shared by all workers.
#[derive(Clone, Debug)]
pub struct Drain {
    flag: Arc<watch::Sender<bool>>,
    under_way: Arc<AtomicUsize>,
}

impl Drain {
    /// Not draining, nothing under way.
    #[must_use]
    pub fn new() -> Self {
        Self { flag: Arc::new(watch::channel(false).0), under_way: Arc::default() }
    }

    /// Raises the flag.
    pub fn begin(&self) {
        self.flag.send_replace(true);
    }

    /// Whether the flag is up.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.flag.borrow()
    }

    /// Returns when the flag is up.
    pub async fn begun(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.flag.subscribe().wait_for(|raised| *raised).await;
    }

    /// Counts a request until the guard is dropped.
    #[must_use]
    pub fn enter(&self) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(Arc::clone(&self.under_way))
    }

    /// Waits until nothing is under way, for `patience` at most; returns what still is.
    pub async fn finish(&self, patience: Duration) -> usize {
        let end = Instant::now() + patience;
        while self.under_way.load(Ordering::Acquire) > 0 && Instant::now() < end {
            sleep(Duration::from_millis(5)).await;
        }
        self.under_way.load(Ordering::Acquire)
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

/// A request under way.
#[derive(Debug)]
pub struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
