//! Waiting for a condition, with a time limit.

use std::future::Future;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Much longer than any local operation.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Work that measures the machine's load, in processor time.
const WORK: Duration = Duration::from_millis(30);

/// Processes that take part in an answer; each waits for a processor in turn.
const IN_TURN: f64 = 3.0;

/// Fails if something took longer than it may on an idle machine. Time over the bound is compared with this machine's
/// current speed.
pub fn assert_within(took: Duration, bound: Duration, what: &str) {
    if took < bound {
        return;
    }
    let factor = factor();
    assert!(
        took < bound.mul_f64(factor),
        "{what} took {took:?}; the bound is {bound:?} times {factor:.1} on this machine"
    );
}

/// Returns the factor by which timeouts are longer on this machine now.
fn factor() -> f64 {
    IN_TURN.mul_add(slowness() - 1.0, 1.0)
}

/// Returns the elapsed time per second of processor time, at least 1.
fn slowness() -> f64 {
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time");
    let (began, before) = (Instant::now(), used());
    while used() - before < WORK {}
    began.elapsed().div_duration_f64(WORK).max(1.0)
}

/// Checks until there is a result; fails the test after `bound`, or later on a busy machine.
pub async fn eventually<T, Asked>(what: &str, bound: Duration, mut ask: impl FnMut() -> Asked) -> T
where
    Asked: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        let waited = started.elapsed();
        assert!(waited < bound || waited < bound.mul_f64(factor()), "{what} did not happen within {bound:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
