//! Waiting for a condition, with a time limit.

use std::future::Future;
use std::time::{Duration, Instant};

/// Much longer than anything local takes.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Checks until there is a result; fails the test after `bound`.
pub async fn eventually<T, Asked>(what: &str, bound: Duration, mut ask: impl FnMut() -> Asked) -> T
where
    Asked: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < bound, "{what} did not happen within {bound:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
