//! The answer that is kept for an `Idempotency-Key`.

use super::table;
use crate::engine::Key;
use crate::idempotency::IdempotencyScope;

table! {
    /// The first answer to a request, until it is replayed no more.
    IDEMPOTENCY = "idempotency", Expiring {
        request: Bytes,
        answer: Bytes,
        until: Integer,
        subject: Bytes,
    }
}

/// The record of a key.
#[must_use]
pub(crate) fn idempotency(scope: &IdempotencyScope) -> Key {
    Key { table: &IDEMPOTENCY, partition: scope.partition, id: scope.digest.to_vec() }
}
