//! Deliveries. A delivery is queued together with its subject, for the node that accepted the subject. That node claims
//! it before the only attempt, and settles it afterwards, which removes it from the outbox. Only a claim in the record
//! permits the attempt, so a node that was wrongly declared dead repeats no attempt of another node.

use sakshi_domain::delivery::{
    Attempt, AttemptFailure, AttemptPart, DeliveryId, DeliveryOutcome, DeliveryRecord, QueuedDelivery, Subject,
};
use sakshi_domain::ids::Partition;

use crate::engine::{Applied, Batch, CallId, Guard, Key, Op, Operand, Place, Record};
use crate::error::StoreError;
use crate::outbox::Target;
use crate::records::delivery::{encode_member, key_of_delivery, key_of_holders, key_of_last_numbers, key_of_outbox};
use crate::redis::NodeId;

/// Bits of an id for the partition. The higher bits are the number of the delivery, so ids are ordered by time.
const PARTITION_BITS: u32 = 6;

/// The delivery fields of a record.
pub(crate) const FIELDS: &[&str] =
    &["delivery", "origin", "queued_at", "claimed_at", "attempt", "reason", "part", "status", "duration_ms"];

/// Returns the id of the delivery with this number.
pub(crate) fn id_of_number(partition: Partition, number: i64) -> DeliveryId {
    DeliveryId(number.unsigned_abs() << PARTITION_BITS | u64::from(partition.number()))
}

pub(crate) const fn number_of_id(id: DeliveryId) -> i64 {
    (id.0 >> PARTITION_BITS).cast_signed()
}

/// Returns the highest number in a partition whose delivery id is not above `id`, which may be of another partition.
pub(crate) fn number_not_after(partition: Partition, id: DeliveryId) -> i64 {
    let partition_of_id = id.0 & ((1 << PARTITION_BITS) - 1);
    number_of_id(id) - i64::from(u64::from(partition.number()) > partition_of_id)
}

/// Adds the operations that queue a delivery and returns its fields. The first operation numbers the delivery. `member`
/// is its encoding by [`encode_member`](crate::records::delivery::encode_member).
pub(crate) fn queue(
    ops: &mut Vec<Op>,
    partition: Partition,
    member: Vec<u8>,
    target: Target,
    node: NodeId,
) -> Vec<(&'static str, Operand)> {
    let (number, name) = (Operand::Result(ops.len()), node.to_string());
    ops.extend([
        Op::DrawNumber(key_of_last_numbers(partition), "last"),
        Op::Index(key_of_outbox(partition, node), member, number.clone()),
        Op::Index(key_of_holders(partition), name.clone().into_bytes(), 0.into()),
    ]);
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("delivery", number),
        ("holder", name.into()),
        ("queued_at", Operand::NOW),
        ("origin", target.receiver.origin.into()),
    ];
    fields.extend(target.address.map(|address| ("address", address.into())));
    fields
}

/// Builds the batch by which a call claims the only attempt of a delivery.
pub(crate) fn claim(subject: &Subject, id: DeliveryId, node: NodeId, call: CallId) -> Batch {
    let key = key_of_delivery(subject);
    let ops = vec![Op::Set(key.clone(), vec![("claimed_at", Operand::NOW), ("claim", call[..].into())])];
    Batch::even_when_full(unclaimed_guards(&key, id, node), ops)
}

/// Returns the guards that require an unclaimed delivery of this node.
fn unclaimed_guards(key: &Key, id: DeliveryId, node: NodeId) -> Vec<Guard> {
    vec![
        Guard::Equal(key.clone(), "delivery", number_of_id(id).into()),
        Guard::Equal(key.clone(), "holder", node.to_string().into()),
        Guard::Unset(key.clone(), "claimed_at"),
    ]
}

/// Returns true if the call holds the claim. After a lost response the stored record decides, whatever its later state.
#[must_use]
pub(crate) fn has_claim(call: CallId, applied: &Applied) -> bool {
    match applied {
        Applied::Done { .. } => true,
        Applied::Refused { record, .. } => record.as_ref().is_some_and(|record| record.bytes("claim") == call),
    }
}

/// Builds two batches that record the outcome of an attempt. The first is applied to an attempt without an outcome, the
/// second to an abandoned attempt.
pub(crate) fn settle(subject: &Subject, id: DeliveryId, node: NodeId, attempt: Attempt) -> [Batch; 2] {
    let key = key_of_delivery(subject);
    [
        Guard::Unset(key.clone(), "attempt"),
        Guard::Equal(key.clone(), "attempt", DeliveryOutcome::Unknown.as_str().into()),
    ]
    .map(|guard| end_attempt(subject, &key, id, node, attempt, vec![guard]))
}

