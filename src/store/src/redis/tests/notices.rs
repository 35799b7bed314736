//! Notices between nodes: a node receives notices of the transactions of which it has copies, and of no others.

use std::time::{Duration, Instant};

use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::limits::PARTITIONS;
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

use super::nodes::Node;
use super::server::groups::RedisCluster;
use super::server::{DURABLE, RedisServer, TIMEOUT, eventually};
use super::standalone;
use crate::conformance::fixture::{build_completion, build_opening, open_pending};
use crate::redis::{RedisServers, RedisTopology};

const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until this number of nodes listen to their channels on these servers.
fn await_listeners(servers: &[&RedisServer], count: usize) {
    eventually("listeners", TIMEOUT, || {
        let channels_on =
            |server: &&RedisServer| Some(server.ask(&["PUBSUB", "CHANNELS", "sakshi:changes:*"]).ok()?.members().len());
        (servers.iter().filter_map(channels_on).sum::<usize>() == count).then_some(())
    });
}

/// Ends two transactions of which another node has copies: by an answer, and by expiry. Checks the notices.
async fn assert_notices(receiver: &mut Receiver<TxnId>, on: &Node, watching: &Node, client: &ClientId) {
    let (answered, cut_short) = (open_pending(on, client).await.id, open_pending(on, client).await.id);
    for id in [answered, cut_short] {
        assert!(watching.store.watch_transaction(id).await.unwrap().is_some());
    }
    on.store.complete_transaction(build_completion(answered, 1)).await.unwrap();
    assert_eq!(next_notice(receiver).await, answered);
    on.store.expire_transaction(cut_short).await.unwrap();
    assert_eq!(next_notice(receiver).await, cut_short);
}

/// Waits for the next notice.
async fn next_notice(receiver: &mut Receiver<TxnId>) -> TxnId {
    timeout(TIMEOUT, receiver.recv()).await.expect("a notice arrives").expect("the node listens")
}

#[tokio::test]
async fn notices_reach_other_nodes_even_after_redis_was_killed() {
    let server = RedisServer::start(DURABLE);
    let servers = || standalone(&server.url());
    let (first, second) =
        (Node::start(servers(), HEARTBEAT_INTERVAL).await, Node::start(servers(), HEARTBEAT_INTERVAL).await);
    let client = first.create_client().await;
    let mut notices = second.store.ended_elsewhere().unwrap();
    for _ in 0..2 {
        await_listeners(&[&server], 2);
        assert_notices(&mut notices, &first, &second, &client).await;
        server.restart();
    }
}

#[tokio::test]
async fn only_other_nodes_with_a_copy_get_the_notice_of_an_end() {
    let server = RedisServer::start(DURABLE);
    let start = || Node::start(standalone(&server.url()), HEARTBEAT_INTERVAL);
    let (opener, ender, watcher) = (start().await, start().await, start().await);
    let client = opener.create_client().await;
    await_listeners(&[&server], 3);
    let mut notices = [&opener, &ender, &watcher].map(|node| node.store.ended_elsewhere().unwrap());
    let (first, last) = (open_pending(&opener, &client).await.id, open_pending(&opener, &client).await.id);
    for node in [&watcher, &ender, &watcher] {
        node.store.load_transaction(first).await.unwrap();
        node.store.watch_transaction(last).await.unwrap();
    }
    for id in [first, last] {
        ender.store.complete_transaction(build_completion(id, 1)).await.unwrap();
    }
    assert_eq!([next_notice(&mut notices[0]).await, next_notice(&mut notices[0]).await], [first, last]);
    assert_eq!(next_notice(&mut notices[2]).await, last, "it had no copy of the first");
    let again = open_pending(&opener, &client).await.id;
    watcher.store.watch_transaction(again).await.unwrap();
    ender.store.complete_transaction(build_completion(again, 1)).await.unwrap();
    assert_eq!(
        [next_notice(&mut notices[0]).await, next_notice(&mut notices[2]).await],
        [again; 2],
        "no other notice in between"
    );
    assert!(notices[1].is_empty(), "the node that ended them gets no notice");
}

/// Waits until two nodes listen to every partition.
fn await_shard_listeners(cluster: &RedisCluster) {
    eventually("listeners", TIMEOUT, || {
        let channels_on = |server: &RedisServer| Some(server.ask(&["PUBSUB", "SHARDCHANNELS"]).ok()?.members().len());
        (cluster.nodes().iter().filter_map(channels_on).sum::<usize>() == 2 * usize::from(PARTITIONS)).then_some(())
    });
}

#[tokio::test]
async fn notices_of_every_partition_arrive_on_a_cluster() {
    let cluster = RedisCluster::start(0, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let (first, second) =
        (Node::start(servers(), HEARTBEAT_INTERVAL).await, Node::start(servers(), HEARTBEAT_INTERVAL).await);
    await_shard_listeners(&cluster);
    let mut notices = second.store.ended_elsewhere().unwrap();
    for _ in 0..8 {
        let client = first.create_client().await;
        assert_notices(&mut notices, &first, &second, &client).await;
    }
}

#[tokio::test]
async fn notices_arrive_on_a_cluster_after_a_failover() {
    let cluster = RedisCluster::start(1, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let (first, second) =
        (Node::start(servers(), HEARTBEAT_INTERVAL).await, Node::start(servers(), HEARTBEAT_INTERVAL).await);
    let client = first.create_client().await;
    await_shard_listeners(&cluster);
    let slot = cluster.slot_of(&format!("{{p{:02}}}", client.partition().number()));
    let old = cluster.kill_master_of(slot);
    cluster.await_failover(slot, old);
    await_notice(&first, &second, &client).await;
}

#[tokio::test]
async fn notices_arrive_on_a_cluster_after_their_slot_has_moved() {
    let cluster = RedisCluster::start(0, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let (first, second) =
        (Node::start(servers(), HEARTBEAT_INTERVAL).await, Node::start(servers(), HEARTBEAT_INTERVAL).await);
    let client = first.create_client().await;
    await_shard_listeners(&cluster);
    cluster.move_slot(cluster.slot_of(&format!("{{p{:02}}}", client.partition().number())), async {}).await;
    await_notice(&first, &second, &client).await;
}

/// Waits until the second node receives a notice of a transaction that the first one ends.
async fn await_notice(first: &Node, second: &Node, client: &ClientId) {
    let mut ended = second.store.ended_elsewhere().unwrap();
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < TIMEOUT, "no notice arrived");
        let opening = build_opening(first, client);
        let id = opening.pending.id;
        let ends = first.store.open_transaction(opening).await.is_ok()
            && second.store.watch_transaction(id).await.is_ok()
            && first.store.complete_transaction(build_completion(id, 1)).await.is_ok();
        // The listener may not have reached the new master yet.
        if ends && timeout(HEARTBEAT_INTERVAL, ended.recv()).await.is_ok_and(|notice| notice == Ok(id)) {
            break;
        }
    }
}
