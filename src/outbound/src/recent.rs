//! Counts of the last half hour; older ones are forgotten.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// After this time a window becomes the one before, which is forgotten with the next.
const WINDOW: Duration = Duration::from_secs(1_800);

/// Counts of `KINDS` kinds of ends, of the last half hour at least and hour at most.
pub struct Recent<const KINDS: usize>(Mutex<Windows<KINDS>>);

struct Windows<const KINDS: usize> {
    began: Instant,
    now: [u64; KINDS],
    before: [u64; KINDS],
}

impl<const KINDS: usize> Default for Recent<KINDS> {
    fn default() -> Self {
        Self(Mutex::new(Windows { began: Instant::now(), now: [0; KINDS], before: [0; KINDS] }))
    }
}

impl<const KINDS: usize> Recent<KINDS> {
    /// Counts an end of this kind; a kind beyond `KINDS` is ignored.
    pub fn count(&self, kind: usize) {
        self.with(|windows| {
            if let Some(count) = windows.now.get_mut(kind) {
                *count += 1;
            }
        });
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> [u64; KINDS] {
        self.with(|windows| std::array::from_fn(|kind| windows.now[kind] + windows.before[kind]))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Windows<KINDS>) -> T) -> T {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = windows.began.elapsed();
        if age >= WINDOW {
            windows.before = if age < 2 * WINDOW { windows.now } else { [0; KINDS] };
            windows.now = [0; KINDS];
            windows.began = Instant::now();
        }
        act(&mut windows)
    }
}

impl<const KINDS: usize> fmt::Debug for Recent<KINDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recent").field(&self.counts()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_counted_is_forgotten_after_an_hour() {
        let recent = Recent::<2>::default();
        recent.count(0);
        recent.count(1);
        recent.count(1);
        recent.count(7);
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
