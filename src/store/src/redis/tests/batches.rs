//! Random batches and queries on a few kinds of records.

use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;
use sakshi_kit::random::Random;

use crate::engine::{
    Batch, CallId, Column, ColumnKind, Form, Guard, Key, Life, Op, Operand, Owner, Place, Query, Table, Value,
};
use crate::schema::FIRST;

/// Records that stay until they are removed.
static RECORD: Table = table("test", Form::Record, Life::Stays);
/// Records that can expire.
static BRIEF: Table = Table { large: &["sealed"], ..table("brief_test", Form::Record, Life::Ends(&[])) };
/// Records that can expire and own a list and an index, which expire with them.
pub(super) static PARENT: Table =
    Table { large: &["word", "sealed"], ..table("parent", Form::Record, Life::Ends(&[&OWNED_LIST, &OWNED_INDEX])) };
/// Lists without an owner.
static LIST: Table = Table { fields: ENTRY, ..table("listed", Form::List, Life::Stays) };
/// Indexes without an owner.
static INDEX: Table = table("ordered", Form::Index, Life::Stays);
/// Indexes in which each member has a score of its own.
static NUMBERED: Table = Table { numbered: true, ..table("numbered", Form::Index, Life::Stays) };
/// Lists that expire with their parent.
pub(super) static OWNED_LIST: Table = table("held_listed", Form::List, Life::With(&PARENT));
/// Indexes that expire with their parent.
pub(super) static OWNED_INDEX: Table = table("held_ordered", Form::Index, Life::With(&PARENT));
pub(super) static TABLES: &[&Table] = &[&RECORD, &BRIEF, &PARENT, &LIST, &INDEX, &NUMBERED, &OWNED_LIST, &OWNED_INDEX];
static RECORDS: &[&Table] = &[&RECORD, &BRIEF, &PARENT];
static LISTS: &[&Table] = &[&LIST, &OWNED_LIST];
static INDEXES: &[&Table] = &[&INDEX, &NUMBERED, &OWNED_INDEX];
/// Kinds without an owner, for keys outside partitions: an owner would be in another slot.
static UNOWNED: &[&Table] = &[&RECORD, &BRIEF, &LIST, &INDEX, &NUMBERED];

pub(super) static FIELDS: &[Column] = &[
    Column { name: "number", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "limit", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "until", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "step", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "sequence", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "word", kind: ColumnKind::Text, since: FIRST },
    Column { name: "sealed", kind: ColumnKind::Sealed(Owner::Id), since: FIRST },
];
/// Fields of an entry of a list.
static ENTRY: &[Column] = &[
    Column { name: "word", kind: ColumnKind::Text, since: FIRST },
    Column { name: "number", kind: ColumnKind::Integer, since: FIRST },
];
/// Minimum distance of sums from the ends of their range.
const SUM_MARGIN: i64 = 100_000_000;
/// Ids of records. They are few, so that batches concern the same records.
const IDS: [&[u8]; 4] = [b"a", b"b", b"c", b"\x00\xff long enough for another form of text"];
pub(super) const MEMBERS: [&[u8]; 4] = [b"m", b"n", b"o", b"\xff"];

/// Returns a kind of record with the fields of the tests.
const fn table(name: &'static str, form: Form, life: Life) -> Table {
    let fields: &[Column] = if matches!(form, Form::Index) { &[] } else { FIELDS };
    Table { name, form, life, since: FIRST, numbered: false, large: &[], fields, rules: &[] }
}

/// Returns the only member with a score in an index whose members have scores of their own.
fn member_of_number(score: i64) -> Vec<u8> {
    score.to_string().into_bytes()
}

/// Maker of random batches. They concern few records, so that they interfere.
pub(super) struct BatchMaker {
    pub(super) random: Random,
    partition: Place,
    /// The only key of the current batch, if it is outside the partitions.
    only_key: Option<Key>,
    pub(super) now: i64,
    /// Entries that were appended, for guards on entries.
    entries: Vec<Vec<Value>>,
}

