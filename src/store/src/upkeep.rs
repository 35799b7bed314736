//! Upkeep: removing records after their time, the health check, and leaving.

use std::time::Duration;

/// Times for which records are stored after their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Expired transactions, after their window.
    pub expired: Duration,
    /// Events with their registrations, after their end.
    pub events: Duration,
    /// Entries of the register of consents, after the week in which the person was asked; zero for no register.
    pub consents: Duration,
}

/// Numbers of expired records that a sweep has removed, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Transactions, with their deliveries.
    pub transactions: u64,
    /// Idempotency records, and the leases of their orders.
    pub idempotency: u64,
    /// Credential digests.
    pub credentials: u64,
    /// Events, their registrations and their pending scans, each counted.
    pub events: u64,
    /// Flows, their webhooks, and reports with their deliveries.
    pub flows: u64,
    /// Sessions, links that invited users, and grants of credits that waited for a second operator.
    pub sessions: u64,
    /// Refused requests, and their counts.
    pub refusals: u64,
    /// Snapshots of nodes.
    pub nodes: u64,
    /// Weeks of the register of consents, with their entries.
    pub consents: u64,
    /// Days of figures.
    pub days: u64,
    /// Months of the logs of clients, with their entries.
    pub logs: u64,
}
