//! The response stored for an `Idempotency-Key`, and leases: for placing the order of a key, and for a step that has no
//! record of its own to recognise its repetition by.

use sakshi_domain::ids::Partition;

use super::{key_in_partition, table};
use crate::engine::{CallId, Key};
use crate::idempotency::IdempotencyScope;

table! {
    /// The first successful response to a request, while retries get it. `subject` is the id of the created object.
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
        Key(KeyRule::Partition { id_bytes: 32 }),
    }
}

table! {
    /// The only request that may place the order of an idempotency key, or the only call that may take a step.
    ORDER_LEASE = "order_lease", Record Ends {
        holder: Bytes,
    } always {
        Needed(&["holder"]),
        Sized("holder", 16, 16),
        Fixed(&["holder"]),
        New,
        Key(KeyRule::Partition { id_bytes: 32 }),
    }
}

/// Returns the key of the response stored for an `Idempotency-Key`.
#[must_use]
pub(crate) fn key_of_idempotency(scope: &IdempotencyScope) -> Key {
    key_in_partition(&IDEMPOTENCY, scope.partition, scope.digest.to_vec())
}

/// Returns the key of the lease for placing the order of an `Idempotency-Key`.
#[must_use]
pub(crate) fn key_of_order_lease(scope: &IdempotencyScope) -> Key {
    key_in_partition(&ORDER_LEASE, scope.partition, scope.digest.to_vec())
}

/// Returns the key of the lease of a call, which its first application takes.
#[must_use]
pub(crate) fn key_of_call_lease(partition: Partition, call: CallId) -> Key {
    key_in_partition(&ORDER_LEASE, partition, [call, call].concat())
}
