//! The sizes of each series, and the length of the measurement at each.

use std::time::Duration;

/// Sizes and lengths of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrowthScale {
    /// Live transactions.
    pub(super) live: &'static [usize],
    /// Events of one app.
    pub(super) events: &'static [usize],
    /// Registrations of one event.
    pub(super) registrations: &'static [usize],
    /// Webhooks queued for one receiver.
    pub(super) backlog: &'static [usize],
    /// Live transactions that expire together and are opened again.
    pub(super) churned: usize,
    /// The window of those transactions, longer than it takes to open them all.
    pub(super) churn_window: Duration,
    /// Requests of one kind per second, few enough never to queue.
    pub(super) rate: f64,
    /// Duration of one kind of request in a turn.
    pub(super) span: Duration,
    /// Turns of each kind of request.
    pub(super) rounds: usize,
}

impl GrowthScale {
    /// The scale of the bounds.
    pub(super) const FULL: Self = Self {
        live: &[1_000, 10_000, 100_000, 1_000_000],
        events: &[1, 100, 1_000, 10_000],
        registrations: &[1_000, 10_000, 100_000, 1_000_000],
        backlog: &[0, 1_000, 10_000, 100_000],
        churned: 1_000_000,
        churn_window: Duration::from_secs(240),
        rate: 500.0,
        span: Duration::from_secs(3),
        rounds: 3,
    };
    /// The scale for a check that the series work.
    pub(super) const QUICK: Self = Self {
        live: &[1_000, 10_000],
        events: &[1, 100, 500],
        registrations: &[500, 5_000],
        backlog: &[0, 500, 3_000],
        churned: 10_000,
        churn_window: Duration::from_secs(10),
        rate: 300.0,
        span: Duration::from_secs(1),
        rounds: 1,
    };

    /// Returns the number of requests of one kind in one turn.
    pub(super) fn requests_per_turn(&self) -> usize {
        (self.rate * self.span.as_secs_f64()) as usize
    }

    /// Returns the number of requests of one kind at one size.
    pub(super) fn requests_per_size(&self) -> usize {
        self.requests_per_turn() * self.rounds
    }
}
