//! The append-only file of Redis, with the shipped settings: cut, with a flipped bit, rewritten during a kill, without
//! its manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_kit::random::Random;

use super::flips::value_bytes;
use super::server::{RedisServer, TIMEOUT};
use super::{RedisTestStore, key_names, options, standalone, test_store_with_config};
use crate::conformance::fixture::{RETENTION, build_opening_with_hook, client_with};
use crate::conformance::reading::Reading;
use crate::conformance::workload::{StepObserver, Workload};
use crate::conformance::{TestStore as _, run};
use crate::embedded::tests::lies::case_count;
use crate::engine::redis::parse_name_in;
use crate::records::ALL;
use crate::records::audit::AUDIT_LOG;
use crate::records::client::LEDGER;
use crate::redis::RedisStore;
use crate::{OpenOutcome, StoreError};

/// The verdict of a node about a Redis that restarted with damaged files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Redis does not start.
    NoStart,
    /// The node refuses every call: the store has lost data.
    DataLost,
    /// The node does not open the store, or refuses a read, with another message.
    Refused,
    /// Every answered step is stored.
    Whole,
    /// An earlier state, which the node takes for the latest.
    Earlier,
    /// The node takes the server for a new one.
    New,
    /// A state that never existed.
    Mixed,
}

/// The number of each verdict, by the description of a case.
type Verdicts = BTreeMap<String, BTreeMap<Verdict, usize>>;

/// A store after some use: the files that a killed Redis left, and a digest of the content after each answered call.
struct RecordedStore {
    test: RedisTestStore,
    workload: Workload,
    files: PathBuf,
    states: Vec<State>,
    /// Final number of entries of the ledger and of the audit log.
    entries: i64,
}

/// The state when a call was answered: the size of the append-only file, and a digest of all records.
struct State {
    bytes: u64,
    records: u64,
}

/// Records the state after each answered call.
struct StateRecorder<'a> {
    server: &'a RedisServer,
    states: Vec<State>,
}

/// Returns a store on a server with the shipped settings for persistence.
fn store_with_shipped_settings() -> RedisTestStore {
    let lines = RedisServer::shipped_persistence();
    test_store_with_config(&lines.iter().map(String::as_str).collect::<Vec<_>>(), RETENTION)
}

/// Returns the directory of the append-only file.
fn files_of(server: &RedisServer) -> PathBuf {
    server.directory().join("appendonlydir")
}

/// Returns the newest file to which Redis appends.
fn appended_file(directory: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".incr.aof"));
    files.sort();
    files.pop().unwrap()
}

/// Returns a digest of all records, without other keys.
fn digest(server: &RedisServer) -> u64 {
    let mut names: Vec<_> =
        key_names(server).into_iter().filter_map(|name| Some((parse_name_in(ALL, &name)?, name))).collect();
    names.sort_by(|one, other| one.1.cmp(&other.1));
    let mut hasher = DefaultHasher::new();
    for (key, name) in names {
        let mut values = value_bytes(server, &key, &name);
        values.sort();
        (name, values).hash(&mut hasher);
    }
    hasher.finish()
}

impl StepObserver for StateRecorder<'_> {
    async fn record(&mut self, _: &'static str) {
        let bytes = appended_file(&files_of(self.server)).metadata().unwrap().len();
        self.states.push(State { bytes, records: digest(self.server) });
    }
}

/// Returns the number of entries of the append-only lists.
fn count_entries(server: &RedisServer) -> i64 {
    let grows = |name: &Vec<u8>| parse_name_in(&[&LEDGER, &AUDIT_LOG], name).is_some();
    key_names(server)
        .into_iter()
        .filter(grows)
        .map(|name| server.answer(&[b"LLEN", &name[..]]).integer().unwrap())
        .sum()
}

/// Makes Redis rewrite its append-only file, and waits for the end.
fn rewrite_file(server: &RedisServer) {
    server.answer(&["BGREWRITEAOF"]);
    sakshi_kit::redis::eventually("a rewritten file", TIMEOUT, || {
        let is_off = |field: &str| server.info(field).is_some_and(|value| value == "0");
        (is_off("aof_rewrite_in_progress") && is_off("aof_rewrite_scheduled")).then_some(())
    });
}