/// Builds the batch that marks the unfinished attempt of a node as unknown, because the node no longer makes it.
pub(crate) fn abandon(subject: &Subject, id: DeliveryId, node: NodeId, call: CallId) -> Batch {
    let key = key_of_delivery(subject);
    let guards =
        vec![Guard::Unset(key.clone(), "attempt"), Guard::Equal(key.clone(), "holder", node.to_string().into())];
    end_attempt(subject, &key, id, node, Attempt::unknown(), guards).with_call_id(call, key)
}

/// Builds the batch that records the outcome of a begun attempt and removes the delivery from the outbox.
fn end_attempt(
    subject: &Subject,
    key: &Key,
    id: DeliveryId,
    node: NodeId,
    attempt: Attempt,
    further_guards: Vec<Guard>,
) -> Batch {
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
        Guard::Equal(key.clone(), "delivery", number_of_id(id).into()),
        // An attempt that was not begun cannot have ended.
        Guard::has_value(key.clone(), "claimed_at"),
    ];
    guards.extend(further_guards);
    let ops = vec![
        Op::Set(key.clone(), fields),
        Op::ExpireAt(key.clone(), Operand::Field("until")),
        dequeue(subject.partition(), node, number_of_id(id)),
    ];
    Batch::even_when_full(guards, ops)
}

/// Builds the operation that removes a delivery from the outbox of a node.
fn dequeue(partition: Partition, node: NodeId, number: i64) -> Op {
    // The member is found by its score, which is the number of the delivery.
    Op::Sweep(key_of_outbox(partition, node), number - 1, number.into())
}

/// Builds the batch that removes a delivery from the outbox of a node if its record is missing.
pub(crate) fn forget_missing(subject: &Subject, id: DeliveryId, node: NodeId) -> Batch {
    Batch::even_when_full(
        vec![Guard::Absent(key_of_delivery(subject))],
        vec![dequeue(subject.partition(), node, number_of_id(id))],
    )
}

/// Builds three batches for a delivery of a dead node. The first moves an unclaimed delivery to this node, the second
/// abandons a begun attempt, and the third removes the delivery from the dead node's outbox.
pub(crate) fn take_over(delivery: &QueuedDelivery, dead: NodeId, node: NodeId, call: CallId) -> [Batch; 3] {
    let QueuedDelivery { id, subject, receiver, app, stored_bytes } = delivery;
    let (partition, key, name) = (subject.partition(), key_of_delivery(subject), node.to_string());
    let member = encode_member(subject, receiver, app.as_ref(), *stored_bytes);
    let ops = vec![
        Op::Set(key.clone(), vec![("holder", name.clone().into())]),
        Op::Index(key_of_outbox(partition, node), member, number_of_id(*id).into()),
        Op::Index(key_of_holders(partition), name.into_bytes(), 0.into()),
    ];
    let handover = Batch::even_when_full(unclaimed_guards(&key, *id, dead), ops);
    [
        handover,
        abandon(subject, *id, dead, call),
        Batch::even_when_full(vec![], vec![dequeue(partition, dead, number_of_id(*id))]),
    ]
}

/// Builds the batch that removes a node without deliveries from the list of holders.
pub(crate) fn forget_holder(partition: Partition, node: NodeId) -> Batch {
    Batch::even_when_full(
        vec![Guard::Fewer(key_of_outbox(partition, node), 1)],
        vec![Op::Unindex(key_of_holders(partition), node.to_string().into_bytes())],
    )
}

/// Builds the operations that remove the delivery of a record from the outbox, for the removal of that record.
pub(crate) fn dequeue_ops(key: &Key, record: &Record) -> Vec<Op> {
    let (Place::Partition(partition), true) = (key.place, record.has("delivery")) else { return vec![] };
    let (number, holder) = (record.integer("delivery"), NodeId::from_bytes(record.text("holder").as_bytes()));
    holder.map(|node| dequeue(partition, node, number)).into_iter().collect()
}

/// Decodes the delivery in a record; `None` if none was queued.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_delivery(partition: Partition, record: &Record) -> Result<Option<DeliveryRecord>, StoreError> {
    let Some(queued_at) = record.time("queued_at") else { return Ok(None) };
    let attempt = record.has("attempt").then(|| decode_attempt(record)).transpose()?;
    let id = id_of_number(partition, record.integer("delivery"));
    Ok(Some(DeliveryRecord {
        id,
        origin: record.text("origin").to_owned(),
        queued_at,
        claimed_at: record.time("claimed_at"),
        attempt,
    }))
}

fn decode_attempt(record: &Record) -> Result<Attempt, StoreError> {
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
