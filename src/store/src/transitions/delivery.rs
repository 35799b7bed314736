//! Deliveries: each is queued with its subject, for the node that accepted that; claimed before its one attempt; and
//! settled after it, when it leaves the outbox. The claim in the record is the only permission to make the attempt, so
//! a node that was declared dead too early makes none that another has begun.

use sakshi_domain::delivery::{
    Attempt, AttemptFailure, AttemptPart, DeliveryId, DeliveryOutcome, DeliveryRecord, QueuedDelivery, Subject,
};
use sakshi_domain::ids::Partition;

use crate::engine::{Applied, Batch, CallId, Guard, Key, Op, Operand, Place, Record};
use crate::error::StoreError;
use crate::outbox::Target;
use crate::records::delivery::{holders, member, numbers, of_subject, outbox};
use crate::redis::NodeId;

/// Number of bits of an id for the partition. The bits before are the number of the delivery, so that ids are in the
/// order of time.
const PARTITION_BITS: u32 = 6;

/// The delivery fields of a record.
pub(crate) const FIELDS: &[&str] =
    &["delivery", "origin", "queued_at", "claimed_at", "attempt", "reason", "part", "status", "duration_ms"];

/// Returns the delivery with this number.
pub(crate) fn id(partition: Partition, number: i64) -> DeliveryId {
    DeliveryId(number.unsigned_abs() << PARTITION_BITS | u64::from(partition.number()))
}

/// Returns the number of a delivery.
pub(crate) const fn number(id: DeliveryId) -> i64 {
    (id.0 >> PARTITION_BITS).cast_signed()
}

/// Returns the last number of a partition whose delivery is not after one of any partition.
pub(crate) fn number_not_after(partition: Partition, id: DeliveryId) -> i64 {
    let of_id = id.0 & ((1 << PARTITION_BITS) - 1);
    number(id) - i64::from(u64::from(partition.number()) > of_id)
}

/// Adds the operations that queue a delivery; the first results in its number. Returns its fields. The `member` of the
/// index is its [`member`](crate::records::delivery::member).
pub(crate) fn queue(
    ops: &mut Vec<Op>,
    partition: Partition,
    member: Vec<u8>,
    target: Target,
    node: NodeId,
) -> Vec<(&'static str, Operand)> {
    let (number, name) = (Operand::Result(ops.len()), node.to_string());
    ops.extend([
        Op::Number(numbers(partition), "last"),
        Op::Index(outbox(partition, node), member, number.clone()),
        Op::Index(holders(partition), name.clone().into_bytes(), 0.into()),
    ]);
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("delivery", number),
        ("holder", name.into()),
        ("queued_at", Operand::Now(0)),
        ("origin", target.receiver.origin.into()),
    ];
    fields.extend(target.address.map(|address| ("address", address.into())));
    fields
}

/// Returns the batch with which a call claims an attempt.
pub(crate) fn claim(subject: &Subject, id: DeliveryId, node: NodeId, call: CallId) -> Batch {
    let record = of_subject(subject);
    let ops = vec![Op::Set(record.clone(), vec![("claimed_at", Operand::Now(0)), ("claim", call[..].into())])];
    Batch::on_full(waits(&record, id, node), ops)
}

/// Returns the guards that a delivery waits for its attempt by this node.
fn waits(record: &Key, id: DeliveryId, node: NodeId) -> Vec<Guard> {
    vec![
        Guard::Equal(record.clone(), "delivery", number(id).into()),
        Guard::Equal(record.clone(), "holder", node.to_string().into()),
        Guard::Unset(record.clone(), "claimed_at"),
    ]
}

/// Returns true if the call has the permission. After a lost response the record decides, whatever its later state.
#[must_use]
pub(crate) fn has_claim(call: CallId, applied: &Applied) -> bool {
    match applied {
        Applied::Done { .. } => true,
        Applied::Refused { seen, .. } => seen.as_ref().is_some_and(|record| record.bytes("claim") == call),
    }
}

/// Returns the batches that record an attempt. At most one is applied: the first for an attempt without a record, the
/// second for one that was abandoned.
pub(crate) fn settle(subject: &Subject, id: DeliveryId, node: NodeId, attempt: Attempt) -> [Batch; 2] {
    let record = of_subject(subject);
    [
        Guard::Unset(record.clone(), "attempt"),
        Guard::Equal(record.clone(), "attempt", DeliveryOutcome::Unknown.as_str().into()),
    ]
    .map(|guard| end(subject, &record, id, node, attempt, vec![guard]))
}

/// Returns the batch that abandons an attempt which a node has begun.
pub(crate) fn abandon(subject: &Subject, id: DeliveryId, node: NodeId, call: CallId) -> Batch {
    let record = of_subject(subject);
    let guards =
        vec![Guard::Unset(record.clone(), "attempt"), Guard::Equal(record.clone(), "holder", node.to_string().into())];
    end(subject, &record, id, node, Attempt::unknown(), guards).called(call, record)
}

