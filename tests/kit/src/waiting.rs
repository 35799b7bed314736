//! Waiting for a condition, with a time limit.

use std::future::Future;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Much longer than anything local takes.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Work that shows how busy the machine is, in processor time.
const WORK: Duration = Duration::from_millis(30);

/// Processes that take part in an answer, each of which waits for a processor in its turn.
const IN_TURN: f64 = 3.0;

/// Fails when something took longer than it may on a machine that does nothing else. What is over the bound is held against how
/// long work takes on this machine now.
pub fn assert_within(took: Duration, bound: Duration, what: &str) {
    if took < bound {
        return;
    }
    let factor = factor();
    assert!(took < bound.mul_f64(factor), "{what} took {took:?}; the bound is {bound:?} times {factor:.1} on this machine");
}

/// The factor by which timeouts are longer on this machine now.
fn factor() -> f64 {
    IN_TURN.mul_add(slowness() - 1.0, 1.0)
}

/// The time by the clock that work takes, for each second of it that it has a processor; at least 1.
fn slowness() -> f64 {
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time");
    let (began, before) = (Instant::now(), used());
    while used() - before < WORK {}
    began.elapsed().div_duration_f64(WORK).max(1.0)
}

/// Checks until there is a result; fails the test after `bound`, or later on a machine that is busy then.
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
