//! Nodes that die, leave, look dead and return.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::delivery::{Attempt, DeliveryOutcome};

use super::nodes::Node;
use super::server::{DURABLE, RedisServer, TIMEOUT, eventually};
use super::standalone;
use crate::conformance::fixture::{RETENTION, build_completion, open_pending};
use crate::engine::redis::RedisEngine;
use crate::operations::Store;
use crate::redis::nodes::membership::Presence;
use crate::redis::{NodeId, RedisServers};
use crate::vault::test_vault;
use crate::{CompleteOutcome, StoreError};

const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(100);

/// An interval longer than any test: the node sends one heartbeat when it starts.
const NEVER: Duration = Duration::from_secs(3_600);

/// Returns the settings of a server.
fn servers(server: &RedisServer) -> RedisServers {
    standalone(&server.url())
}

/// A successful attempt: its status and its duration in milliseconds.
const DELIVERED: Attempt = Attempt::from_status(200, 1);

/// Waits until a node holds this number of due deliveries.
async fn await_due(node: &Node, count: usize) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while node.due().await.len() != count {
        assert!(tokio::time::Instant::now() < deadline, "{:?} are due", node.due().await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_survivor_takes_over_deliveries_and_records_open_attempts_as_unknown() {
    let server = RedisServer::start(&[]);
    let (dying, survivor) = (
        Node::start(servers(&server), HEARTBEAT_INTERVAL).await,
        Node::start(servers(&server), HEARTBEAT_INTERVAL).await,
    );
    let client = dying.create_client().await;
    let (waiting, in_flight) = (dying.queue(&client).await, dying.queue(&client).await);
    assert_eq!(dying.store.claim_delivery(in_flight.delivery, in_flight.txn.into()).await, Ok(true));
    assert_eq!((dying.due().await, survivor.due().await), (vec![waiting.delivery, in_flight.delivery], vec![]));

    let id = dying.id.to_string();
    drop(dying);
    await_due(&survivor, 1).await;
    assert_eq!(survivor.due().await, [waiting.delivery]);
    let record = survivor.store.load_delivery(in_flight.txn.into()).await.unwrap().unwrap();
    assert_eq!(record.attempt.map(|attempt| attempt.outcome), Some(DeliveryOutcome::Unknown));
    assert_eq!(survivor.store.claim_delivery(waiting.delivery, waiting.txn.into()).await, Ok(true));
    let forgotten = || server.answer(&["ZSCORE", "{nodes}beats", &id]).text().is_none();
    eventually("the dead node to be forgotten", TIMEOUT, || forgotten().then_some(()));
}

#[tokio::test]
async fn a_leaving_node_starts_no_attempt_and_is_replaced_at_once() {
    let server = RedisServer::start(&[]);
    // The heartbeat of the leaving node would look new for an hour.
    let (leaving, survivor) =
        (Node::start(servers(&server), NEVER).await, Node::start(servers(&server), HEARTBEAT_INTERVAL).await);
    let client = leaving.create_client().await;
    let queued = leaving.queue(&client).await;
    assert_eq!(leaving.store.leave().await, Ok(()));
    assert_eq!(leaving.store.leave().await, Ok(()));
    assert_eq!(leaving.due().await, []);
    assert_eq!(leaving.store.claim_delivery(queued.delivery, queued.txn.into()).await, Ok(false));
    await_due(&survivor, 1).await;

    // A delivery that it queues after leaving is taken over as well.
    leaving.queue(&client).await;
    await_due(&survivor, 2).await;
}

#[tokio::test]
async fn a_watching_node_sees_the_snapshots_of_others_until_they_leave() {
    let server = RedisServer::start(&[]);
    let (watching, watched) = (
        Node::start(servers(&server), HEARTBEAT_INTERVAL).await,
        Node::start(servers(&server), HEARTBEAT_INTERVAL).await,
    );
    assert_eq!(watched.store.is_watched().await, Ok(false));
    watching.await_heartbeats(&server, 2);
    let others = || async { watching.store.watch_nodes().await.unwrap() };
    let [other] = &others().await[..] else { panic!("not one other node") };
    assert_eq!((other.node, &other.snapshot), (watched.id, &None));
    assert_eq!(watched.store.is_watched().await, Ok(true));
    for snapshot in [b"one", b"two"] {
        watched.store.publish_snapshot(snapshot.to_vec()).await.unwrap();
        assert_eq!(others().await[0].snapshot.as_deref(), Some(&snapshot[..]));
    }
    watched.store.leave().await.unwrap();
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !others().await.is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "the other node has left");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn no_node_counts_as_dead_during_an_outage_of_redis() {
    let server = RedisServer::start(DURABLE);
    let (first, second) = (
        Node::start(servers(&server), HEARTBEAT_INTERVAL).await,
        Node::start(servers(&server), HEARTBEAT_INTERVAL).await,
    );
    let client = first.create_client().await;
    let delivery = first.queue(&client).await.delivery;
    server.kill9();
    for node in [&first, &second] {
        assert!(matches!(node.store.check().await, Err(StoreError::Unavailable(_))));
    }
    server.restart();
    second.await_heartbeats(&server, 12);
    assert_eq!((first.due().await, second.due().await), (vec![delivery], vec![]));
}

#[tokio::test]
async fn a_node_declared_dead_by_mistake_returns_without_duplicate_attempts() {
    let server = RedisServer::start(&[]);
    // The node sends a heartbeat when it starts, and then none, as if it were paused.
    let (stopped, survivor) =
        (Node::start(servers(&server), NEVER).await, Node::start(servers(&server), HEARTBEAT_INTERVAL).await);
    let client = stopped.create_client().await;
    let (waiting, in_flight) = (stopped.queue(&client).await, stopped.queue(&client).await);
    assert_eq!(stopped.store.claim_delivery(in_flight.delivery, in_flight.txn.into()).await, Ok(true));
    await_due(&survivor, 1).await;
    assert_eq!(stopped.due().await, []);

    assert_eq!(survivor.store.claim_delivery(waiting.delivery, waiting.txn.into()).await, Ok(true));
    assert_eq!(stopped.store.claim_delivery(waiting.delivery, waiting.txn.into()).await, Ok(false));
    survivor.store.settle_delivery(waiting.delivery, waiting.txn.into(), DELIVERED).await.unwrap();
    stopped.store.settle_delivery(in_flight.delivery, in_flight.txn.into(), DELIVERED).await.unwrap();
    let record = survivor.store.load_delivery(in_flight.txn.into()).await.unwrap().unwrap();
    assert_eq!(record.attempt, Some(DELIVERED));

    stopped.store.shared.heartbeat(Presence::Alive).await.unwrap();
    assert!(stopped.heartbeat(&server).is_some());
    let new = stopped.queue(&client).await.delivery;
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while [stopped.due().await, survivor.due().await].concat() != [new] {
        assert!(tokio::time::Instant::now() < deadline, "the new delivery has no holder");
    }
}

#[tokio::test]
async fn deliveries_of_a_node_without_a_heartbeat_are_found_in_the_partitions() {
    let server = RedisServer::start(&[]);
    let stray = Node::start(servers(&server), NEVER).await;
    let client = stray.create_client().await;
    let (waiting, in_flight) = (stray.queue(&client).await, stray.queue(&client).await);
    assert_eq!(stray.store.claim_delivery(in_flight.delivery, in_flight.txn.into()).await, Ok(true));
    drop(stray);
    server.answer(&["DEL", "{nodes}beats"]);

    let survivor = Node::start(servers(&server), HEARTBEAT_INTERVAL).await;
    await_due(&survivor, 1).await;
    assert_eq!(survivor.due().await, [waiting.delivery]);
    let record = survivor.store.load_delivery(in_flight.txn.into()).await.unwrap().unwrap();
    assert_eq!(record.attempt.map(|attempt| attempt.outcome), Some(DeliveryOutcome::Unknown));
}

#[tokio::test]
async fn deliveries_of_a_store_that_was_moved_here_are_taken_over() {
    let server = RedisServer::start(&[]);
    let survivor = Node::start(servers(&server), HEARTBEAT_INTERVAL).await;
    let client = survivor.create_client().await;
    // The only node of a store in a file has an id that no node has here.
    let engine = Box::new(RedisEngine::new(Arc::clone(&survivor.store.shared)));
    let store_in_file = Store::new(engine, Arc::new(test_vault(&[7])), RETENTION, NodeId::ALONE, None);
    let mut queued = Vec::new();
    for _ in 0..2 {
        let id = open_pending(&survivor, &client).await.id;
        match store_in_file.complete_transaction(build_completion(id, 1)).await {
            Ok(CompleteOutcome::Completed { queued: Some(delivery), .. }) => queued.push(delivery),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store_in_file.claim_delivery(queued[0].id, queued[0].subject).await, Ok(true));
    await_due(&survivor, 1).await;
    assert_eq!(survivor.store.first_due_deliveries(10).await, Ok(vec![queued[1].clone()]));
    let record = survivor.store.load_delivery(queued[0].subject).await.unwrap().unwrap();
    assert_eq!(record.attempt.map(|attempt| attempt.outcome), Some(DeliveryOutcome::Unknown));
}
