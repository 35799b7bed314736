//! A node receives notices of transactions that it has a copy of, and of no others.

use std::time::{Duration, Instant};

use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::limits::PARTITIONS;
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

use super::nodes::Node;
use super::server::groups::RedisCluster;
use super::server::{DURABLE, RedisServer, TIMEOUT, eventually};
use super::standalone;
use crate::conformance::fixture::{completing, opened, opening};
use crate::redis::{RedisServers, RedisTopology};

const BEAT: Duration = Duration::from_millis(50);

fn await_listeners(servers: &[&RedisServer], count: usize) {
    eventually("listeners", TIMEOUT, || {
        let on =
            |server: &&RedisServer| Some(server.ask(&["PUBSUB", "CHANNELS", "sakshi:changes:*"]).ok()?.members().len());
        (servers.iter().filter_map(on).sum::<usize>() == count).then_some(())
    });
}

/// Ends transactions of one node that another keeps copies of: by an answer, and before their time. Checks the notices.
async fn is_heard(receiver: &mut Receiver<TxnId>, on: &Node, watching: &Node, client: &ClientId) {
    let (answered, cut_short) = (opened(on, client).await.id, opened(on, client).await.id);
    for id in [answered, cut_short] {
        assert!(watching.store.watch_transaction(id).await.unwrap().is_some());
    }
    on.store.complete_transaction(completing(answered, 1)).await.unwrap();
    assert_eq!(next(receiver).await, answered);
    on.store.expire_transaction(cut_short).await.unwrap();
    assert_eq!(next(receiver).await, cut_short);
}

async fn next(receiver: &mut Receiver<TxnId>) -> TxnId {
    timeout(TIMEOUT, receiver.recv()).await.expect("it is heard").expect("it listens")
}

#[tokio::test]
async fn notices_reach_other_nodes_even_after_redis_was_killed() {
    let server = RedisServer::start(DURABLE);
    let servers = || standalone(&server.url());
    let (one, other) = (Node::start(servers(), BEAT).await, Node::start(servers(), BEAT).await);
    let client = one.client().await;
    let mut changes = other.store.ended_elsewhere().unwrap();
    for _ in 0..2 {
        await_listeners(&[&server], 2);
        is_heard(&mut changes, &one, &other, &client).await;
        server.restart();
    }
}

#[tokio::test]
async fn only_other_nodes_with_a_copy_get_the_notice_of_an_end() {
    let server = RedisServer::start(DURABLE);
    let start = || Node::start(standalone(&server.url()), BEAT);
    let (opener, ender, looker) = (start().await, start().await, start().await);
    let client = opener.client().await;
    await_listeners(&[&server], 3);
    let mut heard = [&opener, &ender, &looker].map(|node| node.store.ended_elsewhere().unwrap());
    let (first, last) = (opened(&opener, &client).await.id, opened(&opener, &client).await.id);
    for node in [&looker, &ender, &looker] {
        node.store.load_transaction(first).await.unwrap();
        node.store.watch_transaction(last).await.unwrap();
    }
    for id in [first, last] {
        ender.store.complete_transaction(completing(id, 1)).await.unwrap();
    }
    assert_eq!([next(&mut heard[0]).await, next(&mut heard[0]).await], [first, last]);
    assert_eq!(next(&mut heard[2]).await, last, "of the first it had no copy");
    let again = opened(&opener, &client).await.id;
    looker.store.watch_transaction(again).await.unwrap();
    ender.store.complete_transaction(completing(again, 1)).await.unwrap();
    assert_eq!([next(&mut heard[0]).await, next(&mut heard[2]).await], [again; 2], "nothing in between");
    assert!(heard[1].is_empty(), "who ended them is told nothing");
}

/// Waits until two nodes listen to every partition.
fn await_shards(cluster: &RedisCluster) {
    eventually("listeners", TIMEOUT, || {
        let on = |server: &RedisServer| Some(server.ask(&["PUBSUB", "SHARDCHANNELS"]).ok()?.members().len());
        (cluster.nodes().iter().filter_map(on).sum::<usize>() == 2 * usize::from(PARTITIONS)).then_some(())
    });
}

#[tokio::test]
async fn notices_of_every_partition_arrive_on_a_cluster() {
    let cluster = RedisCluster::start(0, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let (one, other) = (Node::start(servers(), BEAT).await, Node::start(servers(), BEAT).await);
    await_shards(&cluster);
    let mut changes = other.store.ended_elsewhere().unwrap();
    for _ in 0..8 {
        let client = one.client().await;
        is_heard(&mut changes, &one, &other, &client).await;
    }
}

#[tokio::test]
async fn notices_arrive_on_a_cluster_after_a_failover() {
    let cluster = RedisCluster::start(1, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let (one, other) = (Node::start(servers(), BEAT).await, Node::start(servers(), BEAT).await);
    let client = one.client().await;
    await_shards(&cluster);
    let slot = cluster.slot_of(&format!("{{p{:02}}}", client.partition().number()));
    let old = cluster.kill_master_of(slot);
    cluster.await_failover(slot, old);
    until_heard(&one, &other, &client).await;
}

#[tokio::test]
async fn notices_arrive_on_a_cluster_after_their_slot_has_moved() {
    let cluster = RedisCluster::start(0, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let (one, other) = (Node::start(servers(), BEAT).await, Node::start(servers(), BEAT).await);
    let client = one.client().await;
    await_shards(&cluster);
    cluster.move_slot(cluster.slot_of(&format!("{{p{:02}}}", client.partition().number())), async {}).await;
    until_heard(&one, &other, &client).await;
}

/// Waits until the other node receives a notice of a transaction that the first one ends.
async fn until_heard(one: &Node, other: &Node, client: &ClientId) {
    let mut ended = other.store.ended_elsewhere().unwrap();
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < TIMEOUT, "nothing was heard of any");
        let opening = opening(one, client);
        let id = opening.pending.id;
        let ends = one.store.open_transaction(opening).await.is_ok()
            && other.store.watch_transaction(id).await.is_ok()
            && one.store.complete_transaction(completing(id, 1)).await.is_ok();
        // The listener may be on its way to the new master.
        if ends && timeout(BEAT, ended.recv()).await.is_ok_and(|heard| heard == Ok(id)) {
            break;
        }
    }
}
