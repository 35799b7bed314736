//! A store of each released schema, in a file and on servers, as that release left it. This release migrates it, reads
//! every kind of record back, and finds its ledgers and its audit log whole. `src/store/fixtures/README.md` describes
//! how they are made.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use redis::{Cmd, cmd};
use rusqlite::Connection;
use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::time::Timestamp;

use super::inventory::{use_every_operation, use_leases};
use super::server::RedisServer;
use super::{key_names, options, standalone, test_clock, test_store};
use crate::conformance::fixture::RETENTION;
use crate::conformance::reseal::reseal_store;
use crate::conformance::{ClockedStore, TestStore, run};
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::engine::embedded::EmbeddedEngine;
use crate::engine::redis::RedisEngine;
use crate::engine::{Engine, Form, Query, ScanFrom};
use crate::installation::test_ownership;
use crate::redis::reply::Reply;
use crate::redis::{FinishState, RedisOptions, RedisStore, build_shared};
use crate::vault::test_vault;
use crate::{AuditHash, FIRST, SCHEMA, Store, Upgrading};

/// Environment variable that writes the stores of this release.
const WRITE_VARIABLE: &str = "SAKSHI_WRITE_FIXTURES";
/// Postponement of ends: a server expires keys by its own clock, but scripts use the clock of the test.
const LATER_MS: i64 = 100 * 365 * 86_400_000;
/// Keys that belong to running nodes, and marks of a move or a loss.
const NODE_KEYS: [&str; 5] = ["{nodes}beats", "{nodes}schemas", "probe", "moving", "{canary}lost"];

/// Returns the directory with the stores of a schema number.
fn fixture_directory(number: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(number.to_string())
}

/// Reads and decompresses a file of a released store.
fn read_fixture(number: u32, name: &str) -> Vec<u8> {
    let path = fixture_directory(number).join(name);
    let file =
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; src/store/fixtures/README.md", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(&file[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Compresses and writes a file of a store of this release.
fn write_fixture(name: &str, bytes: &[u8]) {
    let directory = fixture_directory(SCHEMA.number());
    fs::create_dir_all(&directory).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    fs::write(directory.join(name), encoder.finish().unwrap()).unwrap();
}

/// Returns a clock at the time of the store's creation, when no record had expired.
fn fixture_clock(number: u32, name: &str) -> Arc<ManualClock> {
    let text = String::from_utf8(read_fixture(number, name)).unwrap();
    Arc::new(ManualClock::starting_at(Timestamp::from_millis(text.parse().unwrap())))
}

fn file_options(directory: &Path, clock: Arc<ManualClock>, at_start: bool) -> EmbeddedOptions {
    EmbeddedOptions {
        directory: directory.to_owned(),
        clock,
        vault: Arc::new(test_vault(&[7, 6])),
        retention: RETENTION,
        max_waiting: 4_096,
        ownership: test_ownership(),
        upgrading: Upgrading { schema: &SCHEMA, at_start },
    }
}

/// Writes a file with every kind of record, as this release leaves it.
async fn write_file_fixture() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), test_clock());
    let store = EmbeddedStore::open(file_options(directory.path(), Arc::clone(&clock), true)).unwrap();
    let (test, start) = (ClockedStore { store, clock: Arc::clone(&clock) }, clock.now());
    use_every_operation(&test).await;
    test.store.close();
    Connection::open(directory.path().join("sakshi.db"))
        .unwrap()
        .execute_batch("PRAGMA journal_mode = DELETE; VACUUM")
        .unwrap();
    write_fixture("sakshi.db.gz", &fs::read(directory.path().join("sakshi.db")).unwrap());
    write_fixture("sakshi.db.clock.gz", start.millis().to_string().as_bytes());
}