fn end(subject: &Subject, record: &Key, id: DeliveryId, node: NodeId, attempt: Attempt, further: Vec<Guard>) -> Batch {
    let Attempt { outcome, failure, status, duration_ms } = attempt;
    let word = |word: Option<&'static str>| word.map_or(Operand::Nothing, Operand::from);
    let fields = vec![
        ("attempt", outcome.as_str().into()),
        ("reason", word(failure.map(|failure| failure.reason.as_str()))),
        ("part", word(failure.and_then(|failure| failure.part).map(AttemptPart::as_str))),
        ("status", status.map_or(Operand::Nothing, |status| i64::from(status).into())),
        ("duration_ms", i64::from(duration_ms).into()),
    ];
    let mut guards = vec![
        Guard::Equal(record.clone(), "delivery", number(id).into()),
        // An attempt that was not begun cannot have ended.
        Guard::AtLeast(record.clone(), "claimed_at", i64::MIN),
    ];
    guards.extend(further);
    let ops = vec![
        Op::Set(record.clone(), fields),
        Op::ExpireAt(record.clone(), Operand::Field("until")),
        leave(subject.partition(), node, number(id)),
    ];
    Batch::on_full(guards, ops)
}

/// Returns the operation that removes a delivery from the outbox of a node.
fn leave(partition: Partition, node: NodeId, number: i64) -> Op {
    Op::Sweep(outbox(partition, node), number - 1, number.into())
}

/// Returns the batch that removes a delivery from the outbox of a node if its record is missing.
pub(crate) fn forget(subject: &Subject, id: DeliveryId, node: NodeId) -> Batch {
    Batch::on_full(vec![Guard::Absent(of_subject(subject))], vec![leave(subject.partition(), node, number(id))])
}

/// Returns the batches for a delivery of a dead node, in this order: the first gives it to another node if it waits,
/// the second abandons its attempt if that has begun, and the last removes it from the outbox.
pub(crate) fn take_over(delivery: &QueuedDelivery, dead: NodeId, node: NodeId, call: CallId) -> [Batch; 3] {
    let QueuedDelivery { id, subject, receiver, app, stored_bytes } = delivery;
    let (partition, record, name) = (subject.partition(), of_subject(subject), node.to_string());
    let member = member(subject, receiver, app.as_ref(), *stored_bytes);
    let ops = vec![
        Op::Set(record.clone(), vec![("holder", name.clone().into())]),
        Op::Index(outbox(partition, node), member, number(*id).into()),
        Op::Index(holders(partition), name.into_bytes(), 0.into()),
    ];
    let given = Batch::on_full(waits(&record, *id, dead), ops);
    [given, abandon(subject, *id, dead, call), Batch::on_full(vec![], vec![leave(partition, dead, number(*id))])]
}

/// Returns the batch that forgets a node without deliveries.
pub(crate) fn forget_holder(partition: Partition, node: NodeId) -> Batch {
    Batch::on_full(
        vec![Guard::Fewer(outbox(partition, node), 1)],
        vec![Op::Unindex(holders(partition), node.to_string().into_bytes())],
    )
}

/// Returns the operations that remove a delivery from the outbox, for a record that is removed.
pub(crate) fn dropped(key: &Key, record: &Record) -> Vec<Op> {
    let (Place::Partition(partition), true) = (key.place, record.has("delivery")) else { return vec![] };
    let (number, holder) = (record.integer("delivery"), NodeId::from_bytes(record.text("holder").as_bytes()));
    holder.map(|node| leave(partition, node, number)).into_iter().collect()
}

/// Returns the delivery of a record; `None` when none was queued.
///
/// # Errors
/// It cannot be read.
pub(crate) fn delivery_of(partition: Partition, record: &Record) -> Result<Option<DeliveryRecord>, StoreError> {
    let Some(queued_at) = record.time("queued_at") else { return Ok(None) };
    let attempt = record.has("attempt").then(|| attempt_of(record)).transpose()?;
    let id = id(partition, record.integer("delivery"));
    Ok(Some(DeliveryRecord {
        id,
        origin: record.text("origin").to_owned(),
        queued_at,
        claimed_at: record.time("claimed_at"),
        attempt,
    }))
}

fn attempt_of(record: &Record) -> Result<Attempt, StoreError> {
    let unreadable = || StoreError::unreadable("a delivery");
    let part = record.has("part").then(|| record.text("part").parse().map_err(|_| unreadable())).transpose()?;
    let reason = record.has("reason").then(|| record.text("reason").parse().map_err(|_| unreadable())).transpose()?;
    let status =
        record.has("status").then(|| u16::try_from(record.integer("status")).map_err(|_| unreadable())).transpose()?;
    Ok(Attempt {
        outcome: record.text("attempt").parse().map_err(|_| unreadable())?,
        failure: reason.map(|reason| AttemptFailure { reason, part }),
        status,
        duration_ms: record.integer("duration_ms").try_into().map_err(|_| unreadable())?,
    })
}
