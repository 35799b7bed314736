//! A webhook delivery, which is attempted once (specification, "Delivery rules" 5).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::flow::dedup::DedupDigest;
use crate::flow::flow_id::FlowId;
use crate::ids::{AppId, ClientId, Partition, TxnId};
use crate::string_enum::string_enum;
use crate::time::Timestamp;

/// The position of a delivery in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub u64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The subject of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The outcome of a transaction.
    Transaction(TxnId),
    /// A webhook of a flow.
    Flow {
        /// The flow.
        flow: FlowId,
        /// Digest that identifies the webhook within the flow.
        webhook: DedupDigest,
    },
}

impl Subject {
    /// Returns the partition of the client that owns the transaction or flow.
    #[must_use]
    pub const fn partition(&self) -> Partition {
        match self {
            Self::Transaction(txn) => txn.partition(),
            Self::Flow { flow, .. } => flow.partition(),
        }
    }

    /// Returns the 16 bytes of a transaction id, or the 16 of a flow id followed by the 16 of its webhook.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Transaction(txn) => txn.as_bytes().to_vec(),
            Self::Flow { flow, webhook } => [&flow.as_bytes()[..], &webhook.0].concat(),
        }
    }

    /// Reads the bytes of [`Subject::to_bytes`]; `None` if the length is wrong.
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

/// Writes the id of the transaction or flow, without the digest.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transaction(txn) => txn.fmt(f),
            Self::Flow { flow, .. } => flow.fmt(f),
        }
    }
}

/// The receiver of a client's webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Receiver {
    /// The client.
    pub client: ClientId,
    /// Scheme, host and port.
    pub origin: String,
}

/// A delivery before its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedDelivery {
    /// The position in the outbox.
    pub id: DeliveryId,
    /// The subject of the webhook.
    pub subject: Subject,
    /// The receiver.
    pub receiver: Receiver,
    /// The app of the transaction or flow.
    pub app: Option<AppId>,
    /// Size in bytes of the stored, encrypted outcome or report from which the body is built.
    pub stored_bytes: usize,
}

string_enum!(
    /// The result of an attempt.
    DeliveryOutcome {
        /// The receiver responded with 2xx.
        Delivered = "delivered",
        /// The receiver responded with another status.
        Rejected = "rejected",
        /// The address guard forbids the receiver's address.
        Blocked = "blocked",
        /// The host name has no address, or this installation's resolver gave none in time.
        Unresolved = "unresolved",
        /// This machine ran out of file descriptors, ports or memory for a connection; nothing was sent.
        LocalFailure = "local_failure",
        /// No connection or no TLS session could be established.
        Unreachable = "unreachable",
        /// The connection broke before a response.
        Broken = "broken",
        /// The receiver did not respond in time.
        TimedOut = "timed_out",
        /// The process ended during the attempt; the receiver may or may not have the webhook.
        Unknown = "unknown",
    }
);

string_enum!(
    /// The cause of a failed attempt.
    FailureReason {
        /// The host name has no address, or the resolver failed.
        Dns = "dns",
        /// Nothing listens at the receiver's port.
        Refused = "refused",
        /// No route leads to the receiver's address.
        NoRoute = "no_route",
        /// A part of the attempt took too long.
        TimedOut = "timed_out",
        /// The receiver closed or reset the connection.
        Reset = "reset",
        /// The receiver's certificate is not valid now.
        TlsExpired = "tls_expired",
        /// The receiver's certificate is for another name.
        TlsName = "tls_name",
        /// No trusted authority vouches for the receiver's certificate; often the intermediate certificate is missing.
        TlsChain = "tls_chain",
        /// The receiver offers no TLS 1.2 or 1.3, or no common cipher.
        TlsVersion = "tls_version",
        /// The receiver wants a client certificate, or refuses the one that it got.
        TlsClientCertificate = "tls_client_certificate",
        /// TLS failed in another way; for example, the receiver does not speak TLS at this port.
        Tls = "tls",
        /// The receiver responded with 3xx. Redirects are not followed.
        Redirect = "redirect",
        /// The receiver responded with another status than 2xx or 3xx.
        Status = "status",
        /// The forward proxy refused the connection, failed, or cannot be reached.
        Proxy = "proxy",
        /// The address guard forbids the receiver's address.
        Blocked = "blocked",
        /// This machine ran out of file descriptors, ports or memory.
        Local = "local",
        /// The process ended during the attempt, or the receiver's response is not HTTP.
        Unknown = "unknown",
    }
);

string_enum!(
    /// The part of an attempt in which it failed.
    AttemptPart {
        /// Resolving the host name.
        Name = "name",
        /// Connecting.
        Connection = "connection",
        /// Requesting a connection from the forward proxy.
        Proxy = "proxy",
        /// The TLS handshake.
        Tls = "tls",
        /// Sending the webhook and waiting for the status.
        Answer = "answer",
    }
);

/// Cause and stage of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptFailure {
    /// The cause.
    pub reason: FailureReason,
    /// The part that failed; `None` before the first one, or if it is unknown.
    pub part: Option<AttemptPart>,
}

