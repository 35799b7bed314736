//! Responses stored under idempotency keys, in the batch that executes the request, and leases for placing orders.

use std::time::Duration;

use crate::engine::{Applied, Batch, Guard, Op, Operand, Record};
use crate::idempotency::{IdempotentAnswer, OrderLease};
use crate::records::idempotency::{key_of_idempotency, key_of_order_lease};
use crate::vault::Sealed;

/// Builds the operations that store the response to a request; `subject` is the id of the created object.
pub(crate) fn store_answer(response: &IdempotentAnswer, subject: &[u8]) -> [Op; 2] {
    let key = key_of_idempotency(&response.scope);
    let fields = vec![
        ("request", Operand::from(&response.request[..])),
        ("answer", response.answer.as_bytes().into()),
        ("until", response.until.into()),
        ("subject", subject.into()),
    ];
    [Op::Put(key.clone(), fields), Op::ExpireAt(key, response.until.into())]
}

/// Returns the response in the record of a used idempotency key; `None` if the key was used with another body than the
/// one with the digest `request`.
#[must_use]
pub(crate) fn replayed_answer(request: Option<[u8; 32]>, record: Option<Record>) -> Option<Sealed> {
    let record = record?;
    let is_same_request = request.is_some_and(|request| record.bytes("request") == request);
    Sealed::from_bytes(record.bytes("answer").to_vec()).filter(|_| is_same_request)
}

/// Builds two batches that take the lease for an order. The first takes a free lease. The second extends the lease of
/// this holder.
#[must_use]
pub(crate) fn take_lease(lease: &OrderLease, duration: Duration) -> [Batch; 2] {
    let (key, holder) = (key_of_order_lease(&lease.scope), lease.holder.as_bytes());
    let expiry = Op::ExpireAt(key.clone(), Operand::after(duration));
    [
        Batch::new(
            vec![Guard::Absent(key.clone())],
            vec![Op::Put(key.clone(), vec![("holder", holder[..].into())]), expiry.clone()],
        ),
        Batch::new(vec![Guard::Equal(key, "holder", holder[..].into())], vec![expiry]),
    ]
}

/// Returns true if a batch of [`take_lease`] was applied. The second also succeeds after the first.
#[must_use]
pub(crate) fn has_lease(applied: &[Applied]) -> bool {
    applied.iter().any(|applied| matches!(applied, Applied::Done { .. }))
}

/// Builds the batch that releases a lease, if this holder still has it.
#[must_use]
pub(crate) fn end_lease(lease: &OrderLease) -> Batch {
    let key = key_of_order_lease(&lease.scope);
    Batch::even_when_full(
        vec![Guard::Equal(key.clone(), "holder", lease.holder.as_bytes()[..].into())],
        vec![Op::Remove(key)],
    )
}
