//! Records in ordered maps, with a clock of the caller: for simulations and unit tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::clock::Clock;
use sakshi_domain::time::Timestamp;

use super::batch::next_number;
use super::{
    Answer, Answers, Applied, Batch, CallId, Engine, Form, Guard, Key, NO_LOWER_BOUND, Op, Operand, Place, Query,
    Record, ScanFrom, Scanned, Table, Value, no_field,
};
use crate::error::StoreFuture;
use crate::invariants;

/// Kind, place and id of a key, by which the maps are ordered.
type MapKey = (&'static str, Place, Vec<u8>);

/// More delivery numbers than a replica can miss.
const NUMBERS_SKIPPED: i64 = 1 << 30;

/// Records in memory. Clones share them.
#[derive(Clone)]
pub struct MemoryEngine {
    clock: Arc<dyn Clock>,
    content: Arc<Mutex<Content>>,
}

/// The records, lists and indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    records: BTreeMap<MapKey, StoredRecord>,
    lists: BTreeMap<MapKey, Vec<Vec<Value>>>,
    indexes: BTreeMap<MapKey, BTreeSet<(i64, Vec<u8>)>>,
}

/// A record, with the data of the engine about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StoredRecord {
    record: Record,
    /// Time of its expiry, in milliseconds.
    end: Option<i64>,
    /// The last call that changed the record: its id, its results and its time.
    call: Option<(CallId, Vec<i64>, Timestamp)>,
}

fn map_key(key: &Key) -> MapKey {
    (key.table.name, key.place, key.id.clone())
}

