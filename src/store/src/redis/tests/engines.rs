//! Three engines, one semantics: random batches have the same answers and leave the same content.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ::redis::cmd;
use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::time::Timestamp;

use super::batches::{BatchMaker, FIELDS, MEMBERS, OWNED_INDEX, OWNED_LIST, PARENT, TABLES};
use super::{test_clock, test_store};
use crate::conformance::run;
use crate::embedded::sqlite::Sqlite;
use crate::engine::embedded::EmbeddedEngine;
use crate::engine::embedded::statements::schema;
use crate::engine::memory::MemoryEngine;
use crate::engine::redis::{self, RedisEngine};
use crate::engine::{Applied, Batch, Engine, Key, Op, Operand, Place, Query, ScanFrom};
use crate::installation::test_ownership;
use crate::redis::RedisStore;
use crate::vault::test_vault;

/// Number of random batches; the environment can override it.
const BATCHES: usize = 3_000;

/// Returns the keys of all kinds that an engine scans.
async fn scan_all(engine: &dyn Engine, limit: usize) -> BTreeSet<(&'static str, Place, Vec<u8>)> {
    let mut keys = BTreeSet::new();
    for table in TABLES {
        let mut next = Some(ScanFrom::default());
        while let Some(from) = next.take() {
            let step = engine.scan(table, from, limit).await.unwrap();
            keys.extend(step.keys.into_iter().map(|key| (table.name, key.place, key.id)));
            next = step.next;
        }
    }
    keys
}

/// Compares the content of the engines, and sweeps expired records.
async fn compare_content(engines: &[Arc<dyn Engine>], maker: &mut BatchMaker, now: Timestamp, context: &str) {
    let (queries, limit) = (maker.queries(), maker.random.below(5) as usize + 1);
    let (expected, keys) = (engines[0].read(queries.clone()).await.unwrap(), scan_all(&*engines[0], limit).await);
    for engine in &engines[1..] {
        let found = engine.read(queries.clone()).await.unwrap();
        assert_eq!((expected.now, expected.found.len()), (found.now, found.found.len()), "{context}, {engine:?}");
        for ((query, expected), found) in queries.iter().zip(&expected.found).zip(&found.found) {
            assert_eq!(expected, found, "{context}, {engine:?}, {query:?}");
        }
        assert_eq!(keys, scan_all(&**engine, limit).await, "{context}, {engine:?}");
        let swept = engine.sweep(now, limit, Batch::default()).await.unwrap();
        assert!(swept.iter().all(|(_, number)| (1..=limit as u64).contains(number)), "{context}, {swept:?}");
    }
}

/// Repeats the call of a batch on the engines that store calls, and checks that the answer is the same. Returns true if
/// there was a call to repeat.
async fn repeat_call(engines: &[Arc<dyn Engine>], batch: &Batch, first: &Applied, context: &str) -> bool {
    let Some((_, key)) = &batch.call else { return false };
    // An expired record no longer stores its call.
    let is_stored = engines[0].read(vec![Query::Record(key.clone())]).await.unwrap().record().unwrap().is_some();
    if !is_stored || !matches!(first, Applied::Done { .. }) {
        return false;
    }
    for engine in [&engines[0], &engines[2]] {
        let found = engine.commit(vec![batch.clone()]).await.unwrap();
        assert_eq!([first], found.iter().collect::<Vec<_>>()[..], "{context}, {engine:?}, {batch:#?}");
    }
    true
}

/// Checks that lists and indexes have the same time to live as their record.
async fn assert_equal_ttls(store: &RedisStore, maker: &BatchMaker, context: &str) {
    let names =
        maker.keys().into_iter().filter_map(|key| key.parent().map(|parent| [redis::name(&parent), redis::name(&key)]));
    for names in names {
        let ends = store
            .shared
            .read_all("an end", names.iter().map(|name| cmd("PEXPIRETIME").arg(name).to_owned()))
            .await
            .unwrap();
        let ends: Vec<i64> = ends.into_iter().map(|end| end.parsed().unwrap()).collect();
        // -2 means that the key does not exist.
        assert!(ends[1] == -2 || ends[0] == ends[1], "{context}, {names:?}, {ends:?}");
    }
}

/// Numbers of batches by their outcome.
#[derive(Default)]
struct BatchCounts {
    applied: usize,
    refused: usize,
    /// Batches whose call was repeated afterwards.
    repeated: usize,
}

/// Applies the same random batches to all engines, and compares their answers and contents.
async fn compare_engines(
    clock: &ManualClock,
    engines: &[Arc<dyn Engine>],
    redis: &RedisStore,
    seed: u64,
    batches: usize,
) -> BatchCounts {
    let mut maker = BatchMaker::new(seed, 0);
    let mut counts = BatchCounts::default();
    let mut batches_so_far = 0;
    while batches_so_far < batches {
        maker.now = clock.now().millis();
        let group: Vec<Batch> = (0..=maker.random.below(6)).map(|_| maker.batch()).collect();
        batches_so_far += group.len();
        let context = format!("seed {seed} after {batches_so_far} batches");
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
            let is_refused = matches!(applied, Applied::Refused { .. });
            counts.applied += usize::from(!is_refused);
            counts.refused += usize::from(is_refused);
        }
        if maker.random.below(10) == 0 {
            clock.advance(Duration::from_millis(maker.random.below(3_000)));
        }
        // Only the last batch is repeated: other calls of the group may have replaced an earlier call.
        let last = group.len() - 1;
        counts.repeated += usize::from(repeat_call(engines, &group[last], &expected[last], &context).await);
        if maker.random.below(20) == 0 {
            compare_content(engines, &mut maker, clock.now(), &context).await;
            assert_equal_ttls(redis, &maker, &context).await;
        }
    }
    counts
}

/// Returns an SQLite engine in memory with the kinds of these tests.
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
        let counts = compare_engines(&clock, &engines, &redis.store, seed, batches).await;
        let BatchCounts { applied, refused, repeated } = counts;
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
        ops.extend((0..7).map(|_| Op::Append(parent.in_table(&OWNED_LIST), entry())));
        ops.extend(MEMBERS.map(|member| Op::Index(parent.in_table(&OWNED_INDEX), member.to_vec(), 1.into())));
        engine.commit(vec![Batch::new(vec![], ops)]).await.unwrap();
        let sweep = async || {
            let swept = engine.sweep(clock.now() + Duration::from_secs(9), 3, Batch::default()).await.unwrap();
            swept.into_iter().map(|(table, number)| (table.name, number)).collect::<Vec<_>>()
        };
        assert_eq!(sweep().await, [], "the record has not expired by the clock of the engine");
        clock.advance(Duration::from_millis(1));
        assert_eq!(sweep().await, [(OWNED_LIST.name, 3), (OWNED_INDEX.name, 3)]);
        assert_eq!(engine.read(vec![Query::Length(parent.in_table(&OWNED_LIST))]).await.unwrap().number(), Ok(0));
        assert_eq!(sweep().await, [(OWNED_LIST.name, 3), (OWNED_INDEX.name, 1)]);
        assert_eq!(sweep().await, [(PARENT.name, 1), (OWNED_LIST.name, 1)]);
        assert_eq!(sweep().await, []);
    });
}
