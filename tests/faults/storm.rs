//! The storm: several rounds of load, each ended by SIGKILL at a random moment.

use std::time::Duration;

use sakshi_kit::node::TestNode;
use sakshi_kit::random::Random;
use sakshi_kit::storm::{Load, StormClient, rounds, summary};

const ROUNDS: u64 = 14;
const WORKERS: u64 = 12;
const IN_FLIGHT: u64 = 8;

#[tokio::test]
async fn no_kill_loses_an_answer_charges_twice_or_sends_a_webhook_twice() {
    let (seed, mut random) = Random::of_this_run();
    let in_flight = IN_FLIGHT.to_string();
    let settings =
        [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)];
    let mut node = TestNode::start_with(&settings).await;
    let client = StormClient::create(&node, false).await;
    let mut kills = 0;
    let rounds = rounds(ROUNDS);
    for _ in 0..rounds {
        let load = Load::start(WORKERS, |over| client.worker(&mut random).run(over));
        // Only the moment of the kill is random.
        let moment = Duration::from_millis(random.below(900));
        tokio::time::sleep(moment).await;
        kills += load.kill(&mut node, &mut random).await;
    }
    let evidence = client.assert_invariants(&node, kills * IN_FLIGHT, None).await;
    assert!(client.notes.accepted() as u64 > rounds, "seed {seed}: there was hardly any load");
    eprintln!("{kills} kills: {}", summary(&evidence));
}