fn to_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl MemoryEngine {
    /// Returns an empty engine.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, content: Arc::default() }
    }

    /// Returns an independent copy, as a replica that takes over. Its delivery numbers skip ahead by
    /// `NUMBERS_SKIPPED`, so a delivery queued there never gets the number of a lost one.
    #[must_use]
    pub fn replica(&self) -> Self {
        let mut content = self.lock().clone();
        for stored in content
            .records
            .iter_mut()
            .filter(|((kind, ..), _)| *kind == crate::records::delivery::NUMBERS.name)
            .map(|(_, stored)| stored)
        {
            let last = stored.record.integer("last") + NUMBERS_SKIPPED;
            stored.record.fields.insert("last", Value::Integer(last));
        }
        Self { clock: Arc::clone(&self.clock), content: Arc::new(Mutex::new(content)) }
    }

    /// Returns true if both engines have equal records, lists and indexes.
    #[cfg(test)]
    pub(crate) fn has_content_of(&self, other: &Self) -> bool {
        let others = other.lock().clone();
        *self.lock() == others
    }

    /// Replaces the records that `is_copied` selects by their place and id with those of another engine.
    pub fn copy_from(&self, from: &Self, is_copied: impl Fn(Place, &[u8]) -> bool) {
        let Content { records, lists, indexes } = from.lock().clone();
        let mut content = self.lock();
        fn replace<T>(
            own: &mut BTreeMap<MapKey, T>,
            others: BTreeMap<MapKey, T>,
            is_copied: impl Fn(Place, &[u8]) -> bool,
        ) {
            own.retain(|(_, place, id), _| !is_copied(*place, id));
            own.extend(others.into_iter().filter(|((_, place, id), _)| is_copied(*place, id)));
        }
        replace(&mut content.records, records, &is_copied);
        replace(&mut content.lists, lists, &is_copied);
        replace(&mut content.indexes, indexes, &is_copied);
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// Returns the record, unless it has ended.
    fn record(&self, key: &Key, now: Timestamp) -> Option<&StoredRecord> {
        self.records.get(&map_key(key)).filter(|stored| stored.end.is_none_or(|end| end > now.millis()))
    }

    /// Returns true unless the record that owns the list or index is missing.
    fn owner_exists(&self, key: &Key, now: Timestamp) -> bool {
        key.parent().is_none_or(|parent| self.record(&parent, now).is_some())
    }

    /// Returns the entries of a list; none while the record that owns it is missing.
    fn list(&self, key: &Key, now: Timestamp) -> &[Vec<Value>] {
        self.lists.get(&map_key(key)).filter(|_| self.owner_exists(key, now)).map_or(&[], Vec::as_slice)
    }

    /// Returns the members of an index, in order; `None` while the record that owns it is missing.
    fn members(&self, key: &Key, now: Timestamp) -> Option<&BTreeSet<(i64, Vec<u8>)>> {
        self.indexes.get(&map_key(key)).filter(|_| self.owner_exists(key, now))
    }

    /// Removes a record with its lists and indexes, or a list, or an index.
    fn remove(&mut self, key: &Key) {
        let map_key = map_key(key);
        self.records.remove(&map_key);
        self.lists.remove(&map_key);
        self.indexes.remove(&map_key);
        key.table.children().iter().for_each(|child| self.remove(&key.in_table(child)));
    }

    fn holds(&self, guard: &Guard, now: Timestamp) -> bool {
        match guard {
            Guard::Length(list, length) => self.list(list, now).len() as u64 == *length,
            Guard::Fewer(index, limit) => {
                self.members(index, now).map_or(0, BTreeSet::len) < usize::try_from(*limit).unwrap_or(usize::MAX)
            }
            Guard::Free(index, score) => {
                self.members(index, now).is_none_or(|members| members.iter().all(|(known, _)| known != score))
            }
            Guard::Entry(list, number, values) => {
                let index = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                index.and_then(|index| self.list(list, now).get(index)) == Some(values)
            }
            on_record => on_record.holds(self.record(on_record.key(), now).map(|stored| &stored.record), now),
        }
    }

    /// Applies a batch. A retry of a call gets the results of its first application.
    fn apply(&mut self, batch: &Batch, now: Timestamp) -> Applied {
        if let Some((call, key)) = &batch.call
            && let Some((known, results, at)) = self.record(key, now).and_then(|stored| stored.call.as_ref())
            && known == call
        {
            return Applied::Done { results: results.clone(), now: *at };
        }
        for (guard, condition) in batch.guards.iter().enumerate() {
            if !self.holds(condition, now) {
                let record = self.record(condition.key(), now).map(|stored| stored.record.clone());
                return Applied::Refused { guard, record, now };
            }
        }
        let records_before = self.records_changed_by(batch, now);
        let mut results = Vec::with_capacity(batch.ops.len());
        for op in &batch.ops {
            let result = self.operate(op, now, &results);
            results.push(result);
        }
        for (key, before) in records_before {
            invariants::check_change(key.table, &before, self.record(key, now).map(|stored| &stored.record));
        }
        if let Some((call, key)) = &batch.call
            && let Some(stored) = self.records.get_mut(&map_key(key))
        {
            stored.call = Some((*call, results.clone(), now));
        }
        Applied::Done { results, now }
    }

    /// Returns the records that a batch changes and does not remove, as they are before.
    fn records_changed_by<'b>(&self, batch: &'b Batch, now: Timestamp) -> Vec<(&'b Key, Record)> {
        let changed = batch
            .ops
            .iter()
            .filter(|op| matches!(op, Op::Put(..) | Op::Set(..) | Op::Add(..) | Op::DrawNumber(..)))
            .map(Op::key);
        let is_removed = |key: &Key| batch.ops.iter().any(|op| matches!(op, Op::Remove(removed) if removed == key));
        changed
            .filter(|key| !is_removed(key))
            .filter_map(|key| Some((key, self.record(key, now)?.record.clone())))
            .collect()
    }

    /// Applies an operation. Returns its result.
    fn operate(&mut self, op: &Op, now: Timestamp, results: &[i64]) -> i64 {
        let key = op.key();
        if key.table.form == Form::Record && self.record(key, now).is_none() {
            // The record may have expired and not be swept yet.
            self.remove(key);
        }
        let owner_exists = self.owner_exists(key, now);
        match op {
            Op::Append(..) | Op::Rewrite(..) => {
                if owner_exists {
                    self.change_list(op, now, results)
                } else {
                    0
                }
            }
            Op::Unindex(..) if !owner_exists => -1,
            Op::Index(..) | Op::Sweep(..) if !owner_exists => 0,
            Op::Index(..) | Op::Unindex(..) | Op::Sweep(..) => self.change_index(op, now, results),
            Op::Remove(key) => {
                self.remove(key);
                0
            }
            Op::Notify(..) => 0,
            Op::Put(..) | Op::DrawNumber(..) => {
                let stored = self.records.entry(map_key(key)).or_default();
                change_record(stored, op, now, results)
            }
            _ => self.records.get_mut(&map_key(key)).map_or(0, |stored| change_record(stored, op, now, results)),
        }
    }

    fn change_list(&mut self, op: &Op, now: Timestamp, results: &[i64]) -> i64 {
        let list = self.lists.entry(map_key(op.key())).or_default();
        let entry =
            |values: &[Operand]| values.iter().filter_map(|value| value.resolve(now, results, &no_field)).collect();
        match op {
            Op::Append(_, values) => {
                list.push(entry(values));
                to_i64(list.len())
            }
            Op::Rewrite(_, number, values) => {
                let index = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                if let Some(replaced) = index.and_then(|index| list.get_mut(index)) {
                    *replaced = entry(values);
                }
                0
            }
            _ => 0,
        }
    }

    fn change_index(&mut self, op: &Op, now: Timestamp, results: &[i64]) -> i64 {
        let index = self.indexes.entry(map_key(op.key())).or_default();
        let before = index.len();
        match op {
            Op::Index(_, member, score) => {
                index.retain(|(_, known)| known != member);
                index.insert((score.integer(now, results, &no_field), member.clone()));
                0
            }
            Op::Unindex(_, member) => {
                index.retain(|(_, known)| known != member);
                if index.len() < before { 0 } else { -1 }
            }
            Op::Sweep(_, above, until) => {
                let until = until.integer(now, results, &no_field);
                index.retain(|(score, _)| (*above != NO_LOWER_BOUND && score <= above) || *score > until);
                to_i64(before - index.len())
            }
            _ => 0,
        }
    }

    fn answer(&self, query: &Query, now: Timestamp) -> Answer {
        match query {
            Query::Record(key) => Answer::Record(self.record(key, now).map(|stored| stored.record.clone())),
            Query::Fields(key, fields) => Answer::Record(self.record(key, now).map(|stored| {
                let mut record = stored.record.clone();
                record.fields.retain(|name, _| fields.contains(name));
                record
            })),
            Query::End(key) => {
                let end = self.record(key, now).and_then(|stored| stored.end);
                Answer::Number(end.and_then(|end| u64::try_from(end).ok()).unwrap_or(0))
            }
            Query::Entries { list, first, limit, max_bytes } => {
                let mut bytes = 0;
                let within = |entry: &&Vec<Value>| {
                    let fits = bytes == 0 || bytes < *max_bytes;
                    bytes += entry.last().map_or(0, Value::size).max(1);
                    fits
                };
                let skipped = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
                let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
                Answer::Entries(
                    self.list(list, now).iter().skip(skipped).take(limit).take_while(within).cloned().collect(),
                )
            }
            Query::Length(key) => Answer::Number(self.list(key, now).len() as u64),
            Query::Members { index, above, until, offset, limit } => {
                let until = until.integer(now, &[], &no_field);
                let members = self.members(index, now).into_iter().flatten();
                let members =
                    members.filter(|(score, _)| (*above == NO_LOWER_BOUND || score > above) && *score <= until);
                let (offset, limit) =
                    (usize::try_from(*offset).unwrap_or(usize::MAX), usize::try_from(*limit).unwrap_or(usize::MAX));
                Answer::Members(
                    members.skip(offset).take(limit).map(|(score, member)| (member.clone(), *score)).collect(),
                )
            }
            Query::Last(index) => {
                let last = self.members(index, now).and_then(BTreeSet::last);
                Answer::Members(last.map(|(score, member)| (member.clone(), *score)).into_iter().collect())
            }
            Query::Count(index, until) => {
                let until = until.integer(now, &[], &no_field);
                let members = self.members(index, now).into_iter().flatten();
                Answer::Number(members.filter(|(score, _)| *score <= until).count() as u64)
            }
        }
    }
}