/// Writes the commands that restore servers with every kind of record, as this release leaves them.
async fn write_servers_fixture() {
    let test = test_store();
    let start = test.now();
    use_every_operation(&test).await;
    use_leases(&test).await;
    let mut commands = Vec::new();
    let shared = &test.store.shared;
    for key in key_names(&test.server).into_iter().filter(|key| NODE_KEYS.iter().all(|other| other.as_bytes() != key)) {
        let command_on = |name: &str, more: &[&str]| cmd(name).arg(&key).arg(more).to_owned();
        let kind = shared.read("a type", &command_on("TYPE", &[])).await.unwrap().text().unwrap().unwrap();
        let (content, writer) = match &*kind {
            "hash" => (command_on("HGETALL", &[]), "HSET"),
            "list" => (command_on("LRANGE", &["0", "-1"]), "RPUSH"),
            "zset" => (command_on("ZRANGE", &["0", "-1", "WITHSCORES"]), "ZADD"),
            _ => (command_on("GET", &[]), "SET"),
        };
        let found = shared.read("a key", &content).await.unwrap();
        let values: Vec<Vec<u8>> = match writer {
            "SET" => vec![found.bytes().unwrap().unwrap()],
            _ => found.fields().unwrap().remaining().map(|value| value.bytes().unwrap().unwrap_or_default()).collect(),
        };
        let mut command = cmd(writer);
        command.arg(&key);
        // ZADD takes the score before the member.
        let pairs = values.chunks(2).flat_map(|pair| pair.iter().rev());
        let ordered: Vec<&Vec<u8>> = if writer == "ZADD" { pairs.collect() } else { values.iter().collect() };
        ordered.into_iter().for_each(|value| {
            command.arg(value);
        });
        commands.push(command);
        let end: i64 = shared.read("an end", &command_on("PEXPIRETIME", &[])).await.unwrap().parsed().unwrap();
        if end >= 0 {
            commands.push(cmd("PEXPIREAT").arg(&key).arg(end + LATER_MS).to_owned());
        }
    }
    write_fixture("redis.gz", &commands.iter().flat_map(Cmd::get_packed_command).collect::<Vec<u8>>());
    write_fixture("redis.clock.gz", start.millis().to_string().as_bytes());
}

/// Parses the commands of an append-only file.
fn parse_commands(mut bytes: &[u8]) -> Vec<Cmd> {
    fn number(bytes: &mut &[u8]) -> usize {
        let end = bytes.iter().position(|byte| *byte == b'\r').unwrap();
        let number = std::str::from_utf8(&bytes[1..end]).unwrap().parse().unwrap();
        *bytes = &bytes[end + 2..];
        number
    }
    let mut commands = Vec::new();
    while !bytes.is_empty() {
        let words: Vec<Vec<u8>> = (0..number(&mut bytes))
            .map(|_| {
                let length = number(&mut bytes);
                let word = bytes[..length].to_vec();
                bytes = &bytes[length + 2..];
                word
            })
            .collect();
        commands.push(words.into_iter().fold(Cmd::new(), |mut command, word| command.arg(word).to_owned()));
    }
    commands
}

/// Reads every record, entry and member. Returns the kinds that exist.
async fn read_all(engine: &dyn Engine) -> BTreeSet<&'static str> {
    let mut kinds = BTreeSet::new();
    for table in SCHEMA.tables {
        let mut next = Some(ScanFrom::default());
        while let Some(from) = next {
            let found = engine.scan(table, from, 100).await.unwrap();
            next = found.next;
            for key in found.keys {
                let query = match table.form {
                    Form::Record => Query::Record(key),
                    Form::List => Query::entries(key, 1, u64::MAX),
                    Form::Index => Query::page(key, 0, u64::MAX),
                };
                engine.read(vec![query]).await.unwrap();
                kinds.insert(table.name);
            }
        }
    }
    kinds
}

/// Checks that a store has every kind of record except the `absent` ones, with correct ledgers and audit log.
/// `resealing` is a store on the same records with a new encryption key, which opens all sealed values.
async fn assert_whole(store: &Store, engine: &dyn Engine, resealing: &Store, absent: &[&str]) {
    let all: BTreeSet<_> = SCHEMA.tables.iter().map(|table| table.name).filter(|name| !absent.contains(name)).collect();
    let kinds = read_all(engine).await;
    assert!(kinds.is_superset(&all), "{:?}", all.difference(&kinds).collect::<Vec<_>>());
    let audits = store.audit().await.unwrap();
    assert!(!audits.is_empty() && audits.iter().all(crate::Audit::is_clean), "{audits:?}");
    let (log, mut previous) = (store.audit_log(0, 100).await.unwrap(), AuditHash::NONE);
    assert!(!log.is_empty());
    for record in log {
        assert_eq!((record.previous, record.hash), (previous, previous.hash_of_next(&record.entry)));
        previous = record.hash;
    }
    let resealed = reseal_store(resealing).await;
    // Outcomes that fixtures build are sealed with a key that no node has.
    assert!(resealed.left.keys().all(|key| key.to_string() == "01010101"), "{:?}", resealed.left);
    assert!(resealed.resealed > 10, "{resealed:?}");
}

