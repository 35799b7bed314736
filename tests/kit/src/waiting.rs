//! Waiting for a condition, with a time limit.

use std::future::Future;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Time limit of most waits: much longer than any local operation.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Processor time of the work that measures the machine's load.
const WORK: Duration = Duration::from_millis(30);

/// Number of processes that handle a request, one after another.
const PROCESSES_PER_REQUEST: f64 = 3.0;

/// Fails if an action took longer than `bound`. On a busy machine the bound is extended.
pub fn assert_within(elapsed: Duration, bound: Duration, action: &str) {
    if elapsed < bound {
        return;
    }
    let factor = busy_factor();
    assert!(
        elapsed < bound.mul_f64(factor),
        "{action} took {elapsed:?}; the bound is {bound:?} times {factor:.1} on this machine"
    );
}

/// Returns the factor by which bounds are extended on this machine now.
fn busy_factor() -> f64 {
    PROCESSES_PER_REQUEST.mul_add(slowness() - 1.0, 1.0)
}

/// Returns the elapsed time per second of processor time, at least 1.
fn slowness() -> f64 {
    let processor_time = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time");
    let (started_at, time_before) = (Instant::now(), processor_time());
    while processor_time() - time_before < WORK {}
    started_at.elapsed().div_duration_f64(WORK).max(1.0)
}

/// Checks until there is a result; fails the test after `bound`, or later on a busy machine.
pub async fn eventually<T, Check>(event: &str, bound: Duration, mut check: impl FnMut() -> Check) -> T
where
    Check: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(result) = check().await {
            return result;
        }
        let waited = started.elapsed();
        assert!(waited < bound || waited < bound.mul_f64(busy_factor()), "{event} did not happen within {bound:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
