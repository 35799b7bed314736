//! The conformance suite on a cluster of three masters, which refuses a script with keys of two slots or with
//! undeclared keys of other masters. `redis::lost_replies` loses replies meanwhile.

use std::sync::atomic::Ordering;

use super::server::groups::RedisCluster;
use super::{RedisTestStore, connect_store};
use crate::conformance::fixture::RETENTION;
use crate::redis::{RedisServers, RedisTopology};

/// Empties a cluster, and opens a store on it.
fn store_on_empty(cluster: &RedisCluster) -> RedisTestStore<()> {
    for node in cluster.nodes() {
        node.answer(&["FLUSHALL"]);
        node.answer(&["SCRIPT", "FLUSH"]);
    }
    let test = connect_store((), RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap(), RETENTION);
    test.store.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
    test
}

crate::store_conformance! {
    #[test]
    a_cluster_of_three_masters_has_every_property_of_a_store: cluster = RedisCluster::start(0, &[])
        => store_on_empty(&cluster)
}
