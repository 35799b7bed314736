//! Records in Redis: a hash for each record, a list for each list, a sorted set for each index. One script applies batches.
//!
//! Integers are texts on their way: numbers of Lua have 53 bits.

use std::fmt;

use redis::cmd;
use sakshi_domain::time::Timestamp;

use super::{Applied, Batch, ColumnKind, Engine, Guard, Key, Op, Operand, Record, Table, Value};
use crate::error::{StoreError, StoreFuture};
use crate::redis::RedisStore;
use crate::redis::reply::{Fields, Reply};
use crate::redis::script::Script;

static APPLY: Script = Script::new(
    "apply",
    "the reply to apply",
    concat!("#!lua\n", include_str!("../redis/lua/prelude.lua"), include_str!("../redis/lua/apply.lua")),
    true,
);

/// Records in the servers of a store.
#[derive(Clone)]
pub(crate) struct RedisEngine(RedisStore);

impl RedisEngine {
    /// The records of a store.
    #[must_use]
    pub(crate) const fn new(store: RedisStore) -> Self {
        Self(store)
    }
}

/// The name of a key, in the slot of its partition.
fn name(key: &Key) -> Vec<u8> {
    let number = key.partition.number();
    let tag = [b'{', b'p', b'0' + number / 10, b'0' + number % 10, b'}'];
    [&tag[..], key.table.name.as_bytes(), b":", &key.id].concat()
}

/// The keys and the packed form of batches.
#[derive(Default)]
struct Packer {
    keys: Vec<Vec<u8>>,
    packed: Vec<u8>,
}

impl Packer {
    fn array(&mut self, length: usize) {
        match u8::try_from(length) {
            Ok(short @ 0..=15) => self.packed.push(0x90 | short),
            _ => {
                self.packed.push(0xdd);
                self.packed.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
            }
        }
    }

    fn text(&mut self, text: &[u8]) {
        match u8::try_from(text.len()) {
            Ok(short @ 0..=31) => self.packed.push(0xa0 | short),
            Ok(length) => self.packed.extend([0xd9, length]),
            Err(_) => {
                self.packed.push(0xdb);
                self.packed.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
            }
        }
        self.packed.extend_from_slice(text);
    }

    fn number(&mut self, number: i64) {
        self.text(number.to_string().as_bytes());
    }

