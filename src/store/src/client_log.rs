//! The log of a client, as callers see it.

use sakshi_domain::client_log::{LogEntry, LogFilter};
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

/// A query of the log of a client.
#[derive(Clone, Debug)]
pub struct LogQuery {
    /// The client.
    pub client: ClientId,
    /// Selects the entries to return.
    pub filter: LogFilter,
    /// Position before which the page starts; `None` starts at the newest entry.
    pub before: Option<LogPosition>,
    /// Maximum number of entries.
    pub limit: u32,
    /// Time of the query.
    pub now: Timestamp,
}

impl LogQuery {
    /// Returns a query of the newest hundred entries of every kind.
    #[must_use]
    pub fn newest(client: ClientId, now: Timestamp) -> Self {
        Self { client, filter: LogFilter::default(), before: None, limit: 100, now }
    }
}

/// A position in the log of a client: a month of 30 days, counted from 1970, and a number in the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The month.
    pub month: i64,
    /// The number of an entry.
    pub number: u64,
}

/// Entries, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The entries.
    pub entries: Vec<LogEntry>,
    /// Position before which the next page starts; `None` at the end.
    pub next: Option<LogPosition>,
}
