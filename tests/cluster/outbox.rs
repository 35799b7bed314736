//! At-most-once delivery of webhooks when one of several nodes dies, stops or is paused. Each history is also held
//! against the model of the outbox.

use std::time::Duration;

use sakshi_kit::backend::Opened;
use sakshi_kit::outbox::outcomes;
use sakshi_kit::waiting::{TIMEOUT, eventually};

use crate::history::Observed;

/// Returns the outcomes of these attempts, sorted.
async fn outcomes_of(observed: &Observed, opened: &[Opened]) -> Vec<String> {
    outcomes(&observed.nodes.all[0].operator(), opened).await
}

#[tokio::test]
async fn another_node_sends_the_queue_of_a_dead_node_but_not_its_attempts_in_flight() {
    let mut observed = Observed::start(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    let opened = observed.approve(10, 2).await;
    // One is in flight, nine are queued, all at the third node.
    observed.receiver.wait_for(1).await;
    observed.nodes.all[2].kill().await;
    observed.receiver.answer_after(Duration::ZERO);
    observed.receiver.wait_for(10).await;
    assert_eq!(outcomes_of(&observed, &opened).await, [vec!["delivered"; 9], vec!["unknown"]].concat());
    observed.assert_follows_the_model(10, 9);
    observed.nodes.all[2].launch().await;
}

#[tokio::test]
async fn a_stopping_node_finishes_its_attempts_in_flight_and_hands_over_its_queue() {
    let mut observed = Observed::start(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    let opened = observed.approve(6, 1).await;
    observed.receiver.wait_for(1).await;
    observed.receiver.answer_after(Duration::from_secs(1));
    observed.nodes.all[1].restart().await;
    observed.receiver.wait_for(6).await;
    assert_eq!(outcomes_of(&observed, &opened).await, ["delivered"; 6]);
    observed.assert_follows_the_model(6, 1);
}

#[tokio::test]
async fn a_paused_node_that_resumes_sends_no_webhook_twice_and_ends_its_attempts() {
    // The two attempts that hang at the receiver end soon after the node resumes.
    let settings = [("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "2"), ("WEBHOOKS__TIMEOUT_MS", "10000")];
    let observed = Observed::start(&settings).await;
    let opened = observed.approve(12, 2).await;
    observed.receiver.wait_for(2).await;
    observed.nodes.all[2].process().pause().await;
    observed.receiver.answer_after(Duration::ZERO);
    observed.receiver.wait_for(12).await;
    assert_eq!(outcomes_of(&observed, &opened).await, [vec!["delivered"; 10], vec!["unknown"; 2]].concat());
    observed.nodes.all[2].process().signal("CONT");
    eventually("the paused node records the ends of its attempts", TIMEOUT, || async {
        // On a slow machine they have timed out meanwhile.
        let outcomes = outcomes_of(&observed, &opened).await;
        outcomes.iter().all(|outcome| outcome != "unknown").then_some(())
    })
    .await;
    // A new delivery by the resumed node ends after any delivery that it would repeat.
    let last = observed.approve(1, 2).await;
    assert_eq!(outcomes_of(&observed, &last).await, ["delivered"]);
    observed.assert_follows_the_model(13, 10);
}
