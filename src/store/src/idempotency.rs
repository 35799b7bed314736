//! Idempotency keys: the answers kept under them, and leases that let one request at a time place
//! the order of a key.

use std::future::ready;
use std::time::Duration;

use sakshi_domain::ids::Partition;
use sakshi_domain::time::Timestamp;
use uuid::Uuid;

use crate::error::StoreFuture;
use crate::vault::Sealed;

/// Idempotency keys.
pub trait Idempotency {
    /// The answer kept under an idempotency key, while it is replayed.
    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>>;

    /// Lets one request, on any node, place the order of its idempotency key until the lease ends;
    /// `false` while another request holds the lease. Repeatable by its holder.
    ///
    /// A store of one node has no other node to exclude.
    fn take_order_lease(&self, _lease: OrderLease, _lasting: Duration) -> StoreFuture<bool> {
        Box::pin(ready(Ok(true)))
    }

    /// Gives a lease back before its end, if this holder still has it.
    fn end_order_lease(&self, _lease: OrderLease) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }
}

/// An idempotency key of an app on one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyScope {
    /// The partition of the client.
    pub partition: Partition,
    /// SHA-256 over app, operation and key.
    pub digest: [u8; 32],
}

/// A lease on placing the order of an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLease {
    /// The key.
    pub scope: IdempotencyScope,
    /// The request that holds the lease.
    pub holder: Uuid,
}

/// The first answer to a request with an `Idempotency-Key`.
#[derive(Clone, Debug, PartialEq)]
pub struct IdempotentAnswer {
    /// The key.
    pub scope: IdempotencyScope,
    /// SHA-256 of the request's body: the same key with another body is refused.
    pub request: [u8; 32],
    /// The sealed answer.
    pub answer: Sealed,
    /// Until when it is replayed.
    pub until: Timestamp,
}

/// The outcome of creating an event or a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum CreateOutcome {
    /// Created, now or by an earlier call under the same id.
    Created,
    /// The idempotency key was used before with this body; nothing was written.
    Replayed(Sealed),
    /// The idempotency key was used before with another body; nothing was written.
    KeyReused,
    /// There is no such client.
    ClientNotFound,
    /// The client may have no more of them; nothing was written.
    LimitReached,
}
