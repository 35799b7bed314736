//! The storm: several rounds of load, each ended by SIGKILL at a random moment.

use std::time::Duration;

use sakshi_kit::node::TestNode;
use sakshi_kit::random::Random;
use sakshi_kit::storm::{Load, StormClient, rounds, summary};
use sakshi_kit::waiting::{TIMEOUT, eventually};

const ROUNDS: u64 = 14;
const WORKERS: u64 = 12;
/// Webhook attempts that may be in flight at a kill.
const IN_FLIGHT: u64 = 8;

#[tokio::test]
async fn kills_lose_no_answer_and_repeat_no_charge_or_webhook() {
    let (seed, mut random) = Random::of_this_run();
    let in_flight = IN_FLIGHT.to_string();
    let settings =
        [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)];
    let mut node = TestNode::start_with(&settings).await;
    let has_other_nodes = false;
    let client = StormClient::create(&node, has_other_nodes).await;
    let mut kills = 0;
    let rounds = rounds(ROUNDS);
    for round in 1..=rounds {
        let load = Load::start(WORKERS, |is_over| client.worker(&mut random).run(is_over));
        // Only the moment of the kill is random, unless a slow machine has hardly begun by then.
        let moment = Duration::from_millis(random.below(900));
        tokio::time::sleep(moment).await;
        let is_loaded = || async { (client.notes.accepted() as u64 > round).then_some(()) };
        eventually("the load of the rounds so far", TIMEOUT, is_loaded).await;
        kills += load.kill(&mut node, &mut random).await;
    }
    let (unknown_deliveries_max, no_event) = (kills * IN_FLIGHT, None);
    let evidence = client.assert_invariants(&node, unknown_deliveries_max, no_event).await;
    assert!(client.notes.accepted() as u64 > rounds, "seed {seed}: there was hardly any load");
    eprintln!("{kills} kills: {}", summary(&evidence));
}
