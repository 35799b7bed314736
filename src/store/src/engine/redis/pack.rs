//! Packing of batches and queries as arguments of the scripts.

use sakshi_domain::ids::TxnId;

use super::super::batch::NUMBER_BITS;
use super::name;
use crate::engine::{Batch, ColumnKind, Guard, Key, Life, NO_LOWER_BOUND, Op, Operand, Place, Query, Value};
use crate::redis::message_pack::{LUA_EXACT_MAX, MessagePack};
use crate::redis::{NodeId, keys};

/// Sender of the notices that a transaction has ended.
#[derive(Clone, Copy)]
pub(super) struct NoticeSender {
    pub(super) node: NodeId,
    /// True if there is a channel for each partition.
    pub(super) is_cluster: bool,
}

/// The existence of a record, where guards imply it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Absent,
    Present,
}

/// The keys of a script, and its packed arguments.
#[derive(Default)]
pub(super) struct Packer {
    keys: Vec<Vec<u8>>,
    packed: MessagePack,
    /// For each record, the number of its key and the numbers of its lists and indexes.
    families: Vec<Vec<usize>>,
}

impl Packer {
    /// Returns the keys and the arguments.
    pub(super) fn finish(self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut families = MessagePack::default();
        if !self.families.is_empty() {
            families.array(self.families.len());
            for family in &self.families {
                families.array(family.len());
                family.iter().for_each(|number| families.key_number(*number));
            }
        }
        (self.keys, vec![self.packed.into_bytes(), families.into_bytes()])
    }

    /// Returns the number of a key among the keys of the script, from 1. Adds a new key with its lists and indexes.
    fn number_of(&mut self, key: &Key) -> usize {
        let name = name(key);
        if let Some(known) = self.keys.iter().position(|known| *known == name) {
            return known + 1;
        }
        self.keys.push(name);
        let number = self.keys.len();
        if let Some(parent) = key.parent() {
            self.number_of(&parent);
        }
        if !key.table.children().is_empty() {
            let mut family = vec![number];
            family.extend(key.table.children().iter().map(|child| self.number_of(&key.in_table(child))));
            self.families.push(family);
        }
        number
    }

