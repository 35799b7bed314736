//! Ending in good order: a flag that everybody sees, and a count of requests under way.
//!
//! Long polls and event streams end when the flag is raised; every answer from then on closes its
//! connection; the process ends when nothing is under way.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::Admission;
/// A request under way.
pub use sakshi_actors::Permit as UnderWay;
use tokio::sync::watch;

/// The state of the drain, shared by all workers.
#[derive(Clone, Debug)]
pub struct Drain {
    flag: Arc<watch::Sender<bool>>,
    under_way: Admission,
}

impl Drain {
    /// Not draining, nothing under way.
    #[must_use]
    pub fn new() -> Self {
        Self { flag: Arc::new(watch::channel(false).0), under_way: Admission::new(usize::MAX) }
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

    /// Counts a request until the permit is dropped.
    #[must_use]
    pub fn enter(&self) -> UnderWay {
        self.under_way.enter_anyway()
    }

    /// Waits until nothing is under way, for `patience` at most; returns what still is.
    pub async fn finish(&self, patience: Duration) -> usize {
        self.under_way.emptied(patience).await
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}
