//! Promises about webhooks.

use sakshi_domain::delivery::{Attempt, AttemptPart, DeliveryOutcome, FailureReason, Sent};
use sakshi_domain::ids::TxnId;
use serde_json::Value;

use super::{Found, completed};
use crate::diary::{Fact, Knowledge};
use crate::evidence::Evidence;
use crate::model::history::strays;
use crate::shape::Deployment;
use crate::world::lock;

pub(super) fn webhooks_are_sent_once(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let facts = evidence.sim.diary.facts.borrow();
    for (key, told) in &evidence.inbox {
        if told.len() > 1 {
            found.push(format!("{key}: its webhook was sent {} times", told.len()));
        }
        let body = &told[0].body;
        let kept = key.parse().ok().and_then(|txn: TxnId| Some((txn, evidence.transactions.get(&txn)?)));
        if kept.is_some_and(|(txn, _)| evidence.is_erased(txn)) {
            continue;
        }
        if let Some((txn, kept)) = kept {
            let says = serde_json::from_slice::<Value>(body)
                .ok()
                .and_then(|body| body["data"]["verification_passed"].as_bool());
            if says.is_none() || says != completed(kept).map(|record| record.passed) {
                found.push(format!("{key}: its webhook says {says:?}, and it ended otherwise"));
            }
            let is_other = |fact: &&Fact| {
                fact.txn == txn && matches!(&fact.learned, Knowledge::Completed(polled) if polled != body)
            };
            if facts.iter().any(|fact| is_other(&fact)) {
                found.push(format!("{key}: its webhook says something else than a poll"));
            }
        // A flow is polled by its id, which is also the deduplication key of its webhook.
        } else if !evidence.sim.diary.polled.borrow().iter().all(|(flow, polled)| flow != key || polled == body) {
            found.push(format!("{key}: its webhook says something else than a poll"));
        }
    }
    found
}

pub(super) fn webhooks_follow_the_model(evidence: &Evidence<'_>) -> Found {
    let world = &evidence.sim.world;
    // Each start of a single node has the same id.
    if world.deployment == Deployment::Alone { Found::new() } else { strays(world.deployment, &lock(&world.outbox)) }
}

pub(super) fn receivers_get_their_own(evidence: &Evidence<'_>) -> Found {
    // The last part of a receiver's URL is the number of its client.
    let tenant =
        |url: &str| url.rsplit('/').next().and_then(|number| number.parse().ok()).expect("a client's receiver");
    let told = evidence.inbox.iter().flat_map(|(key, told)| told.iter().map(move |told| (key, told)));
    let foreign = told.filter(|(_, told)| evidence.sim.has_foreign(tenant(&told.url), &told.body));
    foreign.map(|(key, _)| format!("{key}: its webhook holds what is of another client")).collect()
}

/// Compares the recorded attempts with those that were made. One whose process ended is recorded as unknown, and one to
/// a name that did not resolve is not made.
pub(super) fn outcomes_are_those_of_attempts(evidence: &Evidence<'_>) -> Found {
    let of_txns = evidence.transactions.iter().filter_map(|(txn, kept)| {
        let attempt = kept.delivery.as_ref()?.attempt?;
        Some((txn.to_string(), attempt, vec![txn.to_string()]))
    });
    let keys = evidence.sim.diary.report_keys.borrow();
    let of_flows = evidence.flows.iter().flat_map(|(flow, kept)| {
        let own: Vec<String> = keys.iter().filter(|(of, _)| of == flow).map(|(_, key)| key.clone()).collect();
        let recorded = kept.iter().flat_map(|kept| &kept.deliveries).filter_map(|one| one.delivery.attempt);
        recorded.map(move |attempt| (flow.clone(), attempt, own.clone()))
    });
    of_txns
        .chain(of_flows)
        .filter_map(|(subject, attempt, keys)| contradiction(evidence, &subject, attempt, &keys))
        .collect()
}

/// Describes how a recorded attempt contradicts those made for the keys of its webhook.
fn contradiction(evidence: &Evidence<'_>, subject: &str, recorded: Attempt, keys: &[String]) -> Option<String> {
    let world = &evidence.sim.world;
    if let Some(failure) = recorded.failure {
        world.reach(format!("webhook failed: {}", failure.reason.as_str()));
    }
    let attempts = lock(&world.attempts);
    let made: Vec<Attempt> = keys.iter().filter_map(|key| attempts.get(key)).flatten().copied().collect();
    let unresolved = Attempt::unanswered(
        DeliveryOutcome::Unresolved,
        FailureReason::Dns,
        Some(AttemptPart::Name),
        recorded.duration_ms,
    );
    let has_died = !world.is_undisturbed() || lock(&world.faults).contains_key("mistaken-deaths");
    let is_lost = recorded == Attempt::unknown() && has_died;
    if !made.contains(&recorded) && !is_lost && recorded != unresolved {
        return Some(format!("{subject}: its webhook is recorded as {recorded:?}, and the attempts were {made:?}"));
    }
    let has_arrived = keys.iter().any(|key| evidence.inbox.contains_key(key));
    let is_alone = keys.len() == 1;
    let is_right = match recorded.outcome.sent() {
        Sent::Yes => has_arrived,
        Sent::No => !has_arrived || !is_alone,
        Sent::Unknown => true,
    };
    (!is_right).then(|| format!("{subject}: its webhook is recorded as {recorded:?}, and arrived: {has_arrived}"))
}
