//! Three engines, one meaning: random batches have the same answers and leave the same content.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::ids::{ClientId, Partition};
use sakshi_kit::random::Random;

use super::test_store;
use crate::conformance::run;
use crate::embedded::EmbeddedStore;
use crate::engine::embedded::EmbeddedEngine;
use crate::engine::memory::MemoryEngine;
use crate::engine::redis::RedisEngine;
use crate::engine::{Applied, Batch, Column, ColumnKind, Engine, Form, Guard, Key, Op, Operand, Record, Table, Value};
use crate::installation::test_ownership;
use crate::vault::test_vault;

static RECORD: Table = Table { name: "test", form: Form::Record, fields: FIELDS };
static EXPIRING: Table = Table { name: "fleeting", form: Form::Expiring, fields: FIELDS };
static LIST: Table = Table { name: "listed", form: Form::List, fields: FIELDS };
static INDEX: Table = Table { name: "ordered", form: Form::Index, fields: &[] };
static TABLES: &[&Table] = &[&RECORD, &EXPIRING, &LIST, &INDEX];
static FIELDS: &[Column] = &[
    Column { name: "number", kind: ColumnKind::Integer },
    Column { name: "limit", kind: ColumnKind::Integer },
    Column { name: "word", kind: ColumnKind::Text },
    Column { name: "sealed", kind: ColumnKind::Bytes },
];
/// Batches of the test, unless the environment says another number.
const BATCHES: usize = 3_000;

/// Makes batches about a few records, so that they meet each other.
struct Maker {
    random: Random,
    partition: Partition,
    now: i64,
}

impl Maker {
    fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.random.below(among.len() as u64) as usize].clone()
    }

    fn key(&mut self, tables: &[&'static Table]) -> Key {
        let (table, id) = (self.pick(tables), self.pick(&[&b"a"[..], b"b", b"c", b"\x00\xff long enough for another form of text"]));
        Key { table, partition: self.partition, id: id.to_vec() }
    }

    fn record(&mut self) -> Key {
        self.key(&[&RECORD, &EXPIRING])
    }

    /// Mostly small, sometimes at a bound that a 53-bit number cannot hold.
    fn number(&mut self) -> i64 {
        let small = self.random.below(7) as i64 - 3;
        self.pick(&[small, small, small, small, i64::MAX - 1, i64::MAX, i64::MIN, i64::MIN + 1, (1 << 53) + 1, 1 << 53, -(1 << 53) - 1])
    }

    fn time(&mut self) -> i64 {
        self.now + self.random.below(5) as i64 * 1_000 - 2_000
    }

    fn value(&mut self, field: &str) -> Value {
        match field {
            "word" => self.pick(&["", "one", "zwölf", "a much longer text than thirty-two bytes have room for"]).into(),
            "sealed" => self.pick(&[&b"\x00"[..], b"\xff\xfe", &[7; 300]]).into(),
            _ => self.number().into(),
        }
    }

    fn operand(&mut self, field: &str, results: usize) -> Operand {
        if FIELDS.iter().any(|column| column.name == field && column.kind == ColumnKind::Integer) && self.random.below(3) == 0 {
            let now = Operand::Now(self.random.below(2_000) as i64);
            let result = if results == 0 { now.clone() } else { Operand::Result(self.random.below(results as u64) as usize) };
            let at = sakshi_domain::time::Timestamp::from_millis(self.time());
            return self.pick(&[now, result, Operand::Latest(1_000, at)]);
        }
        Operand::Value(self.value(field))
    }

    fn guard(&mut self) -> Guard {
        let key = self.record();
        let number = self.number();
        match self.random.below(9) {
            0 => Guard::Absent(self.key(TABLES_WITH_KEYS)),
            1 => Guard::Present(key),
            2 => Guard::Version(key, self.random.below(4) as i64),
            3 => Guard::Before(key, "limit"),
            4 => Guard::Below(key, "number", "limit"),
            5 => Guard::AtLeast(key, "number", number),
            6 => Guard::AtMost(key, "number", number),
            7 => {
                let field = self.pick(&["number", "word", "sealed"]);
                Guard::Equal(key, field, self.value(field))
            }
            _ => Guard::Unset(key, self.pick(&["number", "limit", "word"])),
        }
    }

    fn fields(&mut self, results: usize) -> Vec<(&'static str, Operand)> {
        let mut fields = Vec::new();
        for Column { name, .. } in FIELDS {
            if self.random.below(2) == 0 {
                fields.push((*name, self.operand(name, results)));
            }
        }
        if fields.is_empty() { vec![("number", 1.into())] } else { fields }
    }

    fn op(&mut self, results: usize, guards: &mut Vec<Guard>) -> Op {
        let key = self.record();
        match self.random.below(11) {
            0 | 1 => Op::Put(key, self.fields(results)),
            2 => Op::Set(key, self.fields(results)),
            3 | 4 => {
                // Guards keep the sum within its range, as transitions do.
                let more = self.random.below(7) as i64 - 3;
                guards.push(Guard::AtMost(key.clone(), "number", i64::MAX - 100));
                guards.push(Guard::AtLeast(key.clone(), "number", i64::MIN + 100));
                Op::Add(key, "number", more.into())
            }
            5 => {
                let values = FIELDS.iter().map(|column| self.operand(column.name, results)).collect();
                Op::Append(self.key(&[&LIST]), values)
            }
            6 => {
                let (member, score) = (self.pick(&[&b"m"[..], b"n", b"o"]).to_vec(), self.time());
                Op::Index(self.key(&[&INDEX]), member, score.into())
            }
            7 => Op::Sweep(self.key(&[&INDEX]), Operand::Now(self.random.below(3) as i64 * 1_000 - 1_000)),
            8 => {
                let (key, at) = (self.key(&[&EXPIRING]), Operand::from(self.time()));
                self.pick(&[Op::ExpireAt(key.clone(), at.clone()), Op::ExpireLater(key, at)])
            }
            9 => Op::Unindex(self.key(&[&INDEX]), self.pick(&[&b"m"[..], b"n", b"o"]).to_vec()),
            _ => Op::Remove(self.key(TABLES)),
        }
    }

    fn batch(&mut self) -> Batch {
        let mut guards: Vec<Guard> = (0..self.random.below(3)).map(|_| self.guard()).collect();
        let mut ops = Vec::new();
        for _ in 0..=self.random.below(4) {
            let op = self.op(ops.len(), &mut guards);
            // A sum is within its range only if nothing else of the batch changes the record.
            if !ops.iter().any(|other: &Op| other.key() == op.key()) {
                ops.push(op);
            }
        }
        Batch { guards, ops }
    }
}

