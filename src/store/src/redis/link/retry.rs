//! The duration of a call's retries, and the pauses between its attempts.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Pause before the second attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Maximum pause: a recovered server is noticed within this time.
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Condition under which a call gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// The time of the call is up.
    Timeout,
    /// The call has its answer, or is dropped.
    Answered,
}

/// Growing pauses, with a random part so that calls that failed together do not retry together.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    random: RandomState,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST_PAUSE, random: RandomState::new() }
    }
}

impl Backoff {
    /// Returns the next pause: between half of the current step and the whole step.
    pub(crate) fn pause(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(PAUSE_MAX);
        // A random part, so that the instances do not all try again at the same moment.
        let thousandths_off = u32::try_from(self.random.hash_one(step) % 500).unwrap_or(0);
        step * (1_000 - thousandths_off) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn pauses_grow_to_a_maximum_and_differ_between_calls() {
        let mut first = BTreeSet::new();
        for _ in 0..100 {
            let mut backoff = Backoff::default();
            let pauses = [(); 7].map(|()| backoff.pause());
            for (pause, step) in pauses.iter().zip([10, 20, 40, 80, 160, 200, 200].map(Duration::from_millis)) {
                assert!((step / 2..=step).contains(pause), "{pauses:?}");
            }
            first.insert(pauses[0]);
        }
        assert!(first.len() > 30, "{first:?}");
    }
}
