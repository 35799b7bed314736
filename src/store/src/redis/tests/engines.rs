//! Three engines, one semantics: random batches have the same answers and leave the same content.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ::redis::cmd;
use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;
use sakshi_kit::random::Random;

use super::{test_clock, test_store};
use crate::conformance::run;
use crate::embedded::sqlite::Sqlite;
use crate::engine::embedded::EmbeddedEngine;
use crate::engine::embedded::statements::schema;
use crate::engine::memory::MemoryEngine;
use crate::engine::redis::{self, RedisEngine};
use crate::engine::{
    Applied, Batch, CallId, Column, ColumnKind, Engine, Form, Guard, Key, Life, Op, Operand, Owner, Place, Query,
    ScanFrom,
};
use crate::engine::{Table, Value};
use crate::installation::test_ownership;
use crate::redis::RedisStore;
use crate::schema::FIRST;
use crate::vault::test_vault;

static RECORD: Table =
    Table { name: "test", form: Form::Record, life: Life::Stays, since: FIRST, fields: FIELDS, rules: &[] };
static BRIEF: Table =
    Table { name: "brief_test", form: Form::Record, life: Life::Ends(&[]), since: FIRST, fields: FIELDS, rules: &[] };
static PARENT: Table = Table {
    name: "parent",
    form: Form::Record,
    life: Life::Ends(&[&HELD_LIST, &HELD_INDEX]),
    since: FIRST,
    fields: FIELDS,
    rules: &[],
};
static LIST: Table =
    Table { name: "listed", form: Form::List, life: Life::Stays, since: FIRST, fields: ENTRY, rules: &[] };
static INDEX: Table =
    Table { name: "ordered", form: Form::Index, life: Life::Stays, since: FIRST, fields: &[], rules: &[] };
static HELD_LIST: Table = Table {
    name: "held_listed",
    form: Form::List,
    life: Life::With(&PARENT),
    since: FIRST,
    fields: FIELDS,
    rules: &[],
};
static HELD_INDEX: Table =
    Table { name: "held_ordered", form: Form::Index, life: Life::With(&PARENT), since: FIRST, fields: &[], rules: &[] };
static TABLES: &[&Table] = &[&RECORD, &BRIEF, &PARENT, &LIST, &INDEX, &HELD_LIST, &HELD_INDEX];
static RECORDS: &[&Table] = &[&RECORD, &BRIEF, &PARENT];
static LISTS: &[&Table] = &[&LIST, &HELD_LIST];
static INDEXES: &[&Table] = &[&INDEX, &HELD_INDEX];
/// Kinds without an owner: alone in its slot, a key would be in another slot than its owner.
static ALONE: &[&Table] = &[&RECORD, &BRIEF, &LIST, &INDEX];

static FIELDS: &[Column] = &[
    Column { name: "number", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "limit", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "until", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "step", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "sequence", kind: ColumnKind::Integer, since: FIRST },
    Column { name: "word", kind: ColumnKind::Text, since: FIRST },
    Column { name: "sealed", kind: ColumnKind::Sealed(Owner::Id), since: FIRST },
];
static ENTRY: &[Column] = &[
    Column { name: "word", kind: ColumnKind::Text, since: FIRST },
    Column { name: "number", kind: ColumnKind::Integer, since: FIRST },
];
/// Number of batches of the test; the environment can override it.
const BATCHES: usize = 3_000;
/// Distance of sums from the ends of their range.
const ROOM: i64 = 100_000_000;
const IDS: [&[u8]; 4] = [b"a", b"b", b"c", b"\x00\xff long enough for another form of text"];
const MEMBERS: [&[u8]; 4] = [b"m", b"n", b"o", b"\xff"];

/// Maker of batches on a few records, so that they interfere.
pub(super) struct Maker {
    pub(super) random: Random,
    partition: Place,
    /// The only key of a batch on a key outside partitions.
    only: Option<Key>,
    pub(super) now: i64,
    /// The appended entries.
    entries: Vec<Vec<Value>>,
}

