//! Waiting for a condition instead of for luck.

use std::future::Future;
use std::time::{Duration, Instant};

/// Far more than anything local takes, far less than a hung run.
pub const PLENTY: Duration = Duration::from_secs(30);

/// Between two looks at a condition.
const GLANCE: Duration = Duration::from_millis(5);

/// Asks until there is an answer; a test that waits longer than `bound` fails.
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
        tokio::time::sleep(GLANCE).await;
    }
}
