//! Deliveries: each gets an entry of its partition's stream, in the order in which they were queued. Those that wait are in the
//! stream for a node that does not exist, so that the first node that starts takes them over. An attempt that had begun and whose
//! outcome is not known is not made again.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, Row};
use sakshi_domain::delivery::Subject;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{Partition, TxnId};

use super::source::{Entries, Sink};
use super::{Content, MovedKey};
use crate::error::StoreError;
use crate::redis::keys;

/// Numbers of one millisecond, as `delivery_id` has room for.
const NUMBERS: u64 = 1 << 14;
const ALL: &str = "SELECT d.id, t.id, p.flow, p.name, d.queued_at, d.origin, d.claimed_at IS NULL FROM deliveries d \
     LEFT JOIN transactions t ON t.row = d.txn LEFT JOIN reports p ON p.row = d.report ORDER BY d.id";

fn subject(row: &Row<'_>) -> rusqlite::Result<Subject> {
    Ok(match row.get::<_, Option<[u8; 16]>>(1)? {
        Some(txn) => Subject::Transaction(TxnId::from_bytes(txn)),
        None => Subject::Flow { flow: FlowId::from_bytes(row.get(2)?), webhook: DedupDigest(row.get(3)?) },
    })
}

/// Where an entry stands in its stream: a time in milliseconds, and a number within it.
type Place = (i64, u64);

/// The place behind this one for what was queued at a time, which may be earlier when a clock was put back.
const fn after((millis, number): Place, queued: i64) -> Place {
    if queued > millis {
        (queued, 0)
    } else if number + 1 < NUMBERS {
        (millis, number + 1)
    } else {
        (millis + 1, 0)
    }
}

/// The entry of every delivery.
pub(super) fn entries(connection: &Connection) -> Result<Entries, StoreError> {
    let mut last: HashMap<u8, Place> = HashMap::new();
    let mut entries = Entries::new();
    let mut statement = connection.prepare(ALL)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let place = last.entry(subject(row)?.partition().number()).or_insert((0, 0));
        *place = after(*place, row.get(4)?);
        let (millis, number) = place;
        entries.insert(row.get(0)?, format!("{millis}-{number}"));
    }
    Ok(entries)
}

/// The streams of what waits.
pub(super) fn queues(connection: &Connection, entries: &Entries, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut waiting: BTreeMap<u8, (Partition, Vec<_>)> = BTreeMap::new();
    let mut statement = connection.prepare(ALL)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if row.get(6)? {
            let (id, subject): (i64, _) = (row.get(0)?, subject(row)?);
            let entry = entries.get(&id).cloned().unwrap_or_default();
            let queue = waiting.entry(subject.partition().number()).or_insert_with(|| (subject.partition(), Vec::new()));
            queue.1.push((entry, subject.to_bytes(), row.get(5)?));
        }
    }
    for (partition, queue) in waiting.into_values() {
        sink(MovedKey { kind: "webhooks that wait", name: keys::outbox(partition), content: Content::Queue(queue), expires_at: None })?;
    }
    Ok(())
}

/// What the record of a delivery has: the entry, and what became of the attempt.
pub(super) struct Delivery {
    pub(super) entry: Vec<u8>,
    pub(super) claimed_at: Option<i64>,
    pub(super) outcome: Option<String>,
    pub(super) status: Option<i64>,
    pub(super) duration_ms: Option<i64>,
}

impl Delivery {
    /// From the columns `id, claimed_at, outcome, status, duration_ms`, which begin at this index.
    pub(super) fn read(row: &Row<'_>, at: usize, entries: &Entries) -> rusqlite::Result<Option<Self>> {
        let Some(id) = row.get::<_, Option<i64>>(at)? else { return Ok(None) };
        let claimed_at: Option<i64> = row.get(at + 1)?;
        let outcome: Option<String> = row.get(at + 2)?;
        // Whether an attempt that had begun arrived is not known, so it is not made again.
        let is_unknown = claimed_at.is_some() && outcome.is_none();
        Ok(Some(Self {
            entry: entries.get(&id).cloned().unwrap_or_default().into_bytes(),
            claimed_at,
            outcome: if is_unknown { Some("unknown".to_owned()) } else { outcome },
            status: row.get(at + 3)?,
            duration_ms: if is_unknown { Some(0) } else { row.get(at + 4)? },
        }))
    }

    pub(super) fn waits(&self) -> bool {
        self.claimed_at.is_none()
    }

    /// Its fields `i k w n l`.
    pub(super) fn fields(self) -> [(&'static str, Option<Vec<u8>>); 5] {
        let ended = self.outcome.is_some();
        let number = |number: Option<i64>| number.map(|number| number.to_string().into_bytes());
        [
            ("i", Some(self.entry)),
            ("k", number(self.claimed_at)),
            ("w", self.outcome.map(String::into_bytes)),
            ("n", ended.then(|| number(self.status).unwrap_or_default())),
            ("l", number(self.duration_ms)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_stands_behind_the_one_before() {
        assert_eq!(after((0, 0), 7), (7, 0));
        assert_eq!(after((7, 0), 7), (7, 1));
        assert_eq!(after((7, 1), 6), (7, 2));
        assert_eq!(after((7, NUMBERS - 2), 7), (7, NUMBERS - 1));
        assert_eq!(after((7, NUMBERS - 1), 7), (8, 0));
        assert_eq!(after((8, 0), 9), (9, 0));
    }
}
