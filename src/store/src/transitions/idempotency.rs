//! The first response to a request is stored under its idempotency key, in the batch that executes the request.

use std::time::Duration;

use crate::engine::{Applied, Batch, Guard, Op, Operand, Record};
use crate::idempotency::{IdempotentAnswer, OrderLease};
use crate::records::idempotency::{idempotency, order_lease};
use crate::vault::Sealed;

/// Returns the operations that store a response; `subject` is the id of the created object.
pub(crate) fn keep(kept: &IdempotentAnswer, subject: &[u8]) -> [Op; 2] {
    let key = idempotency(&kept.scope);
    let fields = vec![
        ("request", Operand::from(&kept.request[..])),
        ("answer", kept.answer.as_bytes().into()),
        ("until", kept.until.into()),
        ("subject", subject.into()),
    ];
    [Op::Put(key.clone(), fields), Op::ExpireAt(key, kept.until.into())]
}

/// Returns the response stored under a key that was used before; `None` when it was used with another body.
#[must_use]
pub(crate) fn replayed(request: Option<[u8; 32]>, seen: Option<Record>) -> Option<Sealed> {
    let kept = seen?;
    let same = request.is_some_and(|request| kept.bytes("request") == request);
    Sealed::from_bytes(kept.bytes("answer").to_vec()).filter(|_| same)
}

/// Returns the batches that take the lease on an order. At most one is applied: the first for a free one, the second
/// for one that the holder has already.
#[must_use]
pub(crate) fn take_lease(lease: &OrderLease, lasting: Duration) -> [Batch; 2] {
    let (key, holder) = (order_lease(&lease.scope), lease.holder.as_bytes());
    let ends = Op::ExpireAt(key.clone(), Operand::after(lasting));
    [
        Batch::new(
            vec![Guard::Absent(key.clone())],
            vec![Op::Put(key.clone(), vec![("holder", holder[..].into())]), ends.clone()],
        ),
        Batch::new(vec![Guard::Equal(key, "holder", holder[..].into())], vec![ends]),
    ]
}

/// Returns true if one of the batches of [`take_lease`] was applied. The second is applied as well when the first was.
#[must_use]
pub(crate) fn has_lease(applied: &[Applied]) -> bool {
    applied.iter().any(|applied| matches!(applied, Applied::Done { .. }))
}

/// Returns the batch that releases a lease, if this holder still has it.
#[must_use]
pub(crate) fn end_lease(lease: &OrderLease) -> Batch {
    let key = order_lease(&lease.scope);
    Batch::on_full(vec![Guard::Equal(key.clone(), "holder", lease.holder.as_bytes()[..].into())], vec![Op::Remove(key)])
}
