//! One address that keeps connections open through the shipped haproxy, with three nodes on a Redis with few
//! connections.

use sakshi_kit::balancer::{Balancer, fix_ports};
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::{TestNode, on_redis};
use sakshi_kit::redis::{DURABLE, RedisServer};
use tokio::time::sleep;

use crate::honest::HonestClient;
use crate::one_address::{ATTACKER, DESCRIPTORS, HOLD_TIME, assert_newcomers_are_served, attack, attacks};

const VERIFICATIONS: usize = 40;

#[tokio::test]
async fn connections_kept_open_by_one_address_harm_no_other_client_behind_haproxy() {
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
    let honest = HonestClient::create(&nodes[0]).await.through(&balancer.addresses);
    let baseline = honest.measure(VERIFICATIONS).await;
    let event = TestEvent::open(&nodes[0], &nodes[0].backend_with_credits(100).await, &terms(5)).await;
    let address = balancer.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    for (attack_name, request) in attacks(&event) {
        let mut attack = attack(ATTACKER, address, &request);
        sleep(HOLD_TIME).await;
        assert!(attack.try_join_next().is_none(), "an attacker has ended");
        honest.assert_unharmed(&baseline, &format!("{attack_name}, through haproxy")).await;
        assert_newcomers_are_served(&balancer.addresses, attack_name).await;
        drop(attack);
    }
}
