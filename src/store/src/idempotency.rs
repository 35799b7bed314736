//! Idempotency keys: the responses stored under them, and leases that let one request at a time place the order of a
//! key.

use sakshi_domain::ids::Partition;
use sakshi_domain::time::Timestamp;
use uuid::Uuid;

use crate::vault::Sealed;

/// An idempotency key of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyScope {
    /// The partition of the client.
    pub partition: Partition,
    /// SHA-256 over app and key.
    pub digest: [u8; 32],
}

/// A lease that lets one request at a time place the order (the request to an upstream) of an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLease {
    /// The key.
    pub scope: IdempotencyScope,
    /// The request that holds the lease.
    pub holder: Uuid,
}

/// The first response to a request with an `Idempotency-Key`.
#[derive(Clone, Debug, PartialEq)]
pub struct IdempotentAnswer {
    /// The key.
    pub scope: IdempotencyScope,
    /// SHA-256 over operation and body: the same key with another request is refused.
    pub request: [u8; 32],
    /// The sealed response.
    pub answer: Sealed,
    /// Time until which the response is replayed.
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
    /// No such client.
    ClientNotFound,
    /// The client has reached its limit; nothing was written.
    LimitReached,
}