/// Returns the tables, indexes and triggers of a file, with their columns.
fn columns(file: &Path) -> BTreeSet<(String, String, String)> {
    let connection = Connection::open(file).unwrap();
    let sql = "SELECT m.name, coalesce(c.name, ''), coalesce(c.type, '') \
               FROM sqlite_schema m LEFT JOIN pragma_table_info(m.name) c";
    let mut statement = connection.prepare(sql).unwrap();
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Checks that this release migrates and reads the file of a released schema.
async fn check_file(number: u32) {
    let directory = tempfile::tempdir().unwrap();
    let [path, new] = ["store", "new"].map(|name| directory.path().join(name));
    fs::create_dir(&path).unwrap();
    fs::write(path.join("sakshi.db"), read_fixture(number, "sakshi.db.gz")).unwrap();
    let options = file_options(&path, fixture_clock(number, "sakshi.db.clock.gz"), number < SCHEMA.number());
    let store = EmbeddedStore::open(options.clone()).unwrap();
    let engine = EmbeddedEngine::new(store.sqlite().clone(), SCHEMA.tables);
    let resealing = Store::new(
        Box::new(engine.clone()),
        Arc::new(test_vault(&[8, 7, 6])),
        RETENTION,
        crate::redis::NodeId::ALONE,
        None,
    );
    assert_whole(&store, &engine, &resealing, &["watch", "order_lease"]).await;
    store.close();
    EmbeddedStore::open(EmbeddedOptions { directory: new.clone(), ..options }).unwrap().close();
    let [migrated, new] = [path, new].map(|directory| columns(&directory.join("sakshi.db")));
    let different: Vec<_> = migrated.symmetric_difference(&new).collect();
    assert!(different.is_empty(), "a change of the layout needs a step, src/store/src/schema.rs: {different:?}");
}

/// Checks that this release migrates and reads the servers of a released schema.
async fn check_servers(number: u32) {
    let server = RedisServer::start(&[]);
    let as_node = |keys: &[u8]| RedisOptions {
        vault: Arc::new(test_vault(keys)),
        ..options(standalone(&server.url()), fixture_clock(number, "redis.clock.gz"), RETENTION)
    };
    let written = parse_commands(&read_fixture(number, "redis.gz"));
    let sent = written.len();
    let answers = build_shared(as_node(&[7, 6])).send_always(written).await.unwrap();
    assert!(answers.len() == sent && answers.into_iter().all(|answer| !Reply::new("an answer", answer).is_nil()));
    // Releases cannot be skipped: the steps of each release between are run.
    for next in number..SCHEMA.number() {
        let schema = Box::leak(Box::new(crate::Schema {
            tables: SCHEMA.tables,
            steps: &SCHEMA.steps[..(next + 1 - FIRST) as usize],
        }));
        let store = RedisStore::open(RedisOptions { schema, ..as_node(&[7, 6]) }).await.unwrap();
        assert_eq!(store.finish_upgrade().await.unwrap().state, FinishState::Finished);
        store.leave().await.unwrap();
    }
    let store = RedisStore::open(as_node(&[7, 6])).await.unwrap();
    let engine = RedisEngine::new(Arc::clone(&store.shared));
    let resealing = RedisStore::open(as_node(&[8, 7, 6])).await.unwrap();
    assert_whole(&store, &engine, &resealing, &["swept"]).await;
}

#[test]
fn a_store_of_each_released_schema_is_migrated_and_read_back() {
    run(async {
        if std::env::var_os(WRITE_VARIABLE).is_some() {
            write_file_fixture().await;
            write_servers_fixture().await;
        }
        for number in FIRST..=SCHEMA.number() {
            check_file(number).await;
            check_servers(number).await;
        }
    });
}
