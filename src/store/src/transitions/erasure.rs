//! Erasure: each batch removes a record as it was read, with its places in indexes.

use sakshi_domain::ids::{AppId, EventId};

use super::delivery::dropped;
use super::event::delist;
use crate::engine::{Batch, Guard, Key, Op, Operand, Record};
use crate::records::evidence::EVIDENCE;
use crate::records::{event, flow, refusal};

/// The fields that the removal of a transaction or a report needs.
pub(crate) const FIELDS: &[&str] = &["event", "verified_at", "registration", "delivery", "holder"];

/// Returns the batch that removes a transaction with its webhook. A pending scan counts as abandoned.
pub(crate) fn transaction(key: &Key, record: &Record) -> Batch {
    let mut ops = dropped(key, record);
    if record.has("event") && !record.has("verified_at") {
        let waiting = Key { table: &event::WAITING, id: record.bytes("event").to_vec(), ..key.clone() };
        let at = waiting.of(&event::EVENT);
        // A scan that is not pending was counted before.
        let known = Operand::Result(ops.len());
        ops.extend([
            Op::Unindex(waiting, key.id.clone()),
            Op::Add(at.clone(), "abandoned", known),
            Op::Add(at, "abandoned", 1.into()),
        ]);
    }
    ops.extend([Op::Tell(key.clone(), "watchers"), Op::Remove(key.of(&EVIDENCE)), Op::Remove(key.clone())]);
    as_read(key, record, ops)
}

/// Returns the batch that removes a report with its webhook.
pub(crate) fn report(key: &Key, record: &Record) -> Batch {
    let mut ops = dropped(key, record);
    ops.push(Op::Remove(key.clone()));
    as_read(key, record, ops)
}

/// Returns the batch that removes a flow. No report of it has arrived since it was read.
pub(crate) fn flow(key: &Key, record: &Record) -> Batch {
    let lapsing = Key { table: &flow::LAPSING, id: vec![], ..key.clone() };
    let listed = Key { table: &flow::FLOWS, id: record.bytes("app").to_vec(), ..key.clone() };
    as_read(
        key,
        record,
        [lapsing, listed]
            .map(|index| Op::Unindex(index, key.id.clone()))
            .into_iter()
            .chain([Op::Remove(key.clone())])
            .collect(),
    )
}

/// Returns the batch that removes a stored response.
pub(crate) fn answer(key: &Key, record: &Record) -> Batch {
    as_read(key, record, vec![Op::Remove(key.clone())])
}

fn as_read(key: &Key, record: &Record, ops: Vec<Op>) -> Batch {
    Batch::on_full(vec![Guard::Version(key.clone(), record.version)], ops)
}

/// Returns the batch that removes an event with its guests. Its first operation results in their number.
pub(crate) fn event(id: EventId, app: &AppId) -> Batch {
    let at = event::event(id.partition(), id);
    let mut ops = vec![Op::Add(at.clone(), "registrations", 0.into())];
    ops.extend(delist(&event::events(id.partition(), app), id.as_bytes()));
    ops.push(Op::Remove(at.clone()));
    Batch::on_full(vec![Guard::Present(at)], ops)
}

/// Returns the batch that removes the refused requests of an app.
pub(crate) fn refusals(app: &AppId, places: Vec<Key>) -> Batch {
    let keys = places.into_iter().chain([refusal::refusals(app)]);
    Batch::on_full(vec![], keys.map(Op::Remove).collect())
}
