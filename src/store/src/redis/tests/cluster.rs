//! The properties of every store on a cluster of three masters, where a script that names keys of two slots, or touches
//! one that it does not name elsewhere, is refused. Replies are lost, as `redis::lost_replies` does it.

use std::sync::atomic::Ordering;

use super::server::groups::RedisCluster;
use super::{RedisTestStore, connected};
use crate::conformance::fixture::RETENTION;
use crate::redis::{RedisServers, RedisTopology};

/// Returns an emptied cluster, and a store that has not connected to it.
fn emptied(cluster: &RedisCluster) -> RedisTestStore<()> {
    for node in cluster.nodes() {
        node.answer(&["FLUSHALL"]);
        node.answer(&["SCRIPT", "FLUSH"]);
    }
    let test = connected((), RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap(), RETENTION);
    test.store.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
    test
}

crate::store_conformance! {
    a_cluster_of_three_masters_has_every_property_of_a_store: cluster = RedisCluster::start(0, &[]) => emptied(&cluster)
}
