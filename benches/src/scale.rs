//! The length and the number of measurements.

use std::time::Duration;

/// Sizes and lengths of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Number of turns of each of the compared servers.
    pub(crate) rounds: usize,
    /// Length of a measured turn.
    pub(crate) span: Duration,
    /// Length of the load before the measurement.
    pub(crate) warm: Duration,
    /// Keep-alive connections of the load generator.
    pub(crate) connections: usize,
    /// Pause between two requests of a verification; zero for full load.
    pub(crate) pause: Duration,
    /// Callbacks in one turn.
    pub(crate) callbacks: usize,
    /// Webhooks in one turn.
    pub(crate) deliveries: usize,
    /// Verifications in one turn of `verification`, `pace` and similar benches.
    pub(crate) paced: usize,
    /// Webhooks in the outbox of `drain`.
    pub(crate) backlog: usize,
    /// Guests of the event.
    pub(crate) guests: usize,
    /// Time over which the guests arrive.
    pub(crate) arrivals: Duration,
    /// Kiosks that watch the event in the second turn.
    pub(crate) kiosks: usize,
    /// Live transactions of `memory` and `latency`.
    pub(crate) live: usize,
    /// Transactions replaced before memory is measured again.
    pub(crate) churned: usize,
    /// Length of the load at twice the capacity.
    pub(crate) overload: Duration,
    /// True if the memory of the store alone is measured too.
    pub(crate) store_alone: bool,
}

impl Scale {
    /// The scale of the targets.
    pub(crate) const FULL: Self = Self {
        rounds: 5,
        span: Duration::from_secs(3),
        warm: Duration::from_millis(500),
        connections: 64,
        pause: Duration::ZERO,
        callbacks: 30_000,
        deliveries: 20_000,
        paced: 4_000,
        backlog: 100_000,
        guests: 5_000,
        arrivals: Duration::from_secs(60),
        kiosks: 3_000,
        live: 1_000_000,
        churned: 3_000_000,
        overload: Duration::from_secs(60),
        store_alone: true,
    };
    /// The scale for a check that the benches work.
    pub(crate) const QUICK: Self = Self {
        rounds: 3,
        span: Duration::from_secs(1),
        warm: Duration::from_millis(300),
        connections: 64,
        pause: Duration::ZERO,
        callbacks: 4_000,
        deliveries: 3_000,
        paced: 4_000,
        backlog: 20_000,
        guests: 400,
        arrivals: Duration::from_secs(5),
        kiosks: 100,
        live: 50_000,
        churned: 150_000,
        overload: Duration::from_secs(8),
        store_alone: true,
    };
}
