//! The log of a client, as callers see it.

use sakshi_domain::client_log::{LogEntry, LogFilter};
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

/// A question about the log.
#[derive(Clone, Debug)]
pub struct AskedLog {
    /// The client.
    pub client: ClientId,
    /// The entries meant.
    pub filter: LogFilter,
    /// Those before this place; the newest first without one.
    pub before: Option<LogPlace>,
    /// At most so many.
    pub limit: u32,
    /// The time of the question.
    pub now: Timestamp,
}

/// A place in the log of a client: a month of 30 days since 1970, and a number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    /// The month.
    pub month: i64,
    /// The number of an entry.
    pub number: u64,
}

/// Entries, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The entries.
    pub entries: Vec<LogEntry>,
    /// The place to go on before; `None` at the end.
    pub next: Option<LogPlace>,
}
