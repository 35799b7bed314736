//! The outbox: deliveries that wait for their one attempt.

use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, QueuedDelivery, Subject};

use crate::error::StoreFuture;

/// Deliveries.
pub trait Outbox {
    /// Deliveries that wait for their attempt by this node, in order, after a position; of one
    /// origin or of all.
    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>>;

    /// Takes the one permission to attempt a delivery; `false` when it was taken before.
    fn claim_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<bool>;

    /// Records the outcome of the attempt. Repeatable; the first record stands, but `unknown` gives
    /// way to the record of the node that made the attempt after all.
    fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> StoreFuture<()>;

    /// The delivery of a subject, for the operator.
    fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>>;

    /// Marks unfinished attempts as `unknown`: those that this node left behind when it was last
    /// stopped, and those of dead nodes. Returns how many.
    fn abandon_attempts(&self) -> StoreFuture<u64>;
}
