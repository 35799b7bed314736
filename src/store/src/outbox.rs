//! The outbox: deliveries until their one attempt has ended.

use sakshi_domain::delivery::{DeliveryOutcome, FailureReason, Receiver};
use sakshi_domain::time::Timestamp;

/// The deliveries that are pending or in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of deliveries.
    pub deliveries: u64,
    /// Time at which the oldest of them was queued.
    pub oldest: Option<Timestamp>,
}

/// The destination of a delivery that is being queued. Without an own `address`, the delivery goes to the URL in the
/// terms of its transaction.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) receiver: Receiver,
    /// The sealed URL, copied from the event or the flow.
    pub(crate) address: Option<Vec<u8>>,
}

/// Counts delivery attempts with an unknown outcome in the metrics.
pub(crate) fn count_unknown(attempts: u64) {
    metrics::counter!("sakshi_webhook_attempts_total", "outcome" => DeliveryOutcome::Unknown.as_str())
        .increment(attempts);
    metrics::counter!("sakshi_webhook_failures_total", "reason" => FailureReason::Unknown.as_str()).increment(attempts);
}