impl RecordedStore {
    /// Runs two rounds of workload with a rewrite of the file between them, and kills Redis.
    async fn create() -> Self {
        let test = store_with_shipped_settings();
        let mut workload = Workload::create(&test, &mut ()).await;
        workload.run_round(&test, &mut ()).await;
        rewrite_file(&test.server);
        let mut recorder = StateRecorder { server: &test.server, states: vec![] };
        recorder.record("the rewriting").await;
        workload.run_round(&test, &mut recorder).await;
        let states = recorder.states;
        assert_eq!(test.store.check().await, Ok(()));
        let entries = count_entries(&test.server);
        test.server.kill9();
        let files = test.server.directory().join("kept");
        copy(&files_of(&test.server), &files);
        Self { test, workload, files, states, entries }
    }

    /// Starts Redis with the files after a change. Returns the verdicts of the node that was running, and of a new
    /// node.
    async fn restart_and_judge(&self, change: impl FnOnce(&Path)) -> [Verdict; 2] {
        let server = &self.test.server;
        server.kill9();
        let directory = files_of(server);
        copy(&self.files, &directory);
        change(&directory);
        if !server.try_restart() {
            return [Verdict::NoStart; 2];
        }
        // The new node is asked first, because the other one records a loss that it detects.
        let (content, is_short) = (digest(server), count_entries(server) < self.entries);
        let fresh =
            match RedisStore::open(options(standalone(&server.url()), Arc::clone(&self.test.clock), RETENTION)).await {
                Ok(fresh) => {
                    self.verdict(fresh.check().await, content, || async {
                        Reading::take(&fresh, &self.workload, self.test.now()).await
                    })
                    .await
                }
                Err(error) => self.verdict(Err(error), content, || async { Reading::default() }).await,
            };
        let old = || async { Reading::take(self.test.store(), &self.workload, self.test.now()).await };
        let old = self.verdict(check_when_reachable(&self.test.store).await, content, old).await;
        assert!(!is_short || old == Verdict::DataLost, "entries of a ledger or of the audit log are missing: {old:?}");
        [old, fresh]
    }

    /// Returns the verdict of a node, from its check of the store, a digest of the content, and its answers to queries.
    async fn verdict<F: Future<Output = Reading>>(
        &self,
        check: Result<(), StoreError>,
        content: u64,
        read: impl FnOnce() -> F,
    ) -> Verdict {
        match check {
            Err(StoreError::DataLost(_)) => return Verdict::DataLost,
            Err(error) => {
                assert!(!error.to_string().contains("panicked"), "{error}");
                return Verdict::Refused;
            }
            Ok(()) => {}
        }
        let index = self.states.iter().rposition(|state| state.records == content);
        match index {
            Some(last) if last + 1 == self.states.len() => Verdict::Whole,
            Some(_) => Verdict::Earlier,
            None if self.test.server.answer(&["EXISTS", "{p00}clients:"]).integer() == Some(0) => Verdict::New,
            None if read().await.refusals().next().is_some() => Verdict::Refused,
            None => Verdict::Mixed,
        }
    }
}

