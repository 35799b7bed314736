//! The Redis store: the conformance suite of all stores, and the guarantees of its keys and scripts. Each test has its
//! own real server.

mod appended;
mod batches;
mod canary;
mod cluster;
mod credentials;
mod data_loss;
mod engines;
mod equality;
mod expiry;
mod failures;
mod flips;
mod installation;
mod inventory;
mod limits;
mod lost_replies;
mod membership;
mod models;
mod moving;
mod moving_back;
mod nodes;
mod notices;
mod outbox;
mod pressure;
mod released;
mod reseal;
mod scans;
mod schema;
mod unpolled_futures;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use sakshi_domain::clock::{Clock, ManualClock, SystemClock};
use sakshi_domain::time::Timestamp;
use tokio::sync::oneshot;

use self::server::RedisServer;
use self::server::resp::Reply;
use super::{NodeId, RedisOptions, RedisServers, RedisStore, RedisTopology};
use crate::conformance::TestStore;
use crate::conformance::fixture::RETENTION;
use crate::installation::test_ownership;
use crate::vault::test_vault;
use crate::{Retention, SCHEMA, Store};

pub(super) use sakshi_kit::redis as server;

/// A store on its own servers, with a clock that the test advances. The connections are opened on a separate thread, as
/// in a process with many arbiters.
struct RedisTestStore<S = RedisServer> {
    store: RedisStore,
    clock: Arc<ManualClock>,
    server: S,
    /// Ends the thread with the connections when it is dropped.
    end: Option<oneshot::Sender<()>>,
    connections: Option<JoinHandle<()>>,
}

/// Returns a store on a fresh server.
fn test_store() -> RedisTestStore {
    test_store_with_retention(RETENTION)
}

fn test_store_with_retention(retention: Retention) -> RedisTestStore {
    test_store_with_config(&[], retention)
}

/// Returns a store on a server with these lines in its `redis.conf`.
fn test_store_with_config(lines: &[&str], retention: Retention) -> RedisTestStore {
    let server = RedisServer::start(lines);
    let servers = standalone(&server.url());
    connect_store(server, servers, retention)
}

/// Returns the settings of a single server at a URL.
pub(crate) fn standalone(url: &str) -> RedisServers {
    RedisServers::new(&[url], RedisTopology::Standalone).unwrap()
}

/// Returns options with a sealing key and an old key.
fn options(servers: RedisServers, clock: Arc<ManualClock>, retention: Retention) -> RedisOptions {
    RedisOptions {
        servers,
        wait_replicas: 0,
        node: NodeId::generate(),
        vault: Arc::new(test_vault(&[7, 6])),
        retention,
        max_waiting: 4_096,
        must_persist: false,
        waits_at_start: false,
        ownership: test_ownership(),
        schema: &SCHEMA,
        clock: Some(clock),
    }
}

/// Returns a clock that starts at a whole second in the future, so that the server expires nothing by its own clock.
fn test_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::starting_at(Timestamp::from_millis((SystemClock.now().seconds() + 3_600) * 1_000)))
}

/// Opens a store on servers that the test has started.
fn connect_store<S>(server: S, servers: RedisServers, retention: Retention) -> RedisTestStore<S> {
    let clock = test_clock();
    let options = options(servers, Arc::clone(&clock), retention);
    let (opened, store) = std::sync::mpsc::channel();
    let (end, ended) = oneshot::channel();
    let connections = Builder::new().name("connections".into()).spawn(move || {
        crate::conformance::run(async move {
            opened.send(RedisStore::open(options).await.unwrap()).unwrap();
            let _ = ended.await;
        });
    });
    RedisTestStore {
        store: store.recv().unwrap(),
        clock,
        server,
        end: Some(end),
        connections: Some(connections.unwrap()),
    }
}

/// Returns the names of all keys of a server. Ids in names may be any bytes.
fn key_names(server: &RedisServer) -> Vec<Vec<u8>> {
    let name = |reply: &Reply| if let Reply::Bulk(Some(name)) = reply { Some(name.clone()) } else { None };
    server.answer(&["KEYS", "*"]).members().iter().filter_map(name).collect()
}

impl<S> Drop for RedisTestStore<S> {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(connections) = self.connections.take() {
            connections.join().unwrap();
        }
    }
}

impl<S> TestStore for RedisTestStore<S> {
    fn store(&self) -> &Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    fn loses_answers(&self) -> bool {
        self.store.shared.faults.replies_are_lost.load(Ordering::SeqCst)
    }
}

impl RedisTestStore {
    /// Returns the options of a node on the same server and clock.
    fn options(&self) -> RedisOptions {
        options(standalone(&self.server.url()), Arc::clone(&self.clock), self.store.shared.retention)
    }

    /// Opens the store as another node, on the same server and clock.
    async fn another_node(&self) -> RedisStore {
        RedisStore::open(self.options()).await.unwrap()
    }
}

mod conformance {
    use super::test_store;

    crate::store_conformance!(test_store());
}
