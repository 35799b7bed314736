//! How often one app, or one address, may ask: so many requests a second, with a second's worth
//! at once (GCRA).

use std::fmt;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::error::ApiError;

/// Keys below which nothing is forgotten.
const KEYS_MIN: usize = 4_096;

type Limiter<K, C> = RateLimiter<K, HashMapStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// One limit for each key, shared by all workers.
pub struct RateLimit<K: Hash + Eq + Clone, C: Clock = MonotonicClock> {
    limiter: Option<Limiter<K, C>>,
    forget_at: AtomicUsize,
}

impl<K: Hash + Eq + Clone> RateLimit<K> {
    /// So many requests a second; zero means no limit.
    #[must_use]
    pub fn per_second(rate: u32) -> Self {
        Self::with_clock(rate, MonotonicClock)
    }
}

impl<K: Hash + Eq + Clone, C: Clock> RateLimit<K, C> {
    fn with_clock(rate: u32, clock: C) -> Self {
        let limiter = NonZeroU32::new(rate).map(|rate| RateLimiter::hashmap_with_clock(Quota::per_second(rate), clock));
        Self { limiter, forget_at: AtomicUsize::new(KEYS_MIN) }
    }

    /// Counts one request.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`] with the time after which one more would be admitted.
    pub fn admit(&self, key: &K) -> Result<(), ApiError> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let counted =
            limiter.check_key(key).map_err(|until| ApiError::RateLimited { retry_after: until.wait_time_from(limiter.clock().now()) });
        if limiter.len() > self.forget_at.load(Ordering::Relaxed) {
            limiter.retain_recent();
            self.forget_at.store(limiter.len().saturating_mul(2).max(KEYS_MIN), Ordering::Relaxed);
        }
        counted
    }
}

impl<K: Hash + Eq + Clone, C: Clock> fmt::Debug for RateLimit<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("limited", &self.limiter.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    #[test]
    fn a_key_that_asks_too_often_is_told_when_to_come_again_and_others_are_not_disturbed() {
        let clock = FakeRelativeClock::default();
        let limit = RateLimit::with_clock(2, clock.clone());
        assert_eq!((limit.admit(&"a"), limit.admit(&"a")), (Ok(()), Ok(())));
        assert_eq!(limit.admit(&"a"), Err(ApiError::RateLimited { retry_after: Duration::from_millis(500) }));
        assert_eq!(limit.admit(&"b"), Ok(()));
        clock.advance(Duration::from_millis(500));
        assert_eq!(limit.admit(&"a"), Ok(()));
    }

    #[test]
    fn zero_means_no_limit() {
        let limit = RateLimit::per_second(0);
        assert!((0..1_000).all(|_| limit.admit(&"a").is_ok()));
    }

    #[test]
    fn keys_that_were_long_silent_are_forgotten() {
        let clock = FakeRelativeClock::default();
        let limit = RateLimit::with_clock(1, clock.clone());
        for key in 0..20_000_u32 {
            limit.admit(&key).unwrap();
            clock.advance(Duration::from_millis(10));
        }
        assert!(limit.limiter.as_ref().unwrap().len() <= KEYS_MIN + 1);
    }
}