impl BatchMaker {
    pub(super) fn new(seed: u64, now: i64) -> Self {
        let partition = Place::Partition(ClientId::generate().partition());
        Self { random: Random::from_seed(seed), partition, only_key: None, now, entries: vec![] }
    }

    /// Returns a random option.
    fn pick<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.random.below(options.len() as u64) as usize].clone()
    }

    /// Returns a random key of one of these kinds.
    fn key(&mut self, tables: &[&'static Table]) -> Key {
        let (table, id) = (self.pick(tables), self.pick(&IDS));
        match &self.only_key {
            Some(only) => only.in_table(table),
            None => Key { table, place: self.partition, id: id.to_vec() },
        }
    }

    /// Returns the key of a random record.
    pub(super) fn record(&mut self) -> Key {
        self.key(RECORDS)
    }

    fn small_number(&mut self) -> i64 {
        self.random.below(7) as i64 - 3
    }

    /// Returns a number, mostly small, sometimes near the limits of 53 or 64 bits.
    fn number(&mut self) -> i64 {
        let small = self.small_number();
        self.pick(&[
            small,
            small,
            small,
            small,
            i64::MAX - 1,
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
            (1 << 53) + 1,
            1 << 53,
            -(1 << 53) - 1,
        ])
    }

    /// Returns a time within two seconds of the current one.
    fn time(&mut self) -> i64 {
        self.now + self.random.below(5) as i64 * 1_000 - 2_000
    }

    /// Returns a random value for a field.
    fn value(&mut self, field: &str) -> Value {
        let small = self.small_number();
        match field {
            "word" => self.pick(&["", "one", "zwölf", "a much longer text than thirty-two bytes have room for"]).into(),
            "sealed" => self.pick(&[&b"\x00"[..], b"\xff\xfe", &[7; 300], &[8; 70_000]]).into(),
            "until" => self.time().into(),
            "step" => small.into(),
            "sequence" => (self.pick(&[0, self.now, self.now * 2_048, (1 << 53) + 2]) + small).into(),
            _ => self.number().into(),
        }
    }

    /// Returns the time of the engine, or the result of an earlier operation.
    fn engine_value(&mut self, ops: &[Op]) -> Operand {
        let now = Operand::Now(self.random.below(4_000) as i64 - 2_000);
        let result =
            if ops.is_empty() { now.clone() } else { Operand::Result(self.random.below(ops.len() as u64) as usize) };
        let latest = Operand::Latest(self.small_number() * 1_000, Timestamp::from_millis(self.time()));
        self.pick(&[now, result, latest])
    }

    /// Returns the end of a record.
    fn end(&mut self) -> Operand {
        let (at, after) = (self.time(), self.random.below(6_000) as i64 - 1_000);
        let latest = Operand::Latest(after, Timestamp::from_millis(at));
        self.pick(&[at.into(), Operand::Now(after), latest, Operand::Field("until")])
    }

    /// Returns a random operand for a field of an operation that follows these.
    fn operand(&mut self, field: &'static str, ops: &[Op]) -> Operand {
        let is_own = self.random.below(6) == 0;
        match field {
            _ if self.random.below(8) == 0 => Operand::Nothing,
            "number" | "limit" if self.random.below(3) == 0 => self.engine_value(ops),
            "number" if is_own => Operand::Field(self.pick(&["limit", "until"])),
            "word" | "sealed" | "step" if is_own => Operand::Field(field),
            _ => self.value(field).into(),
        }
    }

    /// Returns a random guard.
    fn guard(&mut self) -> Guard {
        let key = self.record();
        let (number, few) = (self.number(), self.random.below(4));
        match self.random.below(13) {
            0 => Guard::Absent(key),
            1 => Guard::Present(key),
            2 => Guard::Version(key, few as i64),
            3 => Guard::Before(key, self.pick(&["limit", "until"])),
            4 => Guard::Below(key, "number", "limit"),
            5 => Guard::AtLeast(key, "number", number),
            6 => Guard::AtMost(key, "number", number),
            7 => {
                let field = self.pick(&["number", "word", "sealed", "step"]);
                Guard::Equal(key, field, self.value(field))
            }
            8 => Guard::Unset(key, self.pick(&["number", "limit", "word", "step"])),
            9 => Guard::Length(self.key(LISTS), few),
            10 => Guard::Fewer(self.key(INDEXES), few),
            11 => {
                let score = self.time();
                Guard::Free(self.key(INDEXES), score)
            }
            _ => {
                let known = self.entries.len() as u64;
                let values = if known > 0 { self.entries[self.random.below(known) as usize].clone() } else { vec![] };
                Guard::Entry(self.key(&[&LIST]), few, values)
            }
        }
    }

    /// Returns random values for some fields.
    fn fields(&mut self, ops: &[Op]) -> Vec<(&'static str, Operand)> {
        let mut fields = Vec::new();
        for Column { name, .. } in FIELDS {
            if self.random.below(2) == 0 {
                fields.push((*name, self.operand(name, ops)));
            }
        }
        fields
    }

    /// Returns a random entry of a list.
    fn entry(&mut self, list: &Key, ops: &[Op]) -> Vec<Operand> {
        let values: Vec<Value> = list.table.fields.iter().map(|column| self.value(column.name)).collect();
        if list.table.fields.len() == ENTRY.len() && self.random.below(2) == 0 {
            self.entries.push(values.clone());
            self.entries.truncate(20);
        } else if self.random.below(2) == 0 {
            let value_of_engine = self.engine_value(ops);
            let is_number = |column: &Column| column.name == "number";
            return list
                .table
                .fields
                .iter()
                .zip(values)
                .map(|(column, value)| if is_number(column) { value_of_engine.clone() } else { value.into() })
                .collect();
        }
        values.into_iter().map(Operand::Value).collect()
    }

    /// Returns a small number to add.
    fn addend(&mut self, ops: &[Op]) -> Operand {
        let is_small = |op: &&Op| matches!(op, Op::Append(..) | Op::Unindex(..) | Op::Sweep(..));
        let results: Vec<Operand> = (0..ops.len()).filter(|op| is_small(&&ops[*op])).map(Operand::Result).collect();
        let small = self.small_number().into();
        if results.is_empty() { self.pick(&[small, Operand::Field("step")]) } else { self.pick(&results) }
    }

    /// Returns a random operation that can follow these, and adds the guards that it needs.
    fn op(&mut self, ops: &[Op], guards: &mut Vec<Guard>) -> Op {
        let key = self.record();
        match self.random.below(18) {
            0..=2 => Op::Put(key, self.fields(ops)),
            3 | 4 => Op::Set(key, self.fields(ops)),
            5 | 6 => {
                // Guards keep the sum within its range, as transitions do.
                guards.push(Guard::AtMost(key.clone(), "number", i64::MAX - SUM_MARGIN));
                guards.push(Guard::AtLeast(key.clone(), "number", i64::MIN + SUM_MARGIN));
                Op::Add(key, "number", self.addend(ops))
            }
            7 => Op::DrawNumber(key, "sequence"),
            8 | 9 => {
                let list = self.key(LISTS);
                let entry = self.entry(&list, ops);
                if self.random.below(4) == 0 {
                    Op::Rewrite(list, self.random.below(5), entry)
                } else {
                    Op::Append(list, entry)
                }
            }
            10 | 11 => {
                let (index, at) = (self.key(INDEXES), self.time());
                if index.table.numbered {
                    return Op::Index(index, member_of_number(at), at.into());
                }
                Op::Index(index, self.pick(&MEMBERS).to_vec(), self.pick(&[at.into(), Operand::Now(0)]))
            }
            12 => {
                let above = self.pick(&[i64::MIN, self.now - 1_000, self.now]);
                Op::Sweep(self.key(INDEXES), above, Operand::Now(self.random.below(3) as i64 * 1_000 - 1_000))
            }
            13 | 14 => {
                let (key, end) = (self.key(&[&BRIEF, &PARENT]), self.end());
                self.pick(&[Op::ExpireAt(key.clone(), end.clone()), Op::ExpireLater(key, end)])
            }
            15 => self.pick(&[Op::ClearExpiry(key.clone()), Op::Notify(key, "word")]),
            16 => {
                let (index, at) = (self.key(INDEXES), self.time());
                let member = if index.table.numbered { member_of_number(at) } else { self.pick(&MEMBERS).to_vec() };
                Op::Unindex(index, member)
            }
            _ => Op::Remove(self.key(TABLES)),
        }
    }

    /// Returns a unique id of a call.
    fn call(&mut self) -> CallId {
        [self.random.below(u64::MAX), self.random.below(u64::MAX)].map(u64::to_be_bytes).concat().try_into().unwrap()
    }

    /// Returns a random batch.
    pub(super) fn batch(&mut self) -> Batch {
        let alone = |table| Key { table, place: Place::Alone, id: b"alone".to_vec() };
        self.only_key = (self.random.below(5) == 0).then(|| alone(self.pick(UNOWNED)));
        let only = self.only_key.clone();
        let is_allowed = |key: &Key| only.as_ref().is_none_or(|only| only == key);
        let mut guards: Vec<Guard> =
            (0..self.random.below(3)).map(|_| self.guard()).filter(|guard| is_allowed(guard.key())).collect();
        let mut ops: Vec<Op> = Vec::new();
        let ops_max = self.random.below(6) as usize + 1;
        while ops.is_empty() || self.random.below(ops_max as u64 + 1) > 0 && ops.len() < ops_max {
            let mut needed = Vec::new();
            let op = self.op(&ops, &mut needed);
            // A sum is within its range only if no other operation of the batch sets the field.
            let changes = |op: &Op| matches!(op, Op::Put(..) | Op::Set(..));
            let is_add = |op: &Op| matches!(op, Op::Add(..));
            let conflicts = |other: &Op| {
                other.key() == op.key() && (is_add(other) && changes(&op) || changes(other) && is_add(&op))
            };
            if is_allowed(op.key()) && !ops.iter().any(conflicts) {
                ops.push(op);
                guards.extend(needed);
            }
        }
        let changed = ops.iter().map(Op::key).find(|key| key.table.form == Form::Record).cloned();
        let call = changed.filter(|_| self.random.below(3) == 0).map(|key| (self.call(), key));
        Batch { call, even_when_full: self.random.below(2) == 0, guards, ops }
    }

    /// Returns every key that batches may name.
    pub(super) fn keys(&self) -> Vec<Key> {
        let in_partition = TABLES.iter().flat_map(|table| IDS.map(|id| (*table, self.partition, id)));
        let alone = UNOWNED.iter().map(|table| (*table, Place::Alone, &b"alone"[..]));
        in_partition.chain(alone).map(|(table, place, id)| Key { table, place, id: id.to_vec() }).collect()
    }

    /// Returns queries of all keys.
    pub(super) fn queries(&mut self) -> Vec<Query> {
        let mut queries = Vec::new();
        for key in self.keys() {
            let (few, at) = (self.random.below(4), self.time());
            match key.table.form {
                Form::Record => {
                    queries.extend([
                        Query::Record(key.clone()),
                        Query::Fields(key.clone(), &["sealed", "number"]),
                        Query::End(key),
                    ]);
                }
                Form::List => {
                    let max_bytes = self.pick(&[0, 1, 20, 500, usize::MAX]);
                    let (first, limit) = (self.random.below(30), self.pick(&[0, 1, 17, 40, u64::MAX]));
                    queries.extend([Query::Length(key.clone()), Query::entries(key.clone(), 1, u64::MAX)]);
                    queries.push(Query::Entries { list: key, first, limit, max_bytes });
                }
                Form::Index => {
                    let (above, until) = (
                        self.pick(&[i64::MIN, at]),
                        self.pick(&[Operand::Now(0), i64::MAX.into(), (at + 2_000).into()]),
                    );
                    queries.extend([Query::page(key.clone(), 0, u64::MAX), Query::page(key.clone(), few / 2, few)]);
                    queries.extend([
                        Query::Last(key.clone()),
                        Query::count(key.clone()),
                        Query::Count(key.clone(), until.clone()),
                    ]);
                    queries.push(Query::Members { index: key, above, until, offset: few / 3, limit: few });
                }
            }
        }
        queries
    }
}
