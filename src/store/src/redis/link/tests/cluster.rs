//! Three masters that share the slots.

use std::time::Duration;

use redis::cmd;

use super::harness::TIMEOUT;
use super::harness::groups::RedisCluster;
use super::{NoteWriter, await_recovery, call_concurrently, increment, integer, with_short_limits};
use crate::redis::link::{Link, RedisServers, RedisTopology};

/// Returns a link to a cluster, with short time limits.
fn link(cluster: &RedisCluster) -> Link {
    Link::new(with_short_limits(RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap()))
}

#[tokio::test]
async fn calls_reach_the_master_of_their_slot_even_after_a_failover() {
    let cluster = RedisCluster::start(1, &[]);
    let link = link(&cluster);
    let key = |index: usize| format!("{{p{:02}}}:a", index % 64);
    let (outcomes, _) = call_concurrently(&link, 128, key).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let gets: Vec<_> = (0..64).map(|index| cmd("GET").arg(key(index)).to_owned()).collect();
    let values = link.read_all(gets.clone()).await.unwrap();
    assert!(values.iter().all(|value| integer(value) == 2), "{values:?}");

    let note_writer = NoteWriter::start(&link, 16, |worker| format!("{{p{worker:02}}}:noted"));
    let slot = cluster.slot_of("{p00}:a");
    let old = cluster.kill_master_of(slot);
    let took = await_recovery(&link, "{p00}:a", TIMEOUT).await;
    println!("answered {took:?} after a master of the cluster was killed");
    cluster.await_failover(slot, old);
    for index in 0..64 {
        await_recovery(&link, &key(index), Duration::from_secs(5)).await;
    }
    assert!(note_writer.stop().len() > 100);
    assert!(link.read_all(gets).await.unwrap().iter().all(|value| integer(value) >= 2));
}

#[tokio::test]
async fn calls_follow_a_slot_to_another_master() {
    let cluster = RedisCluster::start(0, &[]);
    let link = link(&cluster);
    let key = "{moving}:a";
    assert_eq!(increment(&link, key).await, Ok(1));
    let midway = async {
        // The key has left the old master, which names the new one.
        assert_eq!(increment(&link, key).await, Ok(2));
    };
    cluster.move_slot(cluster.slot_of(key), midway).await;
    assert_eq!(increment(&link, key).await, Ok(3));
    assert_eq!(increment(&link, key).await, Ok(4));
}

#[tokio::test]
async fn unknown_owners_of_channels_are_queried() {
    let cluster = RedisCluster::start(0, &[]);
    let channels: Vec<String> = (0..64).map(|index| format!("{{p{index:02}}}ended")).collect();
    let shards = link(&cluster).shards_of(&channels).await;
    assert_eq!(shards.len(), 3);
    for (address, channels) in &shards {
        for channel in channels {
            assert_eq!(cluster.master_of(cluster.slot_of(channel)).port(), address.port, "{channel}");
        }
    }
    assert_eq!(shards.iter().map(|(_, channels)| channels.len()).sum::<usize>(), 64);
}
