//! An overload: clients arrive at twice the capacity, then at half of it.

use std::time::{Duration, Instant};

use super::crowd::{Crowd, Second};

/// Clients in the closed loop that measures the capacity.
const CLIENTS: usize = 64;
/// Seconds at half the load before the overload.
const CALM_SECONDS: u64 = 5;
/// Factor by which p99 may exceed the p99 of the calm time.
pub const P99_FACTOR_MAX: u32 = 3;
/// The p99 that is allowed in any case.
pub const P99_ALWAYS_ALLOWED: Duration = Duration::from_millis(50);

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
    pub calm_p99: Duration,
    /// Clients served per second at twice the capacity, after the queues are full.
    pub goodput: f64,
    /// Processor time of the node for each served client, in seconds: at the capacity, and at twice the capacity.
    pub seconds_per_client: [f64; 2],
    /// Seconds at half the capacity until nothing is refused and p99 is normal again.
    pub seconds_to_normal: usize,
    /// The share of clients that gave up.
    pub gave_up_share: f64,
    /// The seconds from the start of the overload.
    pub seconds: Vec<Second>,
}

/// Measures the capacity and then the overload. `processor_time` is the node's so far.
pub async fn overload(crowd: &Crowd, parts: Parts, processor_time: impl Fn() -> Duration) -> Outcome {
    let seconds_since = |before: Duration| processor_time().saturating_sub(before).as_secs_f64();
    let served = |seconds: &[Second]| seconds.iter().map(|second| second.served).sum::<u64>();
    let (time_before, started_at) = (processor_time(), Instant::now());
    let capacity = crowd.capacity(CLIENTS, parts.capacity).await;
    let at_capacity = seconds_since(time_before) / (capacity * started_at.elapsed().as_secs_f64());
    let calm_start = crowd.seconds().len() + 1;
    crowd.send_clients(capacity / 2.0, Duration::from_secs(CALM_SECONDS + 1)).await;
    let calm_p99 = crowd.seconds()[calm_start..].iter().map(Second::p99).max().unwrap_or_default();
    let overload_start = crowd.seconds().len();
    let time_before = processor_time();
    crowd.send_clients(capacity * 2.0, parts.overload).await;
    let overload_len = crowd.seconds().len() - overload_start;
    let overloaded = seconds_since(time_before) / served(&crowd.seconds()[overload_start..]).max(1) as f64;
    crowd.send_clients(capacity / 2.0, parts.afterwards).await;
    let seconds = crowd.seconds().split_off(overload_start);
    // The queues are full after the first quarter.
    let saturated = &seconds[overload_len / 4..overload_len];
    let goodput = served(saturated) as f64 / saturated.len().max(1) as f64;
    let p99_max = (calm_p99 * P99_FACTOR_MAX).max(P99_ALWAYS_ALLOWED);
    let is_normal = |second: &Second| second.refused == 0 && second.p99() <= p99_max;
    let seconds_to_normal =
        seconds[overload_len..].iter().rposition(|second| !is_normal(second)).map_or(0, |last| last + 1);
    let arrived: u64 = seconds[..overload_len].iter().map(|second| second.arrived).sum();
    let gave_up_share = seconds.iter().map(|second| second.gave_up).sum::<u64>() as f64 / arrived.max(1) as f64;
    let seconds_per_client = [at_capacity, overloaded];
    Outcome { capacity, calm_p99, goodput, seconds_per_client, seconds_to_normal, gave_up_share, seconds }
}
