//! How long a call goes on, and how it spaces its attempts.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Before the second attempt.
const FIRST: Duration = Duration::from_millis(10);

/// Between attempts at last; a server that is back is noticed within this.
const LONGEST: Duration = Duration::from_millis(200);

/// When a call gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// When its patience has ended.
    Patience,
    /// When it has its answer, or nobody waits for it any more.
    Answered,
}

/// Growing pauses, of different lengths for calls that failed together.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    chance: RandomState,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST, chance: RandomState::new() }
    }
}

impl Backoff {
    /// The next pause: between a half and the whole of its step.
    pub(crate) fn pause(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(LONGEST);
        let thousandths = u32::try_from(self.chance.hash_one(step) % 500).unwrap_or(0);
        step * (1_000 - thousandths) / 1_000
    }
}
