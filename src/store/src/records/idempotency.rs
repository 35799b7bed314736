//! The response stored for an `Idempotency-Key`, and the lease for placing its order.

use super::{in_partition, table};
use crate::engine::Key;
use crate::idempotency::IdempotencyScope;

table! {
    /// The first response to a request, while it is replayed. `subject` is the id of the created object.
    IDEMPOTENCY = "idempotency", Record Ends {
        request: Bytes,
        answer: Sealed(Id),
        until: Integer,
        subject: Bytes,
    } always {
        Needed(&["request", "answer", "until", "subject"]),
        Sized("request", 32, 32),
        Sized("subject", 12, 16),
        Fixed(&["request", "until", "subject"]),
        New,
        Home(Home::Partition(32)),
    }
}

table! {
    /// The request that may place the order of a key.
    ORDER_LEASE = "order_lease", Record Ends {
        holder: Bytes,
    } always {
        Needed(&["holder"]),
        Sized("holder", 16, 16),
        Fixed(&["holder"]),
        New,
        Home(Home::Partition(32)),
    }
}

/// Returns the key of the record of a key.
#[must_use]
pub(crate) fn idempotency(scope: &IdempotencyScope) -> Key {
    in_partition(&IDEMPOTENCY, scope.partition, scope.digest.to_vec())
}

/// Returns the key of the lease on the order of a key.
#[must_use]
pub(crate) fn order_lease(scope: &IdempotencyScope) -> Key {
    in_partition(&ORDER_LEASE, scope.partition, scope.digest.to_vec())
}
