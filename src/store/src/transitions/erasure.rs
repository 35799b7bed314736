//! Erasure. Each batch removes a record with its index entries, if the record is unchanged since it was read.

use sakshi_domain::ids::{AppId, EventId};

use super::delivery::dequeue_ops;
use super::event::delist;
use crate::engine::{Batch, Guard, Key, Op, Operand, Record};
use crate::records::evidence::EVIDENCE;
use crate::records::{event, flow, refusal};

/// The fields that the removal of a transaction or a report reads.
pub(crate) const FIELDS: &[&str] = &["event", "verified_at", "registration", "delivery", "holder"];

/// Builds the batch that removes a transaction with its webhook. A pending scan counts as abandoned.
pub(crate) fn remove_transaction(key: &Key, record: &Record) -> Batch {
    let mut ops = dequeue_ops(key, record);
    if record.has("event") && !record.has("verified_at") {
        let waiting = Key { table: &event::WAITING, id: record.bytes("event").to_vec(), ..key.clone() };
        let event_key = waiting.in_table(&event::EVENT);
        // `Op::Unindex` results in the correction for a scan that already counts as abandoned.
        let correction = Operand::Result(ops.len());
        ops.extend([
            Op::Unindex(waiting, key.id.clone()),
            Op::Add(event_key.clone(), "abandoned", correction),
            Op::Add(event_key, "abandoned", 1.into()),
        ]);
    }
    ops.extend([Op::Notify(key.clone(), "watchers"), Op::Remove(key.in_table(&EVIDENCE)), Op::Remove(key.clone())]);
    if_unchanged(key, record, ops)
}

/// Builds the batch that removes a report with its webhook.
pub(crate) fn remove_report(key: &Key, record: &Record) -> Batch {
    let mut ops = dequeue_ops(key, record);
    ops.push(Op::Remove(key.clone()));
    if_unchanged(key, record, ops)
}

/// Builds the batch that removes a flow. It is refused if a report has arrived since the flow was read.
pub(crate) fn remove_flow(key: &Key, record: &Record) -> Batch {
    let lapsing = Key { table: &flow::LAPSING, id: vec![], ..key.clone() };
    let listed = Key { table: &flow::FLOWS, id: record.bytes("app").to_vec(), ..key.clone() };
    if_unchanged(
        key,
        record,
        [lapsing, listed]
            .map(|index| Op::Unindex(index, key.id.clone()))
            .into_iter()
            .chain([Op::Remove(key.clone())])
            .collect(),
    )
}

/// Builds the batch that removes a stored response.
pub(crate) fn remove_answer(key: &Key, record: &Record) -> Batch {
    if_unchanged(key, record, vec![Op::Remove(key.clone())])
}

/// Builds a batch that is refused if the record has changed since it was read.
fn if_unchanged(key: &Key, record: &Record, ops: Vec<Op>) -> Batch {
    Batch::even_when_full(vec![Guard::Version(key.clone(), record.version)], ops)
}

/// Builds the batch that removes an event with its guests. Its first operation results in the number of guests.
pub(crate) fn remove_event(id: EventId, app: &AppId) -> Batch {
    let event_key = event::key_of_event(id.partition(), id);
    let mut ops = vec![Op::Add(event_key.clone(), "registrations", 0.into())];
    ops.extend(delist(&event::key_of_events(id.partition(), app), id.as_bytes()));
    ops.push(Op::Remove(event_key.clone()));
    Batch::even_when_full(vec![Guard::Present(event_key)], ops)
}

/// Builds the batch that removes the refused requests of an app.
pub(crate) fn remove_refusals(app: &AppId, slots: Vec<Key>) -> Batch {
    let keys = slots.into_iter().chain([refusal::key_of_refusals(app)]);
    Batch::even_when_full(vec![], keys.map(Op::Remove).collect())
}