    /// The fields that guards compare, by key.
    fn reads(&mut self, guards: &[Guard]) {
        let mut reads: Vec<(&Key, Vec<&'static str>)> = Vec::new();
        for guard in guards {
            let names = guard.fields();
            if names.is_empty() {
                continue;
            }
            let known = reads.iter().position(|(key, _)| *key == guard.key());
            let known = known.unwrap_or_else(|| {
                reads.push((guard.key(), Vec::new()));
                reads.len() - 1
            });
            for name in names {
                if !reads[known].1.contains(&name) {
                    reads[known].1.push(name);
                }
            }
        }
        self.array(reads.len());
        for (key, fields) in reads {
            self.array(1 + fields.len());
            self.key(key);
            fields.into_iter().for_each(|field| self.text(field.as_bytes()));
        }
    }

    /// The number of a key among the script's, from 1.
    fn key(&mut self, key: &Key) {
        let name = name(key);
        let place = self.keys.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.keys.push(name);
            self.keys.len() - 1
        });
        self.packed.push(0xce);
        self.packed.extend(u32::try_from(place + 1).unwrap_or(u32::MAX).to_be_bytes());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Integer(number) => self.number(*number),
            Value::Text(text) => self.text(text.as_bytes()),
            Value::Bytes(bytes) => self.text(bytes),
        }
    }

    /// A whole number that one of Lua holds.
    fn small(&mut self, number: i64) {
        self.packed.push(0xd3);
        self.packed.extend(number.to_be_bytes());
    }

    fn operand(&mut self, operand: &Operand) {
        let (word, numbers) = match operand {
            Operand::Value(value) => return self.value(value),
            Operand::Now(more) => ("now", [Some(*more), None]),
            Operand::Latest(more, at) => ("latest", [Some(*more), Some(at.millis())]),
            Operand::Result(op) => ("result", [i64::try_from(op + 1).ok(), None]),
        };
        self.array(1 + numbers.iter().flatten().count());
        self.text(word.as_bytes());
        numbers.into_iter().flatten().for_each(|number| self.small(number));
    }

    /// The beginning of a guard or an operation with so many parts after its key.
    fn begin(&mut self, kind: &str, key: &Key, parts: usize) {
        self.array(parts + 2);
        self.text(kind.as_bytes());
        self.key(key);
    }

    fn guard(&mut self, guard: &Guard) {
        match guard {
            Guard::Absent(key) => self.begin("absent", key, 0),
            Guard::Present(key) => self.begin("present", key, 0),
            Guard::Version(key, version) => {
                self.begin("version", key, 1);
                self.number(*version);
            }
            Guard::Before(key, field) => {
                self.begin("before", key, 1);
                self.text(field.as_bytes());
            }
            Guard::Below(key, field, limit) => {
                self.begin("below", key, 2);
                self.text(field.as_bytes());
                self.text(limit.as_bytes());
            }
            Guard::AtLeast(key, field, bound) | Guard::AtMost(key, field, bound) => {
                self.begin(if matches!(guard, Guard::AtLeast(..)) { "least" } else { "most" }, key, 2);
                self.text(field.as_bytes());
                self.number(*bound);
            }
            Guard::Equal(key, field, value) => {
                self.begin("equal", key, 2);
                self.text(field.as_bytes());
                self.value(value);
            }
            Guard::Unset(key, field) => {
                self.begin("unset", key, 1);
                self.text(field.as_bytes());
            }
        }
    }

    /// A command of Redis with these arguments.
    fn call(&mut self, key: &Key, command: &str, arguments: &[&dyn Fn(&mut Self)]) {
        self.begin("call", key, 1 + arguments.len());
        self.text(command.as_bytes());
        arguments.iter().for_each(|argument| argument(self));
    }

    fn op(&mut self, op: &Op, guards: &[Guard]) {
        let is_new = |key: &Key| guards.iter().any(|guard| matches!(guard, Guard::Absent(absent) if absent == key));
        match op {
            Op::Put(key, fields) if is_new(key) && fields.iter().all(|(_, value)| matches!(value, Operand::Value(_))) => {
                self.begin("call", key, 3 + 2 * fields.len());
                ["HSET", "version", "1"].iter().for_each(|text| self.text(text.as_bytes()));
                for (field, value) in fields {
                    self.text(field.as_bytes());
                    self.operand(value);
                }
            }
            Op::ExpireAt(key, at @ Operand::Value(_)) => self.call(key, "PEXPIREAT", &[&|packer| packer.operand(at)]),
            Op::Index(key, member, score @ Operand::Value(_)) => {
                self.call(key, "ZADD", &[&|packer| packer.operand(score), &|packer| packer.text(member)]);
            }
            Op::Remove(key) => self.call(key, "DEL", &[]),
            Op::Put(key, fields) | Op::Set(key, fields) => {
                let kind = match op {
                    Op::Put(..) if is_new(key) => "new",
                    Op::Put(..) => "put",
                    _ => "set",
                };
                self.begin(kind, key, 2 * fields.len());
                for (field, value) in fields {
                    self.text(field.as_bytes());
                    self.operand(value);
                }
            }
            Op::Add(key, field, more) => {
                self.begin("add", key, 2);
                self.text(field.as_bytes());
                self.operand(more);
            }
            Op::Append(key, values) => {
                self.begin("append", key, values.len());
                values.iter().for_each(|value| self.operand(value));
            }
            Op::Index(key, member, score) => {
                self.begin("index", key, 2);
                self.text(member);
                self.operand(score);
            }
            Op::Unindex(key, member) => {
                self.begin("unindex", key, 1);
                self.text(member);
            }
            Op::Sweep(key, at) | Op::ExpireAt(key, at) | Op::ExpireLater(key, at) => {
                let kind = match op {
                    Op::Sweep(..) => "sweep",
                    Op::ExpireAt(..) => "expire",
                    _ => "later",
                };
                self.begin(kind, key, 1);
                self.operand(at);
            }
        }
    }

    fn batches(batches: &[Batch]) -> Self {
        let mut packer = Self::default();
        packer.array(batches.len());
        for Batch { guards, ops } in batches {
            packer.array(3);
            packer.reads(guards);
            packer.array(guards.len());
            guards.iter().for_each(|guard| packer.guard(guard));
            packer.array(ops.len());
            ops.iter().for_each(|op| packer.op(op, guards));
        }
        packer
    }
}

