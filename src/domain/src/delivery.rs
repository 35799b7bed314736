//! A webhook delivery: one attempt, ever (specification, "Delivery rules" 5).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::TxnId;
use crate::time::Timestamp;
use crate::web_address::WebhookUrl;

/// Position of a delivery in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub u64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A delivery that waits for its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedDelivery {
    /// Its position.
    pub id: DeliveryId,
    /// The transaction whose outcome it reports.
    pub txn: TxnId,
    /// Where it goes.
    pub url: WebhookUrl,
}

/// What became of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryOutcome {
    /// The receiver answered 2xx.
    Delivered,
    /// The receiver answered with another status.
    Rejected,
    /// The address may not be connected to.
    Blocked,
    /// The host name did not resolve.
    Unresolved,
    /// This machine could open no connection for want of descriptors, ports or memory; not a byte left it.
    LocalFailure,
    /// No connection, or no TLS session, could be made.
    Unreachable,
    /// The connection broke before an answer.
    Broken,
    /// No answer within the time allowed.
    TimedOut,
    /// The process ended during the attempt: the receiver may or may not have it.
    Unknown,
}

impl DeliveryOutcome {
    /// The word used in records and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Rejected => "rejected",
            Self::Blocked => "blocked",
            Self::Unresolved => "unresolved",
            Self::LocalFailure => "local_failure",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::TimedOut => "timed_out",
            Self::Unknown => "unknown",
        }
    }
}

/// The attempt as it is kept for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// What became of it.
    pub outcome: DeliveryOutcome,
    /// The receiver's HTTP status, if it answered.
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
}

/// A delivery as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeliveryRecord {
    /// Its position.
    pub id: DeliveryId,
    /// Scheme, host and port of the receiver; the rest of the URL may hold a secret.
    pub origin: String,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When its attempt began, if it has.
    pub claimed_at: Option<Timestamp>,
    /// The attempt, once it has ended.
    pub attempt: Option<Attempt>,
}