string_enum!(
    /// Receipt of a webhook, as far as the outcome of its attempt proves it.
    Sent {
        /// The receiver responded.
        Yes = "yes",
        /// No byte of the webhook was sent.
        No = "no",
        /// The receiver may or may not have the webhook.
        Unknown = "unknown",
    }
);

impl DeliveryOutcome {
    /// Returns the receipt that the outcome proves. Only `Sent::No` proves that the receiver has nothing.
    #[must_use]
    pub const fn sent(self) -> Sent {
        match self {
            Self::Delivered | Self::Rejected => Sent::Yes,
            Self::Blocked | Self::Unresolved | Self::LocalFailure | Self::Unreachable => Sent::No,
            Self::Broken | Self::TimedOut | Self::Unknown => Sent::Unknown,
        }
    }
}

/// An attempt as recorded for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The result of the attempt.
    pub outcome: DeliveryOutcome,
    /// Cause of the failure; `None` if the webhook was delivered.
    pub failure: Option<AttemptFailure>,
    /// The receiver's HTTP status, if it responded.
    pub status: Option<u16>,
    /// Duration, in milliseconds.
    pub duration_ms: u32,
}

impl Attempt {
    /// Creates an attempt with a response: only 2xx means that the webhook was delivered (specification, "Delivery
    /// rules" 4).
    #[must_use]
    pub const fn from_status(status: u16, duration_ms: u32) -> Self {
        let failure = match status {
            200..300 => None,
            300..400 => Some(FailureReason::Redirect),
            _ => Some(FailureReason::Status),
        };
        let (outcome, failure) = match failure {
            None => (DeliveryOutcome::Delivered, None),
            Some(reason) => {
                (DeliveryOutcome::Rejected, Some(AttemptFailure { reason, part: Some(AttemptPart::Answer) }))
            }
        };
        Self { outcome, failure, status: Some(status), duration_ms }
    }

    /// Creates an attempt without a response.
    #[must_use]
    pub const fn unanswered(
        outcome: DeliveryOutcome,
        reason: FailureReason,
        part: Option<AttemptPart>,
        duration_ms: u32,
    ) -> Self {
        Self { outcome, failure: Some(AttemptFailure { reason, part }), status: None, duration_ms }
    }

    /// Creates an attempt that was in flight when the process ended.
    #[must_use]
    pub const fn unknown() -> Self {
        Self::unanswered(DeliveryOutcome::Unknown, FailureReason::Unknown, None, 0)
    }
}

/// A delivery as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// The position in the outbox.
    pub id: DeliveryId,
    /// Scheme, host and port of the receiver. The rest of the URL may contain a secret.
    pub origin: String,
    /// Time of queueing.
    pub queued_at: Timestamp,
    /// Start of the attempt.
    pub claimed_at: Option<Timestamp>,
    /// The attempt, once it has ended.
    pub attempt: Option<Attempt>,
}

/// The delivery of a flow's webhook as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowDelivery {
    /// Digest that identifies the webhook within the flow.
    pub webhook: DedupDigest,
    /// The kind of report and its status, without personal data: `wealth-data RAW SUCCESS`. Empty for
    /// deliveries of versions that did not record it.
    pub summary: String,
    /// The delivery.
    pub delivery: DeliveryRecord,
}

string_enum!(
    /// The state of a transaction's webhook.
    WebhookState {
        /// The transaction has no webhook.
        None = "none",
        /// The webhook is queued or in flight.
        Waiting = "waiting",
        /// The receiver has accepted the webhook.
        Delivered = "delivered",
        /// The receiver has not accepted the webhook, or perhaps not.
        Lost = "lost",
    }
);

impl WebhookState {
    /// Returns the state of this delivery.
    #[must_use]
    pub fn from_delivery(delivery: Option<&DeliveryRecord>) -> Self {
        match delivery.map(|delivery| delivery.attempt.map(|attempt| attempt.outcome)) {
            None => Self::None,
            Some(None) => Self::Waiting,
            Some(Some(DeliveryOutcome::Delivered)) => Self::Delivered,
            Some(Some(_)) => Self::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClientId;

    #[test]
    fn a_subject_survives_its_bytes_and_has_a_partition() {
        let partition = ClientId::generate().partition();
        let flow = FlowId::generate(partition, 3);
        assert_eq!(Subject::Flow { flow, webhook: DedupDigest([7; 16]) }.to_string(), flow.to_string());
        assert_eq!((DeliveryId(7).to_string(), DedupDigest([0x1f; 16]).to_string()), ("7".into(), "1f".repeat(16)));
        for subject in [TxnId::generate(partition, 3).into(), Subject::Flow { flow, webhook: DedupDigest([7; 16]) }] {
            assert_eq!((Subject::from_bytes(&subject.to_bytes()), subject.partition()), (Some(subject), partition));
        }
        for length in [0, 15, 17, 31, 33] {
            assert_eq!(Subject::from_bytes(&vec![1; length]), None, "{length}");
        }
    }
}
