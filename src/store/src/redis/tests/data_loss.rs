//! Servers that restart with less data than before, and servers whose settings let them lose data.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use sakshi_domain::ids::ClientId;

use super::server::{DURABLE, RedisServer};
use super::{RedisTestStore, connect_store, options, standalone, test_store_with_config};
use crate::StoreError;
use crate::conformance::fixture::{RETENTION, build_opening, client_with, open_pending};
use crate::conformance::{TestStore, run};
use crate::redis::{RedisOptions, RedisStore, RedisTopology};

/// Key of the audit log.
const AUDIT_LOG: &str = "{p00}audit:";

/// Returns a store on a server that persists its answers.
fn durable_store() -> RedisTestStore {
    test_store_with_config(DURABLE, RETENTION)
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// Saves the server's file in its current state.
fn save_file(server: &RedisServer, name: &str) {
    copy(&server.directory().join("appendonlydir"), &server.directory().join(name));
}

/// Restarts the server with a saved file.
fn restart_with_file(server: &RedisServer, name: &str) {
    server.kill9();
    let current = server.directory().join("appendonlydir");
    fs::remove_dir_all(&current).unwrap();
    copy(&server.directory().join(name), &current);
    server.restart();
}

/// Asserts that a node refuses every call because the store has lost data.
async fn assert_refused(store: &RedisStore, client: &ClientId) {
    let is_lost = |error: &StoreError| matches!(error, StoreError::DataLost(_));
    assert!(store.check().await.is_err_and(|error| is_lost(&error)));
    assert!(store.balance(client.clone()).await.is_err_and(|error| is_lost(&error)), "reads");
    assert!(store.append_audit("entry".into()).await.is_err_and(|error| is_lost(&error)), "writes");
}

#[test]
fn a_loss_detected_before_its_acceptance_is_not_recorded_after_it() {
    run(async {
        let test = durable_store();
        test.server.answer(&["DEL", "{canary}steps"]);
        let Err(StoreError::DataLost(since)) = test.store.check().await else { panic!("the loss was not detected") };
        test.store.accept_loss().await.unwrap();
        // A node that detected the loss before the acceptance knows of no acceptance.
        test.store.shared.note_loss(0, since).await.unwrap();
        test.store.check().await.unwrap();
        test.store.shared.note_loss(1, since).await.unwrap();
        assert!(matches!(test.store.check().await, Err(StoreError::DataLost(_))), "another loss");
    });
}

#[test]
fn an_older_file_stops_all_writes_until_an_operator_accepts_the_loss() {
    run(async {
        let test = durable_store();
        let client = client_with(&test, 5).await;
        let (other, server) = (test.another_node().await, &test.server);
        save_file(server, "older");
        open_pending(&test, &client).await;
        restart_with_file(server, "older");
        // The first call on a new connection detects the loss. The other node has seen no missing data, and is
        // informed.
        assert!(matches!(test.store.balance(client.clone()).await, Err(StoreError::DataLost(_))));
        assert_refused(&test.store, &client).await;
        assert_refused(&other, &client).await;
        let entries = server.answer(&["LLEN", AUDIT_LOG]);
        // A new node has seen nothing at all.
        let fresh = test.another_node().await;
        assert_refused(&fresh, &client).await;
        assert_eq!(server.answer(&["LLEN", AUDIT_LOG]), entries);

        let since = other.accept_loss().await.unwrap();
        assert!(since.is_some());
        for store in [&test.store, &other, &fresh] {
            assert_eq!(store.check().await, Ok(()));
            assert_eq!(store.balance(client.clone()).await, Ok(Some(5)), "the debit is lost with its transaction");
        }
        assert_eq!(other.accept_loss().await, Ok(None), "nothing is missing any more");
        assert!(matches!(
            fresh.open_transaction(build_opening(&test, &client)).await,
            Ok(crate::OpenOutcome::Opened { balance: 4 })
        ));
    });
}

#[test]
fn a_store_works_again_once_its_data_is_back() {
    run(async {
        let test = durable_store();
        let (server, first) = (&test.server, client_with(&test, 5).await);
        save_file(server, "older");
        let second = client_with(&test, 7).await;
        test.store.append_audit("entry".into()).await.unwrap();
        save_file(server, "newest");
        restart_with_file(server, "older");
        assert_refused(&test.store, &first).await;
        restart_with_file(server, "newest");
        assert_eq!(test.store.check().await, Ok(()));
        assert_eq!(test.store.balance(second).await, Ok(Some(7)));
    });
}

#[test]
fn a_missing_entry_of_the_audit_log_alone_is_detected() {
    run(async {
        let test = durable_store();
        let client = client_with(&test, 1).await;
        save_file(&test.server, "older");
        test.store.append_audit("entry".into()).await.unwrap();
        restart_with_file(&test.server, "older");
        assert_refused(&test.store, &client).await;
    });
}

/// Users as once shipped. With a `default` user without permissions, Redis drops every step of several commands when it
/// reads its file.
const FORGETFUL_USERS: &str = "user default off\nuser sakshi on nopass ~* &* +@all\n";

#[test]
fn a_new_node_detects_a_redis_that_drops_steps_of_several_commands() {
    run(async {
        let users = tempfile::NamedTempFile::new().unwrap();
        fs::write(users.path(), FORGETFUL_USERS).unwrap();
        let line = format!("aclfile {}", users.path().display());
        let server = RedisServer::start(&[DURABLE, &[&line]].concat());
        let url = format!("redis://sakshi:any@{}/", server.address());
        let test = connect_store(server, standalone(&url), RETENTION);
        let client = client_with(&test, 5).await;
        test.server.stop();
        test.server.restart();
        let fresh = RedisStore::open(options(standalone(&url), Arc::clone(&test.clock), RETENTION)).await.unwrap();
        assert_refused(&fresh, &client).await;
        assert_refused(&test.store, &client).await;
        fresh.accept_loss().await.unwrap().unwrap();
        assert_eq!(
            fresh.balance(client.clone()).await,
            Ok(Some(0)),
            "a client is created by one command, and a grant by several"
        );
        assert_eq!(test.store.check().await, Ok(()));
        client_with(&test, 2).await;
    });
}

#[test]
fn a_loss_on_one_master_of_a_cluster_stops_all_masters() {
    use super::server::groups::RedisCluster;
    use crate::redis::RedisServers;

    run(async {
        let cluster = RedisCluster::start(0, DURABLE);
        let servers = RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
        let test = connect_store(cluster, servers, RETENTION);
        let client = client_with(&test, 5).await;
        let partition = client.partition().number();
        let master = test.server.master_of(test.server.slot_of(&format!("{{p{partition:02}}}x")));
        save_file(master, "older");
        open_pending(&test, &client).await;
        restart_with_file(master, "older");
        let outcome = loop {
            match test.store.balance(client.clone()).await {
                Err(StoreError::Unavailable(_)) => {}
                other => break other,
            }
        };
        assert!(matches!(outcome, Err(StoreError::DataLost(_))), "{outcome:?}");
        let others: Vec<ClientId> = (0..8).map(|_| ClientId::generate()).collect();
        for other in &others {
            assert_refused(&test.store, other).await;
        }
        test.store.accept_loss().await.unwrap().unwrap();
        assert_eq!(test.store.balance(client).await, Ok(Some(5)));
    });
}

#[test]
fn a_server_that_may_lose_data_is_refused_at_start_and_by_health_checks() {
    run(async {
        let server = RedisServer::start(DURABLE);
        let must_persist = || RedisOptions {
            must_persist: true,
            ..options(standalone(&server.url()), super::test_clock(), RETENTION)
        };
        let store = RedisStore::open(must_persist()).await.unwrap();
        for (setting, unsafe_value, safe_value) in
            [("appendonly", "no", "yes"), ("maxmemory-policy", "allkeys-lru", "noeviction")]
        {
            server.answer(&["CONFIG", "SET", "maxmemory", "100mb"]);
            server.answer(&["CONFIG", "SET", setting, unsafe_value]);
            assert!(RedisStore::open(must_persist()).await.is_err(), "{setting}");
            let detected = loop {
                if let Err(error) = store.check().await {
                    break error;
                }
            };
            assert!(detected.to_string().contains(setting), "{detected}");
            server.answer(&["CONFIG", "SET", setting, safe_value]);
            assert_eq!(store.check().await, Ok(()), "{setting}");
        }
    });
}

/// Keeps the bits of the gauge of Redis' file; ignores other metrics.
struct FileWritten(Arc<AtomicU64>);

impl Recorder for FileWritten {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        if key.name() == "sakshi_redis_file_written" { Arc::clone(&self.0).into() } else { Gauge::noop() }
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn the_gauge_of_the_file_shows_the_fault_for_which_a_server_is_refused() {
    let file_written = FileWritten(Arc::new(AtomicU64::new(1.0_f64.to_bits())));
    metrics::with_local_recorder(&file_written, || {
        run(async {
            let server = RedisServer::start(DURABLE);
            server.answer(&["CONFIG", "SET", "appendonly", "no"]);
            let options = options(standalone(&server.url()), super::test_clock(), RETENTION);
            assert!(RedisStore::open(RedisOptions { must_persist: true, ..options }).await.is_err());
        });
    });
    assert_eq!(file_written.0.load(Ordering::Relaxed), 0.0_f64.to_bits());
}

#[test]
fn a_node_that_waits_at_start_refuses_calls_until_the_server_is_up() {
    run(async {
        let server = RedisServer::start(DURABLE);
        server.kill9();
        let options = || RedisOptions {
            waits_at_start: true,
            ..options(standalone(&server.url()), super::test_clock(), RETENTION)
        };
        let store = RedisStore::open(options()).await.unwrap();
        let client = ClientId::generate();
        assert!(matches!(store.balance(client.clone()).await, Err(StoreError::Unavailable(_))));
        assert!(store.check().await.is_err());
        let without_waiting = RedisOptions { waits_at_start: false, ..options() };
        assert!(RedisStore::open(without_waiting).await.is_err());
        server.restart();
        while store.check().await.is_err() {}
        assert_eq!(store.balance(client).await, Ok(None));
        assert_eq!(server.answer(&["ZCARD", "{nodes}beats"]).integer(), Some(1), "the node sends heartbeats");
    });
}

#[test]
fn an_unhealthy_node_gives_no_final_answer_from_its_reads() {
    run(async {
        let test = durable_store();
        let client = client_with(&test, 1).await;
        let pending = open_pending(&test, &client).await;
        assert_eq!(test.store.check().await, Ok(()));
        // The server becomes read-only, like a master that was replaced.
        test.server.answer(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        assert!(test.store.check().await.is_err());
        let unknown = sakshi_domain::ids::TxnId::generate(client.partition(), 0);
        assert!(test.store.load_transaction(unknown).await.is_err(), "not found");
        assert!(
            test.store.load_transaction(pending.id).await.unwrap().is_some(),
            "a pending transaction is no final answer"
        );
        test.advance(crate::conformance::fixture::WINDOW);
        assert!(test.store.load_transaction(pending.id).await.is_err(), "expired");
        test.server.answer(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        assert_eq!(test.store.check().await, Ok(()));
        assert_eq!(test.store.load_transaction(unknown).await, Ok(None));
    });
}
