//! Deliveries: each is queued with what it reports, for the node that accepted that; claimed before its one attempt; and settled after
//! it. The claim in the record is the only permission to make the attempt, so a node that was declared dead too early makes none that
//! another has begun.

use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, DeliveryRecord, Subject};
use sakshi_domain::ids::Partition;

use crate::engine::{Applied, Batch, CallId, Guard, Key, Op, Operand, Place, Record};
use crate::error::StoreError;
use crate::outbox::Target;
use crate::records::delivery::{flight, holders, numbers, of_subject, outbox};
use crate::redis::NodeId;

/// Bits of an id that say the partition. Those before are the number of the delivery, so that ids are in the order of time.
const PARTITION_BITS: u32 = 6;

/// The fields of a record that are its delivery.
pub(crate) const FIELDS: &[&str] = &["delivery", "origin", "queued_at", "claimed_at", "attempt", "status", "duration_ms"];

/// The delivery with this number.
pub(crate) fn id(partition: Partition, number: i64) -> DeliveryId {
    DeliveryId(number.unsigned_abs() << PARTITION_BITS | u64::from(partition.number()))
}

/// The number of a delivery.
pub(crate) const fn number(id: DeliveryId) -> i64 {
    (id.0 >> PARTITION_BITS).cast_signed()
}

/// The last number of a partition whose delivery is not after one of any partition.
pub(crate) fn number_not_after(partition: Partition, id: DeliveryId) -> i64 {
    let of_id = id.0 & ((1 << PARTITION_BITS) - 1);
    number(id) - i64::from(u64::from(partition.number()) > of_id)
}

/// Adds the operations that queue a delivery, of which the first results in its number; and returns its fields. The `member` of the
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
    let mut fields: Vec<(&'static str, Operand)> =
        vec![("delivery", number), ("holder", name.into()), ("queued_at", Operand::Now(0)), ("origin", target.origin.into())];
    fields.extend(target.address.map(|address| ("address", address.into())));
    fields
}

/// The batch with which a call takes the permission to make an attempt.
pub(crate) fn claim(subject: &Subject, id: DeliveryId, node: NodeId, call: CallId) -> Batch {
    let (partition, record, number) = (subject.partition(), of_subject(subject), number(id));
    let guards = vec![
        Guard::Equal(record.clone(), "delivery", number.into()),
        Guard::Equal(record.clone(), "holder", node.to_string().into()),
        Guard::Unset(record.clone(), "claimed_at"),
    ];
    let ops = vec![
        Op::Set(record, vec![("claimed_at", Operand::Now(0)), ("claim", call[..].into())]),
        Op::Sweep(outbox(partition, node), number - 1, number.into()),
        Op::Index(flight(partition, node), subject.to_bytes(), number.into()),
    ];
    Batch::on_full(guards, ops)
}

/// Returns true if the call has the permission. When its first answer was lost, the record tells, whatever has become of it since.
#[must_use]
pub(crate) fn has_claim(call: CallId, applied: &Applied) -> bool {
    match applied {
        Applied::Done { .. } => true,
        Applied::Refused { seen, .. } => seen.as_ref().is_some_and(|record| record.bytes("claim") == call),
    }
}

/// The batches that record an attempt, of which one is applied at most: the first for an attempt without a record, the second for one
/// that was given up.
pub(crate) fn settle(subject: &Subject, id: DeliveryId, node: NodeId, attempt: Attempt) -> [Batch; 2] {
    let record = of_subject(subject);
    [Guard::Unset(record.clone(), "attempt"), Guard::Equal(record.clone(), "attempt", DeliveryOutcome::Unknown.as_str().into())]
        .map(|guard| end(subject, &record, number(id), node, attempt, guard))
}

/// The batch that gives an attempt up which a node has begun, and one that forgets it if it has ended.
pub(crate) fn abandon(subject: &Subject, number: i64, node: NodeId, call: CallId) -> [Batch; 2] {
    let record = of_subject(subject);
    let attempt = Attempt { outcome: DeliveryOutcome::Unknown, status: None, duration_ms: 0 };
    let guard = Guard::Unset(record.clone(), "attempt");
    [end(subject, &record, number, node, attempt, guard).called(call, record), forget(flight(subject.partition(), node), number)]
}