/// Runs the health check of a store once it reaches Redis again.
async fn check_when_reachable(store: &RedisStore) -> Result<(), StoreError> {
    let started = Instant::now();
    loop {
        match store.check().await {
            Err(StoreError::Unavailable(_)) if started.elapsed() < TIMEOUT => {
                std::thread::park_timeout(Duration::from_millis(2));
            }
            outcome => return outcome,
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn count_verdicts(verdicts: &mut Verdicts, case: &str, [old, fresh]: [Verdict; 2]) {
    for (node, verdict) in [("a node that worked", old), ("a node that starts", fresh)] {
        *verdicts.entry(format!("{case}, {node}")).or_default().entry(verdict).or_default() += 1;
    }
}

fn print_verdicts(verdicts: &Verdicts) {
    for (case, verdicts) in verdicts {
        eprintln!("{case}: {verdicts:?}");
    }
}

/// Returns a random number below a bound; 0 for the bound 0.
fn random_below(random: &mut Random, bound: u64) -> u64 {
    random.below(bound.max(1))
}

#[test]
fn a_cut_file_is_an_earlier_state_and_a_node_that_saw_more_reports_it() {
    run(async {
        let store = RecordedStore::create().await;
        let (_, mut random) = Random::of_this_run();
        let (first, last) = (store.states[0].bytes, store.states.last().unwrap().bytes);
        let mut verdicts = Verdicts::default();
        for _ in 0..case_count("SAKSHI_AOF_CASES", 5, 200) {
            let length = first + random_below(&mut random, last - first);
            let verdicts_of_nodes = store
                .restart_and_judge(|files| {
                    fs::OpenOptions::new().write(true).open(appended_file(files)).unwrap().set_len(length).unwrap();
                })
                .await;
            for verdict in verdicts_of_nodes {
                assert!(!matches!(verdict, Verdict::NoStart | Verdict::New), "{length}: {verdict:?}");
            }
            count_verdicts(&mut verdicts, "cut", verdicts_of_nodes);
        }
        let undamaged = store.restart_and_judge(|_| {}).await;
        assert_eq!(undamaged, [Verdict::Whole; 2]);
        print_verdicts(&verdicts);
    });
}

#[test]
fn a_flipped_bit_of_a_rewritten_file_keeps_redis_from_starting() {
    run(async {
        let store = RecordedStore::create().await;
        let (_, mut random) = Random::of_this_run();
        let mut verdicts = Verdicts::default();
        for number in 0..case_count("SAKSHI_AOF_CASES", 5, 200) {
            let mut file = "appended";
            let change = |files: &Path| {
                let base = fs::read_dir(files)
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    .find(|path| path.to_string_lossy().contains(".base."));
                let path = if number.is_multiple_of(4) { base.unwrap() } else { appended_file(files) };
                file = if number.is_multiple_of(4) { "base" } else { "appended" };
                let mut bytes = fs::read(&path).unwrap();
                let byte = usize::try_from(random_below(&mut random, bytes.len() as u64)).unwrap();
                bytes[byte] ^= 1 << random_below(&mut random, 8);
                fs::write(path, bytes).unwrap();
            };
            let verdicts_of_nodes = store.restart_and_judge(change).await;
            // The base file, which Redis rewrites, has a checksum.
            assert!(file != "base" || verdicts_of_nodes == [Verdict::NoStart; 2], "{verdicts_of_nodes:?}");
            count_verdicts(&mut verdicts, file, verdicts_of_nodes);
        }
        print_verdicts(&verdicts);
    });
}

/// A change of the files in a directory.
type Damage = fn(&Path);

/// Damages to the files of a killed Redis, with their descriptions.
const DAMAGES: [(&str, Damage); 6] = [
    ("the manifest is gone", |files| fs::remove_file(manifest(files)).unwrap()),
    ("the manifest is empty", |files| fs::write(manifest(files), "").unwrap()),
    ("a name in the manifest is changed", |files| {
        let text = fs::read_to_string(manifest(files)).unwrap();
        fs::write(manifest(files), text.replace(".incr.", ".incq.")).unwrap();
    }),
    ("the manifest lacks the appended file", |files| {
        let text = fs::read_to_string(manifest(files)).unwrap();
        let remaining: Vec<&str> = text.lines().filter(|line| !line.contains(".incr.")).collect();
        fs::write(manifest(files), remaining.join("\n") + "\n").unwrap();
    }),
    ("the appended file is gone", |files| fs::remove_file(appended_file(files)).unwrap()),
    ("all files are gone", |files| {
        fs::remove_dir_all(files).unwrap();
    }),
];

/// Returns the path of the manifest, which lists the files.
fn manifest(files: &Path) -> PathBuf {
    files.join("appendonly.aof.manifest")
}

#[test]
fn damaged_files_keep_redis_from_starting_or_are_reported_as_data_loss() {
    run(async {
        let store = RecordedStore::create().await;
        for (description, damage) in DAMAGES {
            let [old, fresh] = store.restart_and_judge(damage).await;
            eprintln!("{description}: a node that worked {old:?}, a node that starts {fresh:?}");
            assert!(matches!(old, Verdict::NoStart | Verdict::DataLost), "{description}: {old:?}");
        }
        assert_eq!(store.restart_and_judge(|_| {}).await, [Verdict::Whole; 2]);
    });
}

/// Opens transactions until Redis is down. Collects the ids of the answered calls.
async fn open_until_killed(test: &RedisTestStore, client: &ClientId, answered: &mut BTreeSet<TxnId>) {
    loop {
        let open = build_opening_with_hook(test, client, None);
        let id = open.pending.id;
        match test.store.open_transaction(open).await {
            Ok(OpenOutcome::Opened { .. }) => answered.insert(id),
            Err(StoreError::Unavailable(_) | StoreError::Overloaded) => return,
            other => panic!("{other:?}"),
        };
    }
}

/// The outcome of kills during rewrites of the file.
struct KillOutcome {
    /// Number of kills while Redis rewrote its file.
    kills_during_rewrite: usize,
    /// Number of transactions whose opening was answered.
    answered: usize,
    /// Number of answered transactions that are missing afterwards.
    lost: usize,
    /// True if a node reported the loss of data.
    is_noticed: bool,
}

/// Kills Redis repeatedly while it rewrites its file, until a node reports a loss.
async fn kill_while_rewriting(settings: &[&str], kills: usize, random: &mut Random) -> KillOutcome {
    let test = test_store_with_config(settings, RETENTION);
    let client = client_with(&test, 1_000_000).await;
    let (mut answered, mut kills_during_rewrite, mut is_noticed) = (BTreeSet::new(), 0, false);
    for _ in 0..kills {
        // A rewrite that takes long enough to be hit: microseconds for each key.
        test.server.answer(&["CONFIG", "SET", "rdb-key-save-delay", "2000"]);
        test.server.answer(&["BGREWRITEAOF"]);
        let killer = async {
            tokio::time::sleep(Duration::from_micros(random_below(random, 40_000))).await;
            kills_during_rewrite +=
                usize::from(test.server.info("aof_rewrite_in_progress").is_some_and(|value| value == "1"));
            test.server.kill9();
        };
        futures_util::future::join(killer, open_until_killed(&test, &client, &mut answered)).await;
        test.server.restart();
        match check_when_reachable(&test.store).await {
            Ok(()) => {}
            Err(StoreError::DataLost(_)) => {
                is_noticed = true;
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let lost = count_lost(&test, &answered).await;
    if !is_noticed {
        let audits = test.store.audit().await.unwrap();
        assert!(audits.iter().all(crate::Audit::is_clean), "{audits:?}");
    }
    KillOutcome { kills_during_rewrite, answered: answered.len(), lost, is_noticed }
}

/// Accepts the loss, if there is one. Returns the number of missing transactions.
async fn count_lost(test: &RedisTestStore, answered: &BTreeSet<TxnId>) -> usize {
    let _ = test.store.accept_loss().await;
    let mut lost = 0;
    for id in answered {
        lost += usize::from(test.store.load_transaction(*id).await.unwrap().is_none());
    }
    lost
}

#[test]
fn kills_during_a_rewrite_of_the_file_lose_no_answered_step() {
    let (_, mut random) = Random::of_this_run();
    let kills = case_count("SAKSHI_AOF_CASES", 5, 200);
    run(async {
        let always = RedisServer::shipped_persistence();
        let always: Vec<&str> = always.iter().map(String::as_str).collect();
        assert!(
            always.contains(&"appendfsync always") && always.contains(&"no-appendfsync-on-rewrite no"),
            "{always:?}"
        );
        let KillOutcome { kills_during_rewrite, answered, lost, .. } =
            kill_while_rewriting(&always, kills, &mut random).await;
        eprintln!(
            "appendfsync always: {kills} kills, {kills_during_rewrite} during a rewrite: {lost} of {answered} answered \
                calls lost"
        );
        assert!(lost == 0 && answered > kills && kills_during_rewrite > 0);
        let everysec: Vec<&str> = always.iter().copied().chain(["appendfsync everysec"]).collect();
        let KillOutcome { kills_during_rewrite, answered, lost, is_noticed } =
            kill_while_rewriting(&everysec, kills, &mut random).await;
        eprintln!(
            "appendfsync everysec: at most {kills} kills, {kills_during_rewrite} during a rewrite: {lost} of \
                {answered} lost, noticed: {is_noticed}"
        );
        assert!(answered > 0 && (lost == 0 || is_noticed), "{lost} of {answered}");
    });
}
