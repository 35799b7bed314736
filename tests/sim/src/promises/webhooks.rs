//! Promises about webhooks.

use sakshi_domain::delivery::{Attempt, AttemptPart, DeliveryOutcome, FailureReason, Sent};
use sakshi_domain::ids::TxnId;
use sakshi_kit::model::history::forbidden_steps;
use sakshi_store::engine::Place;
use serde_json::Value;

use super::{Violations, completed};
use crate::evidence::Evidence;
use crate::journal::{Fact, Observation};
use crate::replication::Shards;
use crate::shape::Deployment;
use crate::world::lock;

/// Checks that each webhook arrived at most once, and that its body is that of the polls.
pub(super) fn webhooks_are_sent_once(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    let facts = evidence.sim.journal.facts.borrow();
    for (key, arrivals) in &evidence.inbox {
        if arrivals.len() > 1 {
            violations.push(format!("{key}: its webhook was sent {} times", arrivals.len()));
        }
        let body = &arrivals[0].body;
        let stored = key.parse().ok().and_then(|txn: TxnId| Some((txn, evidence.transactions.get(&txn)?)));
        if stored.is_some_and(|(txn, _)| evidence.is_erased(txn)) {
            continue;
        }
        if let Some((txn, stored)) = stored {
            let passed = serde_json::from_slice::<Value>(body)
                .ok()
                .and_then(|body| body["data"]["verification_passed"].as_bool());
            if passed.is_none() || passed != completed(stored).map(|record| record.passed) {
                violations.push(format!("{key}: its webhook says {passed:?}, and it ended otherwise"));
            }
            let differs = |fact: &&Fact| {
                fact.txn == txn && matches!(&fact.observation, Observation::Completed(polled) if polled != body)
            };
            if facts.iter().any(|fact| differs(&fact)) {
                violations.push(format!("{key}: its webhook says something else than a poll"));
            }
        // A flow is polled by its id, which is also the deduplication key of its webhook.
        } else if !evidence.sim.journal.flow_polls.borrow().iter().all(|(flow, polled)| flow != key || polled == body) {
            violations.push(format!("{key}: its webhook says something else than a poll"));
        }
    }
    violations
}

/// Checks the steps of each webhook against the model of the outbox.
pub(super) fn webhooks_follow_the_model(evidence: &Evidence<'_>) -> Violations {
    let world = &evidence.sim.world;
    // The model tells the starts of a node apart by their ids; every start of a single node has the same id.
    if world.deployment == Deployment::Alone {
        Violations::new()
    } else {
        let is_on = |txn: &TxnId, shards: Shards| {
            Shards::of_key(world.deployment, Place::Partition(txn.partition()), txn.as_bytes()).intersects(shards)
        };
        forbidden_steps(&lock(&world.outbox_events), is_on)
    }
}

pub(super) fn receivers_get_only_their_own_data(evidence: &Evidence<'_>) -> Violations {
    // The last part of a receiver's URL is the number of its client.
    let tenant =
        |url: &str| url.rsplit('/').next().and_then(|number| number.parse().ok()).expect("a client's receiver");
    let all = evidence.inbox.iter().flat_map(|(key, arrivals)| arrivals.iter().map(move |arrival| (key, arrival)));
    let foreign = all.filter(|(_, arrival)| evidence.sim.has_foreign_data(tenant(&arrival.url), &arrival.body));
    foreign.map(|(key, _)| format!("{key}: its webhook holds what is of another client")).collect()
}

/// Compares the recorded attempts with the attempts that were made. The attempt of a dead process may be recorded as
/// unknown; no attempt is made to a name that does not resolve.
pub(super) fn outcomes_are_those_of_attempts(evidence: &Evidence<'_>) -> Violations {
    let transaction_attempts = evidence.transactions.iter().filter_map(|(txn, stored)| {
        let attempt = stored.delivery.as_ref()?.attempt?;
        Some((txn.to_string(), attempt, vec![txn.to_string()]))
    });
    let keys = evidence.sim.journal.report_keys.borrow();
    let flow_attempts = evidence.flow_deliveries.iter().flat_map(|(flow, stored)| {
        let own_keys: Vec<String> =
            keys.iter().filter(|(reported_flow, _)| reported_flow == flow).map(|(_, key)| key.clone()).collect();
        let recorded = stored.iter().flat_map(|stored| &stored.deliveries).filter_map(|row| row.delivery.attempt);
        recorded.map(move |attempt| (flow.clone(), attempt, own_keys.clone()))
    });
    transaction_attempts
        .chain(flow_attempts)
        .filter_map(|(subject, attempt, keys)| contradiction(evidence, &subject, attempt, &keys))
        .collect()
}

/// Returns a sentence if a recorded attempt contradicts the attempts made for the deduplication keys of its webhook.
fn contradiction(evidence: &Evidence<'_>, subject: &str, recorded: Attempt, keys: &[String]) -> Option<String> {
    let world = &evidence.sim.world;
    if let Some(failure) = recorded.failure {
        world.count_occurrence(format!("webhook failed: {}", failure.reason.as_str()));
    }
    let attempts = lock(&world.attempts);
    let made: Vec<Attempt> = keys.iter().filter_map(|key| attempts.get(key)).flatten().copied().collect();
    let unresolved = Attempt::unanswered(
        DeliveryOutcome::Unresolved,
        FailureReason::Dns,
        Some(AttemptPart::Name),
        recorded.duration_ms,
    );
    let a_node_may_have_died = !world.is_undisturbed() || lock(&world.faults).contains_key("mistaken-deaths");
    let is_lost = recorded == Attempt::unknown() && a_node_may_have_died;
    if !made.contains(&recorded) && !is_lost && recorded != unresolved {
        return Some(format!("{subject}: its webhook is recorded as {recorded:?}, and the attempts were {made:?}"));
    }
    let has_arrived = keys.iter().any(|key| evidence.inbox.contains_key(key));
    // With several keys, the arrival may be that of another webhook of the flow.
    let is_only_webhook = keys.len() == 1;
    let is_right = match recorded.outcome.sent() {
        Sent::Yes => has_arrived,
        Sent::No => !has_arrived || !is_only_webhook,
        Sent::Unknown => true,
    };
    (!is_right).then(|| format!("{subject}: its webhook is recorded as {recorded:?}, and arrived: {has_arrived}"))
}
