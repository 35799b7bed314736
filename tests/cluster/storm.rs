//! The storm behind a balancer: load on three nodes while nodes and Redis are killed, round after round. The seed
//! chooses the victim; the load before it, the time.

use sakshi_kit::random::Random;
use sakshi_kit::storm::{Load, Notes, StormClient, rounds, summary};

use crate::nodes::Nodes;

const ROUNDS: u64 = 10;
const WORKERS: u64 = 16;
/// Webhook attempts that one node may have in flight.
const IN_FLIGHT: u64 = 8;
/// Transactions completed between two kills.
const LOAD: usize = 60;

#[tokio::test]
async fn no_kill_of_a_node_or_of_redis_loses_an_answer_charges_twice_or_sends_a_webhook_twice() {
    let (seed, mut random) = Random::of_this_run();
    let in_flight = IN_FLIGHT.to_string();
    let (mut nodes, balancer) = Nodes::balanced(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)]).await;
    let client = StormClient::create(&nodes.all[0], true).await.through(&balancer.addresses);
    let load = Load::start(WORKERS, |over| client.worker(&mut random).run(over));
    // Kills of nodes only; after a kill of Redis, each node ends its own attempts.
    let mut kills = 0;
    let rounds = rounds(ROUNDS);
    for _ in 0..rounds {
        client.wait_for_growth("the load goes on", Notes::accepted, LOAD).await;
        let victim = usize::try_from(random.below(3)).expect("a small number");
        let (node, redis) = match random.below(3) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        if node {
            nodes.all[victim].kill().await;
            kills += 1;
        }
        if redis {
            nodes.redis.kill9();
            nodes.redis.restart();
        }
        // The others continue before the node is back.
        client.wait_for_growth("the load goes on", Notes::accepted, LOAD / 4).await;
        if node {
            nodes.all[victim].launch().await;
        }
        balancer.wait_for_nodes(3).await;
    }
    load.end().await;
    let evidence = client.assert_invariants(&nodes.all[0], kills * IN_FLIGHT, None).await;
    eprintln!("seed {seed}: {rounds} rounds, {kills} nodes killed: {}", summary(&evidence));
}
