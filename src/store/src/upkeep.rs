//! Upkeep: removing records after their time, the health check, and leaving.

use std::time::Duration;

use sakshi_domain::time::Timestamp;

use crate::error::StoreFuture;

/// Upkeep of the store itself.
pub trait Upkeep {
    /// Removes at most `limit` records of each kind that have ended, at `now` and by the store's clock. Their ends were set when they were
    /// written, by the retention of the store and of the client. A record with a delivery that is not settled has no end.
    fn sweep(&self, now: Timestamp, limit: usize) -> StoreFuture<Swept>;

    /// The time of the last sweep, or of the store's creation; `None` for a store that needs no sweeps.
    fn last_sweep(&self) -> StoreFuture<Option<Timestamp>>;

    /// Whether a write would succeed now.
    fn check(&self) -> StoreFuture<()>;

    /// Accepts that the store has lost data, so that nodes use it again. Returns since when data is missing, or `None` when
    /// nothing is.
    fn accept_loss(&self) -> StoreFuture<Option<Timestamp>>;

    /// Takes this node out of service: it begins no further attempt, and other nodes take over its
    /// waiting deliveries.
    fn leave(&self) -> StoreFuture<()>;
}

/// How long records are kept beyond their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Expired transactions, after their window.
    pub expired: Duration,
    /// Events with their registrations, after their end.
    pub events: Duration,
}

/// How many records a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Transactions, with their deliveries.
    pub transactions: u64,
    /// Idempotency records, and the leases of their orders.
    pub idempotency: u64,
    /// Credential digests.
    pub credentials: u64,
    /// Events with their registrations and the scans that wait, each of them.
    pub events: u64,
    /// Flows, their webhooks, and reports with their deliveries.
    pub flows: u64,
    /// Sessions.
    pub sessions: u64,
    /// Refused requests, and what counts them.
    pub refusals: u64,
}