/// Applies an operation to a record. Returns its result.
fn change_record(stored: &mut StoredRecord, op: &Op, now: Timestamp, results: &[i64]) -> i64 {
    let before = stored.record.fields.clone();
    let own_field = |field: &'static str| before.get(field).cloned();
    let StoredRecord { record, end, .. } = stored;
    let assign = |record: &mut Record, fields: &[(&'static str, Operand)]| {
        record.version += 1;
        for (field, value) in fields {
            match value.resolve(now, results, &own_field) {
                Some(value) => record.fields.insert(field, value),
                None => record.fields.remove(field),
            };
        }
    };
    match op {
        Op::Put(_, fields) => {
            record.fields.clear();
            *end = None;
            assign(record, fields);
            return 0;
        }
        Op::Set(_, fields) => assign(record, fields),
        Op::Add(_, field, more) => {
            let sum = record.integer(field).saturating_add(more.integer(now, results, &own_field));
            record.fields.insert(field, Value::Integer(sum));
            return sum;
        }
        Op::DrawNumber(_, field) => {
            let number = next_number(record.integer(field), now);
            record.version = record.version.max(1);
            record.fields.insert(field, Value::Integer(number));
            return number;
        }
        Op::ExpireAt(_, at) => *end = Some(at.integer(now, results, &own_field)),
        Op::ExpireLater(_, at) => *end = end.map(|end| end.max(at.integer(now, results, &own_field))),
        Op::ClearExpiry(_) => *end = None,
        _ => {}
    }
    0
}

impl Engine for MemoryEngine {
    fn system(&self) -> &'static str {
        "memory"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        let (now, content) = (self.clock.now(), self.lock());
        let found = queries.iter().map(|query| content.answer(query, now)).collect();
        Box::pin(ready(Ok(Answers { now, found })))
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let (now, mut content) = (self.clock.now(), self.lock());
        Box::pin(ready(Ok(batches.iter().map(|batch| content.apply(batch, now)).collect())))
    }

    fn scan(&self, table: &'static Table, _: ScanFrom, _: usize) -> StoreFuture<Scanned> {
        let (now, content) = (self.clock.now(), self.lock());
        let all: Vec<&MapKey> = match table.form {
            Form::Record => content.records.keys().collect(),
            Form::List => content.lists.keys().collect(),
            Form::Index => content.indexes.keys().collect(),
        };
        let key_of_kind =
            |(kind, place, id): &MapKey| (*kind == table.name).then(|| Key { table, place: *place, id: id.clone() });
        let keys = all.into_iter().filter_map(key_of_kind);
        // An empty list or index counts as missing.
        let exists = |key: &Key| match table.form {
            Form::Record => content.record(key, now).is_some(),
            Form::List => !content.list(key, now).is_empty(),
            Form::Index => content.members(key, now).is_some_and(|members| !members.is_empty()),
        };
        // The first step returns all keys: keys that are added or removed later would move the position.
        let keys = keys.filter(exists).collect();
        Box::pin(ready(Ok(Scanned { keys, ..Scanned::default() })))
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        let (now, mut content) = (self.clock.now().min(now), self.lock());
        content.apply(&batch, now);
        let ended = content.records.iter().filter(|(_, stored)| stored.end.is_some_and(|end| end <= now.millis()));
        let mut ended: Vec<MapKey> = ended.map(|(map_key, _)| map_key.clone()).collect();
        ended.truncate(limit);
        let mut swept: Vec<(&'static Table, u64)> = Vec::new();
        for (kind, place, id) in ended {
            let Some(table) = crate::records::ALL.iter().find(|table| table.name == kind) else { continue };
            content.remove(&Key { table, place, id });
            match swept.iter_mut().find(|(known, _)| known.name == kind) {
                Some((_, number)) => *number += 1,
                None => swept.push((table, 1)),
            }
        }
        Box::pin(ready(Ok(swept)))
    }

    fn works_at_once(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        false
    }
}

impl fmt::Debug for MemoryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryEngine")
    }
}
