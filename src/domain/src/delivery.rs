//! A webhook delivery: one attempt, ever (specification, "Delivery rules" 5).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::flow::dedup::DedupDigest;
use crate::flow::flow_id::FlowId;
use crate::http_url::WebhookUrl;
use crate::ids::{Partition, TxnId};
use crate::time::Timestamp;

/// Position of a delivery in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub u64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a delivery reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The outcome of a transaction.
    Transaction(TxnId),
    /// One of a flow's webhooks.
    Flow {
        /// The flow.
        flow: FlowId,
        /// Tells its webhooks apart.
        webhook: DedupDigest,
    },
}

impl Subject {
    /// The partition of the client that it is reported to.
    #[must_use]
    pub const fn partition(&self) -> Partition {
        match self {
            Self::Transaction(txn) => txn.partition(),
            Self::Flow { flow, .. } => flow.partition(),
        }
    }

    /// Sixteen bytes of a transaction, or sixteen of a flow and sixteen of its webhook.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Transaction(txn) => txn.as_bytes().to_vec(),
            Self::Flow { flow, webhook } => [&flow.as_bytes()[..], &webhook.0].concat(),
        }
    }

    /// Reads what [`Subject::to_bytes`] wrote; `None` when it is of another length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (id, webhook) = bytes.split_first_chunk::<16>()?;
        if webhook.is_empty() {
            return Some(Self::Transaction(TxnId::from_bytes(*id)));
        }
        let webhook = DedupDigest(webhook.try_into().ok()?);
        Some(Self::Flow { flow: FlowId::from_bytes(*id), webhook })
    }
}

impl From<TxnId> for Subject {
    fn from(txn: TxnId) -> Self {
        Self::Transaction(txn)
    }
}

/// Says the id alone; a webhook's digest says nothing to anybody.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transaction(txn) => txn.fmt(f),
            Self::Flow { flow, .. } => flow.fmt(f),
        }
    }
}

/// A delivery that waits for its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedDelivery {
    /// Its position.
    pub id: DeliveryId,
    /// What it reports.
    pub subject: Subject,
    /// Where it goes.
    pub url: WebhookUrl,
    /// Bytes of what its body is made of, as it is stored: a sealed outcome or report.
    pub stored_bytes: usize,
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
    const ALL: [Self; 9] = [
        Self::Delivered,
        Self::Rejected,
        Self::Blocked,
        Self::Unresolved,
        Self::LocalFailure,
        Self::Unreachable,
        Self::Broken,
        Self::TimedOut,
        Self::Unknown,
    ];

    /// The outcome that a record names by its word, if there is one.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }

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

/// The delivery of one of a flow's webhooks as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowDelivery {
    /// Tells it apart from the flow's other webhooks.
    pub webhook: DedupDigest,
    /// What it tells, in words that are nobody's: `wealth-data RAW SUCCESS`. Empty when it was queued
    /// before that was noted.
    pub tells: String,
    /// The delivery.
    #[serde(flatten)]
    pub delivery: DeliveryRecord,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClientId;

    #[test]
    fn a_subject_is_read_back_from_its_bytes_and_tells_its_partition() {
        let partition = ClientId::generate().partition();
        let flow = FlowId::generate(partition, 3);
        for subject in [TxnId::generate(partition, 3).into(), Subject::Flow { flow, webhook: DedupDigest([7; 16]) }] {
            assert_eq!((Subject::from_bytes(&subject.to_bytes()), subject.partition()), (Some(subject), partition));
        }
        for length in [0, 15, 17, 31, 33] {
            assert_eq!(Subject::from_bytes(&vec![1; length]), None, "{length}");
        }
    }
}
