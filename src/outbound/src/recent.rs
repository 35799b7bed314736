//! Counts of recent events.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Duration of a window of counts; the current and the previous window are kept.
const WINDOW: Duration = Duration::from_secs(1_800);

/// Counts of `KINDS` kinds of events in the last half hour at least and the last hour at most.
pub struct RecentCounts<const KINDS: usize>(Mutex<Windows<KINDS>>);

/// Counts of the current and of the previous window, by kind.
struct Windows<const KINDS: usize> {
    /// Start of the current window.
    began: Instant,
    current: [u64; KINDS],
    previous: [u64; KINDS],
}

impl<const KINDS: usize> Default for RecentCounts<KINDS> {
    fn default() -> Self {
        Self(Mutex::new(Windows { began: Instant::now(), current: [0; KINDS], previous: [0; KINDS] }))
    }
}

impl<const KINDS: usize> RecentCounts<KINDS> {
    /// Counts an event of this kind; a kind beyond `KINDS` is ignored.
    pub fn count(&self, kind: usize) {
        self.with_windows(|windows| {
            if let Some(count) = windows.current.get_mut(kind) {
                *count += 1;
            }
        });
    }

    /// Returns the counts by kind.
    #[must_use]
    pub fn counts(&self) -> [u64; KINDS] {
        self.with_windows(|windows| std::array::from_fn(|kind| windows.current[kind] + windows.previous[kind]))
    }

    /// Calls `act` with the windows, after it has dropped those that are over.
    fn with_windows<T>(&self, act: impl FnOnce(&mut Windows<KINDS>) -> T) -> T {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = windows.began.elapsed();
        if age >= WINDOW {
            windows.previous = if age < 2 * WINDOW { windows.current } else { [0; KINDS] };
            windows.current = [0; KINDS];
            windows.began = Instant::now();
        }
        act(&mut windows)
    }
}

impl<const KINDS: usize> fmt::Debug for RecentCounts<KINDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecentCounts").field(&self.counts()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn counts_are_dropped_after_an_hour() {
        const UNKNOWN_KIND: usize = 2;
        let recent = RecentCounts::<2>::default();
        for kind in [0, 1, 1, UNKNOWN_KIND] {
            recent.count(kind);
        }
        assert_eq!(recent.counts(), [1, 2]);
        tokio::time::advance(WINDOW).await;
        recent.count(0);
        assert_eq!(recent.counts(), [2, 2]);
        tokio::time::advance(WINDOW).await;
        assert_eq!(recent.counts(), [1, 0]);
        tokio::time::advance(3 * WINDOW).await;
        assert_eq!(recent.counts(), [0, 0]);
    }
}
