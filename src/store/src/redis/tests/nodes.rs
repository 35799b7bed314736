//! Several nodes on one Redis. Each has its own store, on the server's clock.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::delivery::DeliveryId;
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;
use zeroize::Zeroizing;

use super::server::{RedisServer, TIMEOUT, eventually};
use crate::Store;
use crate::Vault;
use crate::conformance::TestStore;
use crate::conformance::fixture::{RETENTION, client_with, open_and_complete};
use crate::installation::test_ownership;
use crate::redis::{NodeId, RedisOptions, RedisServers, RedisStore};

/// A delivery that a node has queued, and its transaction.
pub(super) struct Queued {
    pub(super) txn: TxnId,
    pub(super) delivery: DeliveryId,
}

/// A node of a store in Redis, by the server's clock.
pub(super) struct Node {
    pub(super) store: RedisStore,
    pub(super) id: NodeId,
}

impl Node {
    /// Starts a node with this interval between heartbeats.
    pub(super) async fn start(servers: RedisServers, interval: Duration) -> Self {
        let id = NodeId::generate();
        let options = RedisOptions {
            servers,
            wait_replicas: 0,
            node: id,
            vault: Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap()),
            retention: RETENTION,
            max_waiting: 4_096,
            must_persist: false,
            waits_at_start: false,
            ownership: test_ownership(),
            schema: &crate::SCHEMA,
            clock: None,
        };
        Self { store: RedisStore::open_with_heartbeats(options, interval).await.unwrap(), id }
    }

    /// Completes a transaction on this node, which queues a delivery.
    pub(super) async fn queue(&self, client: &ClientId) -> Queued {
        let (pending, delivery) = open_and_complete(self, client).await;
        Queued { txn: pending.id, delivery }
    }

    /// Returns the due deliveries of this node.
    pub(super) async fn due(&self) -> Vec<DeliveryId> {
        self.store.first_due_deliveries(100).await.unwrap().into_iter().map(|delivery| delivery.id).collect()
    }

    /// Creates a client with credits.
    pub(super) async fn create_client(&self) -> ClientId {
        client_with(self, 100).await
    }

    /// Returns the latest heartbeat of this node, if it has one.
    pub(super) fn heartbeat(&self, server: &RedisServer) -> Option<String> {
        server.answer(&["ZSCORE", "{nodes}beats", &self.id.to_string()]).text()
    }

    /// Waits until this node has sent `times` more heartbeats.
    pub(super) fn await_heartbeats(&self, server: &RedisServer, times: usize) {
        for _ in 0..times {
            let before = self.heartbeat(server);
            eventually("a heartbeat", TIMEOUT, || (self.heartbeat(server) != before).then_some(()));
        }
    }
}

impl TestStore for Node {
    fn store(&self) -> &Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn advance(&self, _: Duration) {
        unreachable!("the server's clock cannot be advanced");
    }
}
