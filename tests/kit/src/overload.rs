//! An overload: clients arrive at twice the capacity, then at half of it.

use std::time::Duration;

use super::crowd::{Crowd, Second};

/// Clients in the closed loop that measures the capacity.
const CLIENTS: usize = 64;
/// Seconds at half the load before the overload.
const CALM: u64 = 5;
/// Factor by which p99 may exceed that of the calm time, and the p99 allowed in any case.
pub const AS_BEFORE: u32 = 3;
pub const NOTICEABLE: Duration = Duration::from_millis(50);

/// Duration of each part.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub capacity: Duration,
    pub overload: Duration,
    pub afterwards: Duration,
}

/// The figures of an overload.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Clients served per second in a closed loop.
    pub capacity: f64,
    /// The p99 at half the capacity.
    pub calm: Duration,
    /// Clients served per second at twice the capacity, after the queues are full.
    pub goodput: f64,
    /// Seconds at half the capacity until nothing is refused and p99 is normal again.
    pub normal: usize,
    /// The share of clients that gave up.
    pub gave_up: f64,
    /// The seconds from the start of the overload.
    pub seconds: Vec<Second>,
}

/// Measures the capacity and then the overload.
pub async fn overload(crowd: &Crowd, parts: Parts) -> Outcome {
    let capacity = crowd.capacity(CLIENTS, parts.capacity).await;
    let from = crowd.seconds().len() + 1;
    crowd.come(capacity / 2.0, Duration::from_secs(CALM + 1)).await;
    let calm = crowd.seconds()[from..].iter().map(Second::p99).max().unwrap_or_default();
    let begun = crowd.seconds().len();
    crowd.come(capacity * 2.0, parts.overload).await;
    let dropped = crowd.seconds().len() - begun;
    crowd.come(capacity / 2.0, parts.afterwards).await;
    let seconds = crowd.seconds().split_off(begun);
    let full = &seconds[dropped / 4..dropped];
    let goodput = full.iter().map(|second| second.served).sum::<u64>() as f64 / full.len().max(1) as f64;
    let most = (calm * AS_BEFORE).max(NOTICEABLE);
    let is_normal = |second: &Second| second.refused == 0 && second.p99() <= most;
    let normal = seconds[dropped..].iter().rposition(|second| !is_normal(second)).map_or(0, |last| last + 1);
    let came: u64 = seconds[..dropped].iter().map(|second| second.came).sum();
    let gave_up = seconds.iter().map(|second| second.gave_up).sum::<u64>() as f64 / came.max(1) as f64;
    Outcome { capacity, calm, goodput, normal, gave_up, seconds }
}
