//! Records in ordered maps, with a clock that is given: for simulations and unit tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::clock::Clock;
use sakshi_domain::time::Timestamp;

use super::{Applied, Batch, Engine, Key, Op, Record, Value};
use crate::error::StoreFuture;

type Name = (&'static str, u8, Vec<u8>);

/// Records in memory. Clones share them.
#[derive(Clone)]
pub(crate) struct MemoryEngine {
    clock: Arc<dyn Clock>,
    content: Arc<Mutex<Content>>,
}

/// Everything that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    records: BTreeMap<Name, (Record, Option<i64>)>,
    lists: BTreeMap<Name, Vec<Vec<Value>>>,
    indexes: BTreeMap<Name, BTreeSet<(i64, Vec<u8>)>>,
}

fn name(key: &Key) -> Name {
    (key.table.name, key.partition.number(), key.id.clone())
}

impl MemoryEngine {
    /// An empty engine.
    #[must_use]
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, content: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// The record, unless it has ended.
    fn record(&self, key: &Key, now: Timestamp) -> Option<&Record> {
        let (record, end) = self.records.get(&name(key))?;
        end.is_none_or(|end| end > now.millis()).then_some(record)
    }

    fn apply(&mut self, batch: &Batch, now: Timestamp) -> Applied {
        for (guard, condition) in batch.guards.iter().enumerate() {
            let seen = self.record(condition.key(), now);
            if !condition.holds(seen, now) {
                return Applied::Refused { guard, seen: seen.cloned(), now };
            }
        }
        let mut results = Vec::with_capacity(batch.ops.len());
        for op in &batch.ops {
            let result = self.operate(op, now, &results);
            results.push(result);
        }
        Applied::Done { results, now }
    }

    fn operate(&mut self, op: &Op, now: Timestamp, results: &[i64]) -> i64 {
        let key = name(op.key());
        if self.records.contains_key(&key) && self.record(op.key(), now).is_none() {
            self.records.remove(&key);
        }
        let assign = |record: &mut Record, fields: &[(&'static str, super::Operand)]| {
            record.version += 1;
            record.fields.extend(fields.iter().map(|(field, value)| (*field, value.resolve(now, results))));
        };
        match op {
            Op::Put(_, fields) => {
                let mut record = Record { version: self.records.get(&key).map_or(0, |(known, _)| known.version), ..Record::default() };
                assign(&mut record, fields);
                self.records.insert(key, (record, None));
                0
            }
            Op::Set(_, fields) => {
                if let Some((record, _)) = self.records.get_mut(&key) {
                    assign(record, fields);
                }
                0
            }
            Op::Add(_, field, more) => {
                let Some((record, _)) = self.records.get_mut(&key) else { return 0 };
                let sum = record.integer(field).saturating_add(more.integer(now, results));
                record.fields.insert(field, Value::Integer(sum));
                sum
            }
            Op::Append(_, values) => {
                let list = self.lists.entry(key).or_default();
                list.push(values.iter().map(|value| value.resolve(now, results)).collect());
                i64::try_from(list.len()).unwrap_or(i64::MAX)
            }
            Op::Index(_, member, score) => {
                let index = self.indexes.entry(key).or_default();
                index.retain(|(_, known)| known != member);
                index.insert((score.integer(now, results), member.clone()));
                0
            }
            Op::Unindex(_, member) => {
                let Some(index) = self.indexes.get_mut(&key) else { return -1 };
                let before = index.len();
                index.retain(|(_, known)| known != member);
                if index.len() < before { 0 } else { -1 }
            }
            Op::Sweep(_, until) => {
                let until = until.integer(now, results);
                let Some(index) = self.indexes.get_mut(&key) else { return 0 };
                let before = index.len();
                index.retain(|(score, _)| *score > until);
                i64::try_from(before - index.len()).unwrap_or(i64::MAX)
            }
            Op::ExpireAt(_, at) => {
                if let Some((_, end)) = self.records.get_mut(&key) {
                    *end = Some(at.integer(now, results));
                }
                0
            }
            Op::ExpireLater(_, at) => {
                let at = at.integer(now, results);
                if let Some((_, end)) = self.records.get_mut(&key) {
                    *end = end.map(|end| end.max(at));
                }
                0
            }
            Op::Remove(_) => {
                self.records.remove(&key);
                self.lists.remove(&key);
                self.indexes.remove(&key);
                0
            }
        }
    }
}

impl Engine for MemoryEngine {
    fn read(&self, keys: Vec<Key>) -> StoreFuture<Vec<Option<Record>>> {
        let (now, content) = (self.clock.now(), self.lock());
        Box::pin(ready(Ok(keys.iter().map(|key| content.record(key, now).cloned()).collect())))
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let (now, mut content) = (self.clock.now(), self.lock());
        Box::pin(ready(Ok(batches.iter().map(|batch| content.apply(batch, now)).collect())))
    }

    fn entries(&self, list: Key, first: u64, count: u64) -> StoreFuture<Vec<Vec<Value>>> {
        let content = self.lock();
        let slice = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let all = content.lists.get(&name(&list)).map_or(&[][..], Vec::as_slice);
        let found = all.iter().skip(slice(first.saturating_sub(1))).take(slice(count)).cloned().collect();
        Box::pin(ready(Ok(found)))
    }
}

impl fmt::Debug for MemoryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryEngine")
    }
}
