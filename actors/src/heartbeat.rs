//! Is every arbiter still turning? A stuck one cannot be noticed from inside, so each beats a
//! counter that others read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often an arbiter beats.
const BEAT: Duration = Duration::from_millis(250);

/// An arbiter, and when it last beat, in milliseconds.
type Beat = (String, Arc<AtomicU64>);

/// The last beats of all arbiters.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeats {
    began: Instant,
    patience: Duration,
    arbiters: Arc<Mutex<Vec<Beat>>>,
}

impl Heartbeats {
    /// Arbiters silent for longer than `patience` count as hung.
    #[must_use]
    pub(crate) fn new(patience: Duration) -> Self {
        Self { began: Instant::now(), patience, arbiters: Arc::default() }
    }

    /// Beats on the current arbiter until it ends. A restarted arbiter takes over its old name.
    pub(crate) fn beat_here(&self, name: &str) {
        let last = Arc::new(AtomicU64::new(self.elapsed()));
        {
            let mut arbiters = self.arbiters.lock().unwrap_or_else(PoisonError::into_inner);
            arbiters.retain(|(known, _)| known != name);
            arbiters.push((name.to_owned(), Arc::clone(&last)));
        }
        let beats = self.clone();
        actix_rt::spawn(async move {
            loop {
                last.store(beats.elapsed(), Ordering::Relaxed);
                tokio::time::sleep(BEAT).await;
            }
        });
    }

    /// The name of an arbiter that has not beaten for too long.
    #[must_use]
    pub(crate) fn hung(&self) -> Option<String> {
        let now = self.elapsed();
        let patience = u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX);
        let arbiters = self.arbiters.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = |last: &AtomicU64| now.saturating_sub(last.load(Ordering::Relaxed)) > patience;
        arbiters.iter().find(|(_, last)| silent(last)).map(|(name, _)| name.clone())
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
