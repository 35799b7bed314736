//! One address that keeps connections open through the shipped haproxy, with three nodes on a Redis with few
//! connections.

use sakshi_kit::balancer::{Balancer, fix_ports};
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::{TestNode, on_redis};
use sakshi_kit::redis::{DURABLE, RedisServer};
use tokio::time::sleep;

use crate::honest::Honest;
use crate::one_address::{DESCRIPTORS, KEPT, assert_newcomers_are_served, attack, attacks};

const VISITS: usize = 40;

#[tokio::test]
async fn whatever_one_address_keeps_connections_open_with_others_are_served_through_haproxy() {
    let redis = RedisServer::start(DURABLE);
    let mut first = TestNode::unlaunched(&[]);
    for (key, value) in on_redis(&redis.url()) {
        first.set(key, &value);
    }
    first.set("SERVER__PUBLIC_BASE_URL", "https://verify.example");
    let mut nodes = vec![first.prepare_peer(), first.prepare_peer()];
    nodes.insert(0, first);
    for node in &mut nodes {
        fix_ports(node);
        node.launch_with_descriptors(DESCRIPTORS).await;
    }
    let balancer = Balancer::start(&nodes).await;
    let honest = Honest::of(&nodes[0]).await.through(&balancer.addresses);
    let alone = honest.visit(VISITS).await;
    let event = TestEvent::open(&nodes[0], &nodes[0].backend(100).await, &terms(5)).await;
    let address = balancer.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    for (what, request) in attacks(&event) {
        let attack = attack("127.0.0.66", address, &request);
        sleep(KEPT).await;
        honest.is_as_well_off_as(&alone, &format!("{what}, through haproxy")).await;
        assert_newcomers_are_served(&balancer.addresses, what).await;
        drop(attack);
    }
}