impl Maker {
    pub(super) fn new(seed: u64, now: i64) -> Self {
        let partition = Place::Partition(ClientId::generate().partition());
        Self { random: Random::from_seed(seed), partition, only: None, now, entries: vec![] }
    }

    fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.random.below(among.len() as u64) as usize].clone()
    }

    fn key(&mut self, tables: &[&'static Table]) -> Key {
        let (table, id) = (self.pick(tables), self.pick(&IDS));
        match &self.only {
            Some(only) => only.of(table),
            None => Key { table, place: self.partition, id: id.to_vec() },
        }
    }

    pub(super) fn record(&mut self) -> Key {
        self.key(RECORDS)
    }

    fn small(&mut self) -> i64 {
        self.random.below(7) as i64 - 3
    }

    /// Returns a number: mostly small, sometimes at a bound that a 53-bit number cannot hold.
    fn number(&mut self) -> i64 {
        let small = self.small();
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

    fn time(&mut self) -> i64 {
        self.now + self.random.below(5) as i64 * 1_000 - 2_000
    }

    fn value(&mut self, field: &str) -> Value {
        let small = self.small();
        match field {
            "word" => self.pick(&["", "one", "zwölf", "a much longer text than thirty-two bytes have room for"]).into(),
            "sealed" => self.pick(&[&b"\x00"[..], b"\xff\xfe", &[7; 300], &[8; 70_000]]).into(),
            "until" => self.time().into(),
            "step" => small.into(),
            "sequence" => (self.pick(&[0, self.now, self.now * 2_048, (1 << 53) + 2]) + small).into(),
            _ => self.number().into(),
        }
    }

    /// Returns a value of the engine, or of an earlier operation.
    fn moment(&mut self, ops: &[Op]) -> Operand {
        let now = Operand::Now(self.random.below(4_000) as i64 - 2_000);
        let result =
            if ops.is_empty() { now.clone() } else { Operand::Result(self.random.below(ops.len() as u64) as usize) };
        let latest = Operand::Latest(self.small() * 1_000, Timestamp::from_millis(self.time()));
        self.pick(&[now, result, latest])
    }

    /// Returns the end of a record.
    fn end(&mut self) -> Operand {
        let (at, after) = (self.time(), self.random.below(6_000) as i64 - 1_000);
        let latest = Operand::Latest(after, Timestamp::from_millis(at));
        self.pick(&[at.into(), Operand::Now(after), latest, Operand::Field("until")])
    }

    fn operand(&mut self, field: &'static str, ops: &[Op]) -> Operand {
        let is_own = self.random.below(6) == 0;
        match field {
            _ if self.random.below(8) == 0 => Operand::Nothing,
            "number" | "limit" if self.random.below(3) == 0 => self.moment(ops),
            "number" if is_own => Operand::Field(self.pick(&["limit", "until"])),
            "word" | "sealed" | "step" if is_own => Operand::Field(field),
            _ => self.value(field).into(),
        }
    }

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

    fn fields(&mut self, ops: &[Op]) -> Vec<(&'static str, Operand)> {
        let mut fields = Vec::new();
        for Column { name, .. } in FIELDS {
            if self.random.below(2) == 0 {
                fields.push((*name, self.operand(name, ops)));
            }
        }
        fields
    }

    fn entry(&mut self, list: &Key, ops: &[Op]) -> Vec<Operand> {
        let values: Vec<Value> = list.table.fields.iter().map(|column| self.value(column.name)).collect();
        if list.table.fields.len() == ENTRY.len() && self.random.below(2) == 0 {
            self.entries.push(values.clone());
            self.entries.truncate(20);
        } else if self.random.below(2) == 0 {
            let moment = self.moment(ops);
            let place = |column: &Column| column.name == "number";
            return list
                .table
                .fields
                .iter()
                .zip(values)
                .map(|(c, value)| if place(c) { moment.clone() } else { value.into() })
                .collect();
        }
        values.into_iter().map(Operand::Value).collect()
    }

    /// Returns a small number to add.
    fn more(&mut self, ops: &[Op]) -> Operand {
        let is_small = |op: &&Op| matches!(op, Op::Append(..) | Op::Unindex(..) | Op::Sweep(..));
        let results: Vec<Operand> = (0..ops.len()).filter(|op| is_small(&&ops[*op])).map(Operand::Result).collect();
        let small = self.small().into();
        if results.is_empty() { self.pick(&[small, Operand::Field("step")]) } else { self.pick(&results) }
    }

    fn op(&mut self, ops: &[Op], guards: &mut Vec<Guard>) -> Op {
        let key = self.record();
        match self.random.below(18) {
            0..=2 => Op::Put(key, self.fields(ops)),
            3 | 4 => Op::Set(key, self.fields(ops)),
            5 | 6 => {
                // Guards keep the sum within its range, as transitions do.
                guards.push(Guard::AtMost(key.clone(), "number", i64::MAX - ROOM));
                guards.push(Guard::AtLeast(key.clone(), "number", i64::MIN + ROOM));
                Op::Add(key, "number", self.more(ops))
            }
            7 => Op::Number(key, "sequence"),
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
                let score = self.time().into();
                Op::Index(self.key(INDEXES), self.pick(&MEMBERS).to_vec(), self.pick(&[score, Operand::Now(0)]))
            }
            12 => {
                let above = self.pick(&[i64::MIN, self.now - 1_000, self.now]);
                Op::Sweep(self.key(INDEXES), above, Operand::Now(self.random.below(3) as i64 * 1_000 - 1_000))
            }
            13 | 14 => {
                let (key, end) = (self.key(&[&BRIEF, &PARENT]), self.end());
                self.pick(&[Op::ExpireAt(key.clone(), end.clone()), Op::ExpireLater(key, end)])
            }
            15 => self.pick(&[Op::Keep(key.clone()), Op::Tell(key, "word")]),
            16 => Op::Unindex(self.key(INDEXES), self.pick(&MEMBERS).to_vec()),
            _ => Op::Remove(self.key(TABLES)),
        }
    }

    /// Returns the id of a call, like no other.
    fn call(&mut self) -> CallId {
        [self.random.below(u64::MAX), self.random.below(u64::MAX)].map(u64::to_be_bytes).concat().try_into().unwrap()
    }

    pub(super) fn batch(&mut self) -> Batch {
        let alone = |table| Key { table, place: Place::Alone, id: b"alone".to_vec() };
        self.only = (self.random.below(5) == 0).then(|| alone(self.pick(ALONE)));
        let only = self.only.clone();
        let is_about = |key: &Key| only.as_ref().is_none_or(|only| only == key);
        let mut guards: Vec<Guard> =
            (0..self.random.below(3)).map(|_| self.guard()).filter(|guard| is_about(guard.key())).collect();
        let mut ops: Vec<Op> = Vec::new();
        let most = self.random.below(6) as usize + 1;
        while ops.is_empty() || self.random.below(most as u64 + 1) > 0 && ops.len() < most {
            let mut needed = Vec::new();
            let op = self.op(&ops, &mut needed);
            // A sum is within its range only if no other operation of the batch sets the field.
            let changes = |op: &Op| matches!(op, Op::Put(..) | Op::Set(..));
            let is_add = |op: &Op| matches!(op, Op::Add(..));
            let spoils = |other: &Op| {
                other.key() == op.key() && (is_add(other) && changes(&op) || changes(other) && is_add(&op))
            };
            if is_about(op.key()) && !ops.iter().any(spoils) {
                ops.push(op);
                guards.extend(needed);
            }
        }
        let changed = ops.iter().map(Op::key).find(|key| key.table.form == Form::Record).cloned();
        let call = changed.filter(|_| self.random.below(3) == 0).map(|key| (self.call(), key));
        Batch { call, on_full: self.random.below(2) == 0, guards, ops }
    }

    /// Returns every key that batches name.
    fn keys(&self) -> Vec<Key> {
        let in_partition = TABLES.iter().flat_map(|table| IDS.map(|id| (*table, self.partition, id)));
        let alone = ALONE.iter().map(|table| (*table, Place::Alone, &b"alone"[..]));
        in_partition.chain(alone).map(|(table, place, id)| Key { table, place, id: id.to_vec() }).collect()
    }

    /// Returns queries of everything.
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

/// Returns the keys of each kind.
async fn scanned(engine: &dyn Engine, limit: usize) -> BTreeSet<(&'static str, Place, Vec<u8>)> {
    let mut found = BTreeSet::new();
    for table in TABLES {
        let mut from = Some(ScanFrom::default());
        while let Some(at) = from.take() {
            let step = engine.scan(table, at, limit).await.unwrap();
            found.extend(step.keys.into_iter().map(|key| (table.name, key.place, key.id)));
            from = step.next;
        }
    }
    found
}

/// Compares everything that exists, and removes the rest.
async fn compare_content(engines: &[Arc<dyn Engine>], maker: &mut Maker, now: Timestamp, context: &str) {
    let (queries, limit) = (maker.queries(), maker.random.below(5) as usize + 1);
    let (expected, keys) = (engines[0].read(queries.clone()).await.unwrap(), scanned(&*engines[0], limit).await);
    for engine in &engines[1..] {
        let found = engine.read(queries.clone()).await.unwrap();
        assert_eq!((expected.now, expected.found.len()), (found.now, found.found.len()), "{context}, {engine:?}");
        for ((query, expected), found) in queries.iter().zip(&expected.found).zip(&found.found) {
            assert_eq!(expected, found, "{context}, {engine:?}, {query:?}");
        }
        assert_eq!(keys, scanned(&**engine, limit).await, "{context}, {engine:?}");
        let swept = engine.sweep(now, limit, Batch::default()).await.unwrap();
        assert!(swept.iter().all(|(_, number)| (1..=limit as u64).contains(number)), "{context}, {swept:?}");
    }
}

/// Repeats a call whose answer is stored, where answers can be lost.
async fn repeat(engines: &[Arc<dyn Engine>], batch: &Batch, first: &Applied, context: &str) -> bool {
    let Some((_, key)) = &batch.call else { return false };
    // An expired record stores nothing.
    let is_kept = engines[0].read(vec![Query::Record(key.clone())]).await.unwrap().record().unwrap().is_some();
    if !is_kept || !matches!(first, Applied::Done { .. }) {
        return false;
    }
    for engine in [&engines[0], &engines[2]] {
        let found = engine.commit(vec![batch.clone()]).await.unwrap();
        assert_eq!([first], found.iter().collect::<Vec<_>>()[..], "{context}, {engine:?}, {batch:#?}");
    }
    true
}

/// Checks that lists and indexes have the time to live of their record; Redis ends them by its own clock.
async fn ends_together(store: &RedisStore, maker: &Maker, context: &str) {
    let names =
        maker.keys().into_iter().filter_map(|key| key.parent().map(|parent| [redis::name(&parent), redis::name(&key)]));
    for names in names {
        let ends = store
            .shared
            .read_all("an end", names.iter().map(|name| cmd("PEXPIRETIME").arg(name).to_owned()))
            .await
            .unwrap();
        let ends: Vec<i64> = ends.into_iter().map(|end| end.parsed().unwrap()).collect();
        // -2 is no key.
        assert!(ends[1] == -2 || ends[0] == ends[1], "{context}, {names:?}, {ends:?}");
    }
}

/// Returns the numbers of batches that were applied, refused and repeated.
async fn compare(
    clock: &ManualClock,
    engines: &[Arc<dyn Engine>],
    redis: &RedisStore,
    seed: u64,
    batches: usize,
) -> [usize; 3] {
    let mut maker = Maker::new(seed, 0);
    let mut counts = [0; 3];
    let mut made = 0;
    while made < batches {
        maker.now = clock.now().millis();
        let group: Vec<Batch> = (0..=maker.random.below(6)).map(|_| maker.batch()).collect();
        made += group.len();
        let context = format!("seed {seed} after {made} batches");
        let expected = engines[0].commit(group.clone()).await.unwrap();
        for engine in &engines[1..] {
            let until_answered = maker.random.below(2) == 0;
            let found =
                if until_answered { engine.commit_until_answered(group.clone()) } else { engine.commit(group.clone()) };
            for ((batch, expected), found) in group.iter().zip(&expected).zip(&found.await.unwrap()) {
                assert_eq!(expected, found, "{context}, {engine:?}, {batch:#?}");
            }
        }
        for applied in &expected {
            counts[usize::from(matches!(applied, Applied::Refused { .. }))] += 1;
        }
        if maker.random.below(10) == 0 {
            clock.advance(Duration::from_millis(maker.random.below(3_000)));
        }
        // Other calls of the group may have replaced an earlier one.
        counts[2] += usize::from(repeat(engines, &group[group.len() - 1], &expected[group.len() - 1], &context).await);
        if maker.random.below(20) == 0 {
            compare_content(engines, &mut maker, clock.now(), &context).await;
            ends_together(redis, &maker, &context).await;
        }
    }
    counts
}

/// Returns an engine in memory with the kinds of these tests.
async fn sqlite_engine(clock: Arc<ManualClock>) -> EmbeddedEngine {
    let sqlite = Sqlite::in_memory(clock, &test_vault(&[7]), &test_ownership()).unwrap();
    let tables: Vec<String> = TABLES.iter().map(|table| schema(table)).collect();
    sqlite.write(0, move |db| db.connection.execute_batch(&tables.join("; "))).await.unwrap();
    EmbeddedEngine::new(sqlite, TABLES)
}

#[test]
fn random_batches_have_the_same_effect_in_every_engine() {
    let batches = std::env::var("SAKSHI_BATCHES").ok().and_then(|number| number.parse().ok()).unwrap_or(BATCHES);
    let seed = std::env::var("SAKSHI_BATCHES_SEED").ok().and_then(|number| number.parse().ok()).unwrap_or(1);
    let redis = test_store();
    let clock = Arc::clone(&redis.clock);
    run(async {
        let engines: [Arc<dyn Engine>; 3] = [
            Arc::new(MemoryEngine::new(clock.clone())),
            Arc::new(sqlite_engine(clock.clone()).await),
            Arc::new(RedisEngine::new(Arc::clone(&redis.store.shared))),
        ];
        let [applied, refused, repeated] = compare(&clock, &engines, &redis.store, seed, batches).await;
        eprintln!("{batches} batches from seed {seed}: {applied} applied, {refused} refused, {repeated} repeated");
        assert!(applied > batches / 10 && refused > batches / 10 && repeated > batches / 100);
    });
}

#[test]
fn a_sweep_removes_a_long_list_in_steps_and_its_record_last() {
    run(async {
        let clock = test_clock();
        let engine = sqlite_engine(clock.clone()).await;
        let parent = Key { table: &PARENT, place: Place::Alone, id: vec![1] };
        let entry = || FIELDS.iter().map(|_| Operand::Nothing).collect();
        let mut ops = vec![Op::Put(parent.clone(), vec![]), Op::ExpireAt(parent.clone(), Operand::Now(1))];
        ops.extend((0..7).map(|_| Op::Append(parent.of(&HELD_LIST), entry())));
        ops.extend(MEMBERS.map(|member| Op::Index(parent.of(&HELD_INDEX), member.to_vec(), 1.into())));
        engine.commit(vec![Batch::new(vec![], ops)]).await.unwrap();
        let swept = async || {
            let swept = engine.sweep(clock.now() + Duration::from_secs(9), 3, Batch::default()).await.unwrap();
            swept.into_iter().map(|(table, number)| (table.name, number)).collect::<Vec<_>>()
        };
        assert_eq!(swept().await, [], "it has not ended by the clock of the engine");
        clock.advance(Duration::from_millis(1));
        assert_eq!(swept().await, [(HELD_LIST.name, 3), (HELD_INDEX.name, 3)]);
        assert_eq!(engine.read(vec![Query::Length(parent.of(&HELD_LIST))]).await.unwrap().number(), Ok(0));
        assert_eq!(swept().await, [(HELD_LIST.name, 3), (HELD_INDEX.name, 1)]);
        assert_eq!(swept().await, [(PARENT.name, 1), (HELD_LIST.name, 1)]);
        assert_eq!(swept().await, []);
    });
}