static TABLES_WITH_KEYS: &[&Table] = &[&RECORD, &EXPIRING];

async fn content(engine: &dyn Engine, partition: Partition) -> (Vec<Option<Record>>, Vec<Vec<Vec<Value>>>) {
    let ids: [&[u8]; 4] = [b"a", b"b", b"c", b"\x00\xff long enough for another form of text"];
    let keys = |table: &'static Table| ids.iter().map(move |id| Key { table, partition, id: id.to_vec() });
    let records = engine.read(keys(&RECORD).chain(keys(&EXPIRING)).collect()).await.unwrap();
    let mut lists = Vec::new();
    for list in keys(&LIST) {
        lists.push(engine.entries(list, 1, 1_000_000).await.unwrap());
    }
    (records, lists)
}

/// Returns the numbers of batches that were applied and refused.
async fn compare(clock: &ManualClock, engines: &[Arc<dyn Engine>], seed: u64, batches: usize) -> [usize; 2] {
    let partition = ClientId::generate().partition();
    let mut maker = Maker { random: Random::from_seed(seed), partition, now: 0 };
    let mut counts = [0; 2];
    let mut made = 0;
    while made < batches {
        maker.now = clock.now().millis();
        let group: Vec<Batch> = (0..=maker.random.below(6)).map(|_| maker.batch()).collect();
        made += group.len();
        let expected = engines[0].commit(group.clone()).await.unwrap();
        for engine in &engines[1..] {
            let found = engine.commit(group.clone()).await.unwrap();
            for ((batch, expected), found) in group.iter().zip(&expected).zip(&found) {
                assert_eq!(expected, found, "seed {seed}, {engine:?}, {batch:#?}");
            }
        }
        for applied in &expected {
            counts[usize::from(matches!(applied, Applied::Refused { .. }))] += 1;
        }
        if maker.random.below(20) == 0 {
            let expected = content(&*engines[0], partition).await;
            for engine in &engines[1..] {
                assert_eq!(expected, content(&**engine, partition).await, "seed {seed}, {engine:?} after {made} batches");
            }
        }
        if maker.random.below(10) == 0 {
            clock.advance(Duration::from_millis(maker.random.below(3_000)));
        }
    }
    counts
}

#[test]
fn random_batches_mean_the_same_in_every_engine() {
    let batches = std::env::var("SAKSHI_BATCHES").ok().and_then(|number| number.parse().ok()).unwrap_or(BATCHES);
    let seed = std::env::var("SAKSHI_BATCHES_SEED").ok().and_then(|number| number.parse().ok()).unwrap_or(1);
    let redis = test_store();
    let clock = Arc::clone(&redis.clock);
    let vault = Arc::new(test_vault(&[7]));
    let sqlite = EmbeddedStore::in_memory(clock.clone(), vault, &test_ownership(), None).unwrap();
    run(async {
        let engines: [Arc<dyn Engine>; 3] = [
            Arc::new(MemoryEngine::new(clock.clone())),
            Arc::new(EmbeddedEngine::open(sqlite, TABLES).await.unwrap()),
            Arc::new(RedisEngine::new(redis.store.clone())),
        ];
        let counts = compare(&clock, &engines, seed, batches).await;
        eprintln!("{batches} batches from seed {seed}: {} applied, {} refused", counts[0], counts[1]);
        assert!(counts.iter().all(|count| *count > batches / 10), "{counts:?}");
    });
}