/// The record of a hash, which is absent when it has no field.
fn record(table: &'static Table, fields: Fields) -> Result<Option<Record>, StoreError> {
    let (mut record, mut parts) = (Record::default(), fields.rest());
    while let (Some(name), Some(part)) = (parts.next(), parts.next()) {
        let (name, bytes) = (name.text()?.unwrap_or_default(), part.bytes()?.unwrap_or_default());
        if name == "version" {
            record.version = parsed(&bytes)?;
        } else if let Some(column) = table.column(&name) {
            record.fields.insert(column.name, value(column.kind, bytes)?);
        }
    }
    Ok((record.version > 0).then_some(record))
}

fn value(kind: ColumnKind, bytes: Vec<u8>) -> Result<Value, StoreError> {
    Ok(match kind {
        ColumnKind::Integer => Value::Integer(parsed(&bytes)?),
        ColumnKind::Text => Value::Text(String::from_utf8(bytes).map_err(|_| StoreError::unreadable("a text"))?),
        ColumnKind::Bytes => Value::Bytes(bytes),
    })
}

fn parsed(bytes: &[u8]) -> Result<i64, StoreError> {
    std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).ok_or_else(|| StoreError::unreadable("a number"))
}

fn applied(batch: &Batch, reply: Reply, now: Timestamp) -> Result<Applied, StoreError> {
    let mut reply = reply.fields()?;
    match reply.parsed::<usize>()? {
        0 => {
            let results = reply.value()?.fields()?.rest().map(|result| result.parsed()).collect::<Result<_, _>>()?;
            Ok(Applied::Done { results, now })
        }
        guard => {
            let condition = batch.guards.get(guard - 1).ok_or_else(|| reply.unreadable())?;
            let seen = record(condition.key().table, reply.value()?.fields()?)?;
            Ok(Applied::Refused { guard: guard - 1, seen, now })
        }
    }
}

/// An entry as the script packs it: an array of texts (MessagePack).
fn unpacked(table: &Table, packed: &[u8]) -> Option<Vec<Value>> {
    let (length, mut rest) = match packed.split_first()? {
        (first @ 0x90..=0x9f, rest) => (usize::from(first & 0x0f), rest),
        (0xdc, rest) => (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)), rest.get(2..)?),
        _ => return None,
    };
    let mut values = Vec::with_capacity(length);
    for column in table.fields.iter().take(length) {
        let (size, text) = match rest.split_first()? {
            (first @ 0xa0..=0xbf, text) => (usize::from(first & 0x1f), text),
            (0xd9, text) => (usize::from(*text.first()?), text.get(1..)?),
            (0xda, text) => (usize::from(u16::from_be_bytes(text.get(..2)?.try_into().ok()?)), text.get(2..)?),
            (0xdb, text) => (usize::try_from(u32::from_be_bytes(text.get(..4)?.try_into().ok()?)).ok()?, text.get(4..)?),
            _ => return None,
        };
        values.push(value(column.kind, text.get(..size)?.to_vec()).ok()?);
        rest = text.get(size..)?;
    }
    Some(values)
}

impl Engine for RedisEngine {
    /// A guard that fails shows the record that it saw.
    fn read(&self, keys: Vec<Key>) -> StoreFuture<Vec<Option<Record>>> {
        let shown = |key| Batch { guards: vec![Guard::Absent(key)], ops: vec![] };
        let applied = self.commit(keys.into_iter().map(shown).collect());
        Box::pin(async move {
            let record = |applied| match applied {
                Applied::Done { .. } => None,
                Applied::Refused { seen, .. } => seen,
            };
            Ok(applied.await?.into_iter().map(record).collect())
        })
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.0.run(|store| async move {
            let Packer { keys, packed } = Packer::batches(&batches);
            let mut replies = store.call(&APPLY, keys, vec![packed]).await?.fields()?;
            let now = replies.time()?;
            batches.iter().zip(replies.rest()).map(|(batch, reply)| applied(batch, reply, now)).collect()
        })
    }

    fn entries(&self, list: Key, first: u64, count: u64) -> StoreFuture<Vec<Vec<Value>>> {
        self.0.run(move |store| async move {
            let (first, last) = (first.saturating_sub(1), first.saturating_add(count).saturating_sub(2));
            let found = store.read("an entry", cmd("LRANGE").arg(name(&list)).arg(first).arg(last)).await?.fields()?;
            found.all(|packed| unpacked(list.table, &packed))
        })
    }
}

impl fmt::Debug for RedisEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisEngine")
    }
}