    /// Packs a key as its number.
    fn key(&mut self, key: &Key) {
        let number = self.number_of(key);
        self.packed.key_number(number);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Integer(number) => self.packed.number(*number),
            Value::Text(text) => self.packed.text(text.as_bytes()),
            Value::Bytes(bytes) => self.packed.text(bytes),
        }
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Value(value) => self.value(value),
            Operand::Now(more) => self.tagged("now", &[*more]),
            Operand::Latest(more, at) => self.tagged("latest", &[*more, at.millis()]),
            Operand::Result(op) => self.tagged("result", &[i64::try_from(op + 1).unwrap_or(i64::MAX)]),
            Operand::Field(name) => {
                self.packed.array(2);
                self.packed.texts(&["field", name]);
            }
            Operand::Nothing => self.tagged("nothing", &[]),
        }
    }

    /// Packs an operand of this kind with its numbers.
    fn tagged(&mut self, kind: &str, numbers: &[i64]) {
        self.packed.array(1 + numbers.len());
        self.packed.text(kind.as_bytes());
        numbers.iter().for_each(|number| self.packed.exact_integer(*number));
    }

    /// Packs the beginning of a guard, an operation or a query with `parts` parts after its key.
    fn begin(&mut self, kind: &str, key: &Key, parts: usize) {
        self.packed.array(parts + 2);
        self.packed.text(kind.as_bytes());
        self.key(key);
    }

    /// Packs the names of the fields that guards compare, by key. The version of each record is among them, for the
    /// operation that raises it.
    fn compared_fields(&mut self, Batch { call, guards, .. }: &Batch) {
        let mut compared_fields: Vec<(&Key, Vec<&'static str>)> = Vec::new();
        let mut add = |key, fields: &[&'static str]| {
            let known = compared_fields.iter().position(|(known, _)| *known == key).unwrap_or(compared_fields.len());
            if known == compared_fields.len() {
                compared_fields.push((key, vec![]));
            }
            for field in fields {
                if !compared_fields[known].1.contains(field) {
                    compared_fields[known].1.push(field);
                }
            }
        };
        for guard in guards.iter().filter(|guard| guard.compares()) {
            add(guard.key(), &["version"]);
            add(guard.key(), &guard.fields());
        }
        // The field in which the script stores the id and the results of a call.
        if let Some((_, record)) = call {
            add(record, &["@call"]);
        }
        self.packed.array(compared_fields.len());
        for (key, fields) in compared_fields {
            self.packed.array(1 + fields.len());
            self.key(key);
            self.packed.texts(&fields);
        }
    }

    /// Packs a guard.
    fn guard(&mut self, guard: &Guard) {
        match guard {
            Guard::Absent(key) => self.begin("absent", key, 0),
            Guard::Present(key) => self.begin("present", key, 0),
            Guard::Version(key, version) => {
                self.begin("version", key, 1);
                self.packed.number(*version);
            }
            Guard::Before(key, field) => {
                self.begin("before", key, 1);
                self.packed.texts(&[field]);
            }
            Guard::Below(key, field, limit) => {
                self.begin("below", key, 2);
                self.packed.texts(&[field, limit]);
            }
            Guard::AtLeast(key, field, bound) | Guard::AtMost(key, field, bound) => {
                self.begin(if matches!(guard, Guard::AtLeast(..)) { "least" } else { "most" }, key, 2);
                self.packed.texts(&[field]);
                self.packed.number(*bound);
            }
            Guard::Equal(key, field, value) => {
                self.begin("equal", key, 2);
                self.packed.texts(&[field]);
                self.value(value);
            }
            Guard::Unset(key, field) => {
                self.begin("unset", key, 1);
                self.packed.texts(&[field]);
            }
            Guard::Length(key, number) | Guard::Fewer(key, number) => {
                self.begin(if matches!(guard, Guard::Length(..)) { "length" } else { "fewer" }, key, 1);
                self.packed.bounded(*number);
            }
            Guard::Free(key, score) => {
                self.begin("free", key, 1);
                self.packed.number(*score);
            }
            Guard::Entry(key, number, values) => {
                self.begin("entry", key, 1 + values.len());
                self.packed.bounded(*number);
                values.iter().for_each(|value| self.value(value));
            }
        }
    }

    /// Packs an operation that is one command of Redis. Each of `arguments` packs one argument after the key.
    fn command(&mut self, key: &Key, command: &str, arguments: &[&dyn Fn(&mut Self)]) {
        self.begin("call", key, 1 + arguments.len());
        self.packed.texts(&[command]);
        arguments.iter().for_each(|argument| argument(self));
    }

    /// Packs the names of fields with their operands.
    fn fields(&mut self, fields: &[(&'static str, Operand)]) {
        for (field, value) in fields {
            self.packed.texts(&[field]);
            self.operand(value);
        }
    }

    /// Packs an operation. `implied` is the existence of its record, if guards imply it.
    fn op(&mut self, op: &Op, implied: Option<Presence>, notice_sender: NoticeSender) {
        let is_new = implied == Some(Presence::Absent);
        // An operation on such a key is a single command.
        let is_single = op.key().table.children().is_empty() && !matches!(op.key().table.life, Life::With(_));
        match op {
            Op::Put(key, fields) if is_new && fields.iter().all(|(_, value)| matches!(value, Operand::Value(_))) => {
                self.begin("call", key, 3 + 2 * fields.len());
                self.packed.texts(&["HSET", "version", "1"]);
                self.fields(fields);
            }
            Op::ExpireAt(key, at @ Operand::Value(_)) if is_single => {
                self.command(key, "PEXPIREAT", &[&|packer| packer.operand(at)]);
            }
            Op::Index(key, member, score @ Operand::Value(_)) if is_single => {
                self.command(key, "ZADD", &[&|packer| packer.operand(score), &|packer| packer.packed.text(member)]);
            }
            Op::Remove(key) if key.table.children().is_empty() => self.command(key, "DEL", &[]),
            Op::ClearExpiry(key) if key.table.children().is_empty() => self.command(key, "PERSIST", &[]),
            Op::Put(key, fields) | Op::Set(key, fields) => {
                let kind = match op {
                    Op::Put(..) if is_new => "new",
                    Op::Put(..) => "put",
                    _ if implied == Some(Presence::Present) => "change",
                    _ => "set",
                };
                self.begin(kind, key, 2 * fields.len());
                self.fields(fields);
            }
            Op::Add(key, field, more) => {
                self.begin("add", key, 2);
                self.packed.texts(&[field]);
                self.operand(more);
            }
            Op::DrawNumber(key, field) => {
                self.begin("number", key, 2);
                self.packed.texts(&[field]);
                self.packed.exact_integer(1 << NUMBER_BITS);
            }
            Op::Append(key, values) => {
                self.begin("append", key, values.len());
                values.iter().for_each(|value| self.operand(value));
            }
            Op::Rewrite(key, number, values) => {
                self.begin("rewrite", key, 1 + values.len());
                self.packed.bounded(*number);
                values.iter().for_each(|value| self.operand(value));
            }
            Op::Index(..) | Op::Unindex(..) | Op::Sweep(..) => self.index_op(op),
            Op::ExpireAt(key, at) | Op::ExpireLater(key, at) => {
                self.begin(if matches!(op, Op::ExpireAt(..)) { "expire" } else { "later" }, key, 1);
                self.operand(at);
            }
            Op::ClearExpiry(key) => self.begin("keep", key, 0),
            Op::Remove(key) => self.begin("remove", key, 0),
            Op::Notify(key, field) => self.notice(key, field, notice_sender),
        }
    }

    /// Packs an operation on an index.
    fn index_op(&mut self, op: &Op) {
        match op {
            Op::Index(key, member, score) => {
                self.begin("index", key, 2);
                self.packed.text(member);
                self.operand(score);
            }
            Op::Sweep(key, above, until) => {
                self.begin("sweep", key, 2);
                self.exclusive_bound(*above);
                self.operand(until);
            }
            _ => {
                self.begin("unindex", op.key(), 1);
                self.packed.text(if let Op::Unindex(_, member) = op { member } else { &[] });
            }
        }
    }

    /// Packs an exclusive lower bound of scores, as a sorted set of Redis takes it.
    fn exclusive_bound(&mut self, above: i64) {
        self.packed.text(if above == NO_LOWER_BOUND { "-inf".to_owned() } else { format!("({above}") }.as_bytes());
    }

    /// Packs a notice of the end of a record. Each node listens to its own channel.
    fn notice(&mut self, key: &Key, field: &str, notice_sender: NoticeSender) {
        let sharded =
            if let Place::Partition(partition) = key.place { Some(keys::partition_notices(partition)) } else { None };
        let (publish, channel) = match sharded.filter(|_| notice_sender.is_cluster) {
            Some(channel) => ("SPUBLISH", channel),
            None => ("PUBLISH", keys::NOTICES.to_owned()),
        };
        let id = <[u8; 16]>::try_from(&key.id[..]).map(|id| TxnId::from_bytes(id).to_string()).unwrap_or_default();
        self.begin("tell", key, 5);
        self.packed.texts(&[field, &notice_sender.node.to_string(), publish, &channel, &format!("t{id}")]);
    }

    /// Packs batches whose keys are in one slot.
    pub(super) fn batches<'a>(batches: impl ExactSizeIterator<Item = &'a Batch>, notice_sender: NoticeSender) -> Self {
        let mut packer = Self::default();
        packer.packed.array(batches.len());
        for batch in batches {
            let Batch { call, guards, ops, .. } = batch;
            // Compared fields, guards and operations; then, for a call, its record and its id.
            packer.packed.array(if call.is_some() { 5 } else { 3 });
            packer.compared_fields(batch);
            packer.packed.array(guards.len());
            guards.iter().for_each(|guard| packer.guard(guard));
            packer.packed.array(ops.len());
            for (index, op) in ops.iter().enumerate() {
                let is_first = !ops.iter().take(index).any(|before| before.key() == op.key());
                let mut guards_on_record = guards.iter().filter(|guard| is_first && guard.key() == op.key());
                let implied = guards_on_record.find_map(|guard| match guard {
                    Guard::Absent(_) => Some(Presence::Absent),
                    guard => guard.compares().then_some(Presence::Present),
                });
                packer.op(op, implied, notice_sender);
            }
            if let Some((call, key)) = call {
                packer.key(key);
                packer.packed.text(call);
            }
        }
        packer
    }

    /// Returns the keys and the arguments of queries about keys in one slot. For one record alone, the packed arguments
    /// are empty, followed by the names of the requested fields.
    pub(super) fn queries<'a>(
        queries: impl ExactSizeIterator<Item = &'a Query> + Clone,
    ) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut first_two = queries.clone();
        match (first_two.next(), first_two.next()) {
            (Some(Query::Record(key)), None) => (vec![name(key)], vec![vec![]; 2]),
            (Some(Query::Fields(key, fields)), None) => {
                let names = ["version"].iter().chain(*fields).map(|name| name.as_bytes().to_vec());
                (vec![name(key)], [vec![], vec![]].into_iter().chain(names).collect())
            }
            _ => {
                let mut packer = Self::default();
                packer.packed.array(queries.len());
                queries.for_each(|query| packer.query(query));
                packer.finish()
            }
        }
    }

    /// Packs a query.
    fn query(&mut self, query: &Query) {
        match query {
            Query::Record(key) => self.begin("record", key, 0),
            Query::Fields(key, fields) => {
                self.begin("fields", key, 1 + fields.len());
                self.packed.texts(&["version"]);
                self.packed.texts(fields);
            }
            Query::End(key) => self.begin("ending", key, 0),
            Query::Entries { list, first, limit, max_bytes } => {
                self.begin("entries", list, 4);
                self.packed.bounded(first.saturating_sub(1));
                self.packed.bounded(*limit);
                match u64::try_from(*max_bytes) {
                    Ok(bytes @ ..LUA_EXACT_MAX) => self.packed.bounded(bytes),
                    _ => self.packed.flag(false),
                }
                self.packed.flag(list.table.fields.last().is_some_and(|column| column.kind == ColumnKind::Integer));
            }
            Query::Length(list) => self.begin("length", list, 0),
            Query::Members {
                index,
                above: NO_LOWER_BOUND,
                until: Operand::Value(Value::Integer(i64::MAX)),
                offset,
                limit,
            } => {
                // Ranks 1 to 0 are an empty range.
                let (first, last) = if *limit == 0 { (1, 0) } else { (*offset, offset.saturating_add(limit - 1)) };
                self.begin("rank", index, 2);
                [first, last].into_iter().for_each(|rank| self.packed.number(rank.min(LUA_EXACT_MAX).cast_signed()));
            }
            Query::Members { index, above, until, offset, limit } => {
                self.begin("members", index, 4);
                self.exclusive_bound(*above);
                self.operand(until);
                [offset, limit]
                    .into_iter()
                    .for_each(|number| self.packed.number((*number).min(LUA_EXACT_MAX).cast_signed()));
            }
            Query::Last(index) => {
                self.begin("rank", index, 2);
                self.packed.texts(&["-1", "-1"]);
            }
            Query::Count(index, until) => {
                self.begin("count", index, 1);
                self.operand(until);
            }
        }
    }
}
