//! The Redis store under the properties of every store, and under what its keys and scripts promise,
//! each on a real server of its own.

mod changes;
mod nodes;
mod presence;

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use sakshi_domain::clock::{Clock, ManualClock, SystemClock};
use sakshi_domain::time::Timestamp;
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use self::server::RedisServer;
use super::{NodeId, RedisClock, RedisOptions, RedisStore};
use crate::conformance::World;
use crate::conformance::fixture::RETENTION;
use crate::store::Store;
use crate::vault::Vault;

#[path = "../../../../../tests/harness/redis.rs"]
pub(super) mod server;

/// A store on a server of its own, on a clock that the test moves. Its connections live on a thread
/// of their own, as they do in a process with many arbiters.
struct Universe {
    store: RedisStore,
    clock: Arc<ManualClock>,
    server: RedisServer,
    // Ends the thread of the connections.
    end: Option<oneshot::Sender<()>>,
    connections: Option<JoinHandle<()>>,
}

fn options(server: &RedisServer, clock: Arc<ManualClock>) -> RedisOptions {
    RedisOptions {
        servers: server.url().parse().unwrap(),
        wait_replicas: 0,
        node: NodeId::generate(),
        vault: Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap()),
        retention: RETENTION,
        max_waiting: 4_096,
        clock: RedisClock::Given(clock),
    }
}

fn universe() -> Universe {
    // Whole seconds from a moment that the server has not reached, so that it expires nothing.
    let start = Timestamp::from_millis((SystemClock.now().seconds() + 3_600) * 1_000);
    let clock = Arc::new(ManualClock::starting_at(start));
    let server = RedisServer::start(&[]);
    let options = options(&server, Arc::clone(&clock));
    let (opened, store) = std::sync::mpsc::channel();
    let (end, ended) = oneshot::channel();
    let connections = Builder::new().name("connections".into()).spawn(move || {
        crate::conformance::run(async move {
            opened.send(RedisStore::open(options).await.unwrap()).unwrap();
            let _ = ended.await;
        });
    });
    Universe { store: store.recv().unwrap(), clock, server, end: Some(end), connections: Some(connections.unwrap()) }
}

impl Drop for Universe {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(connections) = self.connections.take() {
            connections.join().unwrap();
        }
    }
}

impl World for Universe {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

mod conformance {
    use super::universe;

    crate::store_conformance!(universe());
}
