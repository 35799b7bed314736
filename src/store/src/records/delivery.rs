//! Deliveries: each is part of the record of its subject, a transaction or a report. Indexes list the deliveries of
//! each node.
//!
//! A queued delivery has its number (`delivery`), the node that attempts it (`holder`), `queued_at`, `origin` and, if
//! the URL was copied, the sealed `address`. A begun attempt adds `claimed_at` and `claim`, the call that claimed it.
//! A finished attempt adds `attempt`, `status`, `duration_ms` and, for a failure, `reason` and `part`. The record stays
//! until the attempt has finished.

use sakshi_domain::delivery::{
    AttemptPart, DeliveryId, DeliveryOutcome, FailureReason, QueuedDelivery, Receiver, Subject,
};
use sakshi_domain::ids::{AppId, Partition};

use super::{flow, key_in_partition, table, transaction};
use crate::engine::Key;
use crate::invariants::{Need, Rule};
use crate::redis::NodeId;

/// Invariants of the delivery in the record of its subject.
pub(super) const RULES: &[Rule] = {
    use Rule::{Guarded, Once, Sized, With, Within, Word};
    &[
        With("delivery", &["holder", "queued_at", "origin"]),
        With("holder", &["delivery"]),
        With("queued_at", &["delivery"]),
        With("claimed_at", &["delivery", "claim"]),
        With("claim", &["claimed_at"]),
        With("attempt", &["claimed_at", "duration_ms"]),
        With("reason", &["attempt"]),
        With("part", &["reason"]),
        With("status", &["attempt"]),
        With("duration_ms", &["attempt"]),
        With("address", &["delivery", "origin"]),
        Within("delivery", 1, i64::MAX),
        Sized("holder", 32, 32),
        Sized("claim", 16, 16),
        Word("attempt", |word| word.parse::<DeliveryOutcome>().is_ok()),
        Word("reason", |word| word.parse::<FailureReason>().is_ok()),
        Word("part", |word| word.parse::<AttemptPart>().is_ok()),
        Within("status", 100, 999),
        Within("duration_ms", 0, u32::MAX as i64),
        Once(&["claimed_at"]),
        Guarded("claimed_at", Need::Unset("claimed_at")),
        Guarded("attempt", Need::AtLeast("claimed_at")),
    ]
};

table! {
    /// The last delivery number (`last`) and the last event number (`event`) of a partition.
    NUMBERS = "numbers", Record Stays {
        last: Integer,
        event: Integer,
    } always {
        Within("last", 1, i64::MAX),
        Within("event", 1, i64::MAX),
        Rises(&["last", "event"]),
        Key(KeyRule::Partition { id_bytes: 0 }),
    }
}

table! {
    /// The deliveries of a node whose attempt has not ended, by number. [`encode_member`] encodes them.
    OUTBOX = "outbox", Index Stays {} numbered true always {
        Key(KeyRule::OfNode),
    }
}

table! {
    /// The nodes that may have deliveries in a partition.
    HOLDERS = "holders", Index Stays {} always {
        Key(KeyRule::Partition { id_bytes: 0 }),
    }
}

/// Returns the key of the record of the last numbers drawn in a partition.
#[must_use]
pub(crate) fn key_of_last_numbers(partition: Partition) -> Key {
    key_in_partition(&NUMBERS, partition, vec![])
}

/// Returns the key of the index of a node's deliveries in a partition.
#[must_use]
pub(crate) fn key_of_outbox(partition: Partition, node: NodeId) -> Key {
    key_in_partition(&OUTBOX, partition, node.to_string().into_bytes())
}

/// Returns the key of the list of nodes that may have deliveries in a partition.
#[must_use]
pub(crate) fn key_of_holders(partition: Partition) -> Key {
    key_in_partition(&HOLDERS, partition, vec![])
}

/// Returns the key of the record that contains a delivery.
#[must_use]
pub(crate) fn key_of_delivery(subject: &Subject) -> Key {
    match *subject {
        Subject::Transaction(txn) => transaction::key_of_transaction(txn),
        Subject::Flow { flow, webhook } => flow::key_of_report(flow, webhook),
    }
}

/// Encodes a delivery as a member of [`OUTBOX`]: subject, client and app, each after its length in one byte; the size
/// of the body in four bytes; the origin.
#[must_use]
pub(crate) fn encode_member(
    subject: &Subject,
    receiver: &Receiver,
    app: Option<&AppId>,
    stored_bytes: usize,
) -> Vec<u8> {
    let mut member = Vec::new();
    for part in [&subject.to_bytes()[..], receiver.client.as_str().as_bytes(), app.map_or("", AppId::as_str).as_bytes()]
    {
        member.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
        member.extend(part);
    }
    member.extend(u32::try_from(stored_bytes).unwrap_or(u32::MAX).to_be_bytes());
    member.extend(receiver.origin.as_bytes());
    member
}

/// Decodes a member of [`OUTBOX`]; `None` for invalid bytes.
#[must_use]
pub(crate) fn decode_member(id: DeliveryId, member: &[u8]) -> Option<QueuedDelivery> {
    let part = |bytes| {
        let (length, rest) = <[u8]>::split_first(bytes)?;
        rest.split_at_checked((*length).into())
    };
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let (subject, rest) = part(member)?;
    let (client, rest) = part(rest)?;
    let (app, rest) = part(rest)?;
    let (stored_bytes, origin) = rest.split_first_chunk()?;
    let app = if app.is_empty() { None } else { Some(text(app)?.parse().ok()?) };
    let receiver = Receiver { client: text(client)?.parse().ok()?, origin: text(origin)?.to_owned() };
    let stored_bytes = usize::try_from(u32::from_be_bytes(*stored_bytes)).ok()?;
    Some(QueuedDelivery { id, subject: Subject::from_bytes(subject)?, receiver, app, stored_bytes })
}