fn end(subject: &Subject, record: &Key, number: i64, node: NodeId, attempt: Attempt, guard: Guard) -> Batch {
    let Attempt { outcome, status, duration_ms } = attempt;
    let fields = vec![
        ("attempt", outcome.as_str().into()),
        ("status", status.map_or(Operand::Nothing, |status| i64::from(status).into())),
        ("duration_ms", i64::from(duration_ms).into()),
    ];
    let guards = vec![
        Guard::Equal(record.clone(), "delivery", number.into()),
        // One that nobody has begun cannot have ended.
        Guard::AtLeast(record.clone(), "claimed_at", i64::MIN),
        guard,
    ];
    let ops = vec![
        Op::Set(record.clone(), fields),
        Op::ExpireAt(record.clone(), Operand::Field("until")),
        Op::Sweep(flight(subject.partition(), node), number - 1, number.into()),
    ];
    Batch::on_full(guards, ops)
}

/// The batch that takes a delivery out of an index.
pub(crate) fn forget(index: Key, number: i64) -> Batch {
    Batch::on_full(vec![], vec![Op::Sweep(index, number - 1, number.into())])
}

/// The batch that takes a delivery out of the outbox of a node whose record is gone.
pub(crate) fn forget_gone(subject: &Subject, id: DeliveryId, node: NodeId) -> Batch {
    let number = number(id);
    Batch::on_full(vec![Guard::Absent(of_subject(subject))], vec![Op::Sweep(outbox(subject.partition(), node), number - 1, number.into())])
}

/// The batch that gives a delivery of a node that is dead to another, if it still waits there.
pub(crate) fn take_over(subject: &Subject, member: Vec<u8>, number: i64, dead: NodeId, node: NodeId) -> Batch {
    let (partition, record, name) = (subject.partition(), of_subject(subject), node.to_string());
    let guards = vec![
        Guard::Equal(record.clone(), "delivery", number.into()),
        Guard::Equal(record.clone(), "holder", dead.to_string().into()),
        Guard::Unset(record.clone(), "claimed_at"),
    ];
    let ops = vec![
        Op::Set(record, vec![("holder", name.clone().into())]),
        Op::Sweep(outbox(partition, dead), number - 1, number.into()),
        Op::Index(outbox(partition, node), member, number.into()),
        Op::Index(holders(partition), name.into_bytes(), 0.into()),
    ];
    Batch::on_full(guards, ops)
}

/// The batch that forgets a node without deliveries.
pub(crate) fn forget_holder(partition: Partition, node: NodeId) -> Batch {
    let guards = vec![Guard::Fewer(outbox(partition, node), 1), Guard::Fewer(flight(partition, node), 1)];
    Batch::on_full(guards, vec![Op::Unindex(holders(partition), node.to_string().into_bytes())])
}

/// The operations that take a delivery out of the indexes, for a record that is removed.
pub(crate) fn dropped(key: &Key, record: &Record) -> Vec<Op> {
    let (Place::Partition(partition), true) = (key.place, record.has("delivery")) else { return vec![] };
    let (number, holder) = (record.integer("delivery"), NodeId::from_bytes(record.text("holder").as_bytes()));
    let indexes = holder.map(|node| [outbox(partition, node), flight(partition, node)]);
    indexes.into_iter().flatten().map(|index| Op::Sweep(index, number - 1, number.into())).collect()
}

/// The delivery of a record; `None` when none was queued.
///
/// # Errors
/// It cannot be read.
pub(crate) fn delivery_of(partition: Partition, record: &Record) -> Result<Option<DeliveryRecord>, StoreError> {
    let unreadable = || StoreError::unreadable("a delivery");
    let Some(queued_at) = record.time("queued_at") else { return Ok(None) };
    let attempt = if record.has("attempt") {
        let status = record.has("status").then(|| u16::try_from(record.integer("status")).map_err(|_| unreadable()));
        let duration_ms = record.integer("duration_ms").try_into().map_err(|_| unreadable())?;
        Some(Attempt { outcome: record.text("attempt").parse().map_err(|_| unreadable())?, status: status.transpose()?, duration_ms })
    } else {
        None
    };
    let id = id(partition, record.integer("delivery"));
    Ok(Some(DeliveryRecord { id, origin: record.text("origin").to_owned(), queued_at, claimed_at: record.time("claimed_at"), attempt }))
}
