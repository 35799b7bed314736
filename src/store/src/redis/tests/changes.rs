//! What one node changes is heard by another.

use std::time::Duration;

use sakshi_domain::ids::ClientId;
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

use super::nodes::Node;
use super::server::groups::RedisCluster;
use super::server::{DURABLE, PLENTY, RedisServer, eventually};
use crate::redis::{RedisServers, RedisTopology};
use crate::store::Store;
use crate::transition::Change;

const BEAT: Duration = Duration::from_millis(50);

fn await_listeners(servers: &[&RedisServer], count: i64) {
    eventually("listeners", PLENTY, || {
        let on = |server: &&RedisServer| server.ask(&["PUBSUB", "NUMSUB", "sakshi:changes"]).ok()?.members().get(1)?.integer();
        (servers.iter().filter_map(on).sum::<i64>() == count).then_some(())
    });
}

async fn is_heard(receiver: &mut Receiver<Change>, on: &Node, client: &ClientId) {
    let (pending, _) = on.queue(client).await;
    let heard = timeout(PLENTY, receiver.recv()).await.expect("it is heard");
    assert_eq!(heard, Ok(Change::Transaction(pending.id)));
}

#[tokio::test]
async fn what_one_node_changes_is_heard_by_another_also_after_redis_was_killed() {
    let server = RedisServer::start(DURABLE);
    let servers = || server.url().parse().unwrap();
    let (one, other) = (Node::start(servers(), BEAT).await, Node::start(servers(), BEAT).await);
    let client = one.client().await;
    let mut changes = other.store.changes().unwrap();
    for _ in 0..2 {
        await_listeners(&[&server], 2);
        is_heard(&mut changes, &one, &client).await;
        server.restart();
    }
}

#[tokio::test]
async fn on_a_cluster_changes_of_every_partition_are_heard() {
    let cluster = RedisCluster::start(0, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let (one, other) = (Node::start(servers(), BEAT).await, Node::start(servers(), BEAT).await);
    await_listeners(&cluster.nodes().iter().collect::<Vec<_>>(), 2);
    let mut changes = other.store.changes().unwrap();
    for _ in 0..8 {
        let client = one.client().await;
        is_heard(&mut changes, &one, &client).await;
    }
}
