//! The storm behind a balancer: load on three nodes while nodes and Redis are killed, round after round. The seed
//! chooses what is killed; the completed load decides when.

use sakshi_kit::random::Random;
use sakshi_kit::storm::{Load, Notes, StormClient, rounds, summary};

use crate::nodes::Nodes;

const ROUNDS: u64 = 10;
const WORKERS: u64 = 16;
/// Webhook attempts that one node may have in flight.
const IN_FLIGHT: u64 = 8;
/// Transactions completed between two kills.
const COMPLETED_BETWEEN_KILLS: usize = 60;

#[tokio::test]
async fn kills_of_nodes_and_redis_lose_no_answer_and_repeat_no_charge_or_webhook() {
    let (seed, mut random) = Random::of_this_run();
    let in_flight = IN_FLIGHT.to_string();
    let (mut nodes, balancer) = Nodes::start_balanced(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)]).await;
    let client = StormClient::create(&nodes.all[0], true).await.through(&balancer.addresses);
    let load = Load::start(WORKERS, |over| client.worker(&mut random).run(over));
    // Kills of Redis do not count, because each node then ends its own attempts.
    let mut node_kills = 0;
    let rounds = rounds(ROUNDS);
    for _ in 0..rounds {
        client.wait_for_growth("the load continues", Notes::accepted, COMPLETED_BETWEEN_KILLS).await;
        let victim = usize::try_from(random.below(3)).expect("a small number");
        let (kills_node, kills_redis) = match random.below(3) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        if kills_node {
            nodes.all[victim].kill().await;
            node_kills += 1;
        }
        if kills_redis {
            nodes.redis.kill9();
            nodes.redis.restart();
        }
        // The other nodes complete transactions before the killed node is back.
        client.wait_for_growth("the load continues", Notes::accepted, COMPLETED_BETWEEN_KILLS / 4).await;
        if kills_node {
            nodes.all[victim].launch().await;
        }
        balancer.wait_for_nodes(3).await;
    }
    load.end().await;
    let no_event = None;
    let evidence = client.assert_invariants(&nodes.all[0], node_kills * IN_FLIGHT, no_event).await;
    eprintln!("seed {seed}: {rounds} rounds, {node_kills} nodes killed: {}", summary(&evidence));
}
