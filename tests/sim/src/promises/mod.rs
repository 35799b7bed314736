//! The promises of `docs/promises.md`, each as one check of a run's evidence.

mod events;
mod readings;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sakshi_domain::consent::ConsentAnswer;
use sakshi_domain::credits::EntryKind;
use sakshi_store::{Audit, CompletedRecord, StoredConsent, TransactionRecord};
use sakshi_wire::credits::StatementEntry;
use serde_json::{Value, json};

use self::events::{events_have_one_order, guests_are_checked_in_once, no_more_guests_than_places, people_are_known};
use self::readings::{
    checks_leave_a_consent, decisions_are_kept, lists_are_complete, operators_see_what_is_kept,
    statements_agree_with_ledgers,
};
use self::webhooks::{
    outcomes_are_those_of_attempts, receivers_get_their_own, webhooks_are_sent_once, webhooks_follow_the_model,
};

use crate::diary::{Fact, Knowledge};
use crate::evidence::{Evidence, StoredTransaction, since_start};
use crate::shape::Deployment;

/// The findings of a check.
type Found = Vec<String>;

/// A promise.
pub(crate) struct Promise {
    pub(crate) name: &'static str,
    /// True if it holds even if the store forgets acknowledged writes, in a failover without waiting.
    survives_loss: bool,
    check: fn(&Evidence<'_>) -> Found,
}

const fn promise(name: &'static str, survives_loss: bool, check: fn(&Evidence<'_>) -> Found) -> Promise {
    Promise { name, survives_loss, check }
}

/// All promises.
pub(crate) const PROMISES: [Promise; 24] = [
    promise("every answer is one that can be, and comes in time", false, nobody_saw_what_cannot_be),
    promise("a ledger adds up, and a transaction costs one credit", true, credits_are_conserved),
    promise("what was granted is there", false, grants_are_there),
    promise("nobody is refused for want of credits that are there", false, credits_are_used),
    promise("what was answered is kept", false, what_was_answered_is_kept),
    promise("a verification that has ended is in the register of consents once, and no other", true, consents_are_kept),
    promise("only what a resident answered within its window ends a verification", true, residents_end_verifications),
    promise("who asks about a verification is told what is so at that moment", false, each_answer_was_true_at_its_time),
    promise("an event never has more guests than places", true, no_more_guests_than_places),
    promise(
        "a person who registers again is known, and has one place where nobody registers twice",
        true,
        people_are_known,
    ),
    promise(
        "a guest is checked in once, at the time and the gate that everybody is told",
        false,
        guests_are_checked_in_once,
    ),
    promise(
        "changes, scans and guests of an event come in one order that everybody sees",
        false,
        events_have_one_order,
    ),
    promise("a webhook is sent at most once and says what a poll says", false, webhooks_are_sent_once),
    promise(
        "what is done with a webhook is a course that the model of the outbox has",
        false,
        webhooks_follow_the_model,
    ),
    promise("the recorded outcome of a webhook is that of its attempt", false, outcomes_are_those_of_attempts),
    promise("a flow ends in one way", false, flows_end_in_one_way),
    promise("nobody gets what is of another client", true, receivers_get_their_own),
    promise("statements and balances are those of the ledger", false, statements_agree_with_ledgers),
    promise("a list of transactions has each of its client once", false, lists_are_complete),
    promise("operators see webhooks and consents as they are", false, operators_see_what_is_kept),
    promise("a check costs nothing and leaves one consent", false, checks_leave_a_consent),
    promise("credits above the limit move when a second operator confirms", false, decisions_are_kept),
    promise("what is erased is not told any more", false, erased_is_not_told),
    promise("everything ends, and what became of a webhook is known", false, everything_drains),
];

/// Returns the broken promises, in words.
pub(crate) fn broken(evidence: &Evidence<'_>) -> Found {
    let is_lossy = evidence.sim.world.deployment == Deployment::LossyReplica;
    let checked = PROMISES.iter().filter(|promise| promise.survives_loss || !is_lossy);
    checked
        .flat_map(|promise| {
            (promise.check)(evidence).into_iter().map(|found| format!("{found} (promise: {})", promise.name))
        })
        .collect()
}

fn nobody_saw_what_cannot_be(evidence: &Evidence<'_>) -> Found {
    let unanswered = evidence.sim.diary.unanswered.borrow().clone();
    let waiting = unanswered.into_iter().map(|what| format!("nobody answers that {what}"));
    evidence.sim.diary.wrong().into_iter().chain(waiting).collect()
}

fn credits_are_conserved(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    if !evidence.audits.iter().all(Audit::is_clean) {
        found.push("a ledger does not add up".to_owned());
    }
    for (txn, kept) in &evidence.transactions {
        match (kept.paid_at, &kept.record) {
            (None, Some(_)) => found.push(format!("{txn}: it is open, and nobody has paid")),
            (Some(_), None) if !evidence.is_erased(*txn) => found.push(format!("{txn}: it was paid, and is unknown")),
            _ => {}
        }
    }
    for (tenant, (entries, left)) in evidence.ledgers.iter().enumerate() {
        let debits: Vec<_> = entries.iter().filter(|entry| entry.kind == EntryKind::Debit).collect();
        if debits.iter().any(|entry| entry.amount.abs() != 1) {
            found.push(format!("a transaction of client {tenant} cost something else than one credit"));
        }
        let mut charged = BTreeSet::new();
        let twice = debits.iter().filter(|entry| !charged.insert(&entry.reference));
        found.extend(
            twice.map(|entry| format!("{}: it was charged again at {:?}", entry.reference, since_start(entry.at))),
        );
        let granted: i64 =
            entries.iter().filter(|entry| entry.kind == EntryKind::Grant).map(|entry| entry.amount).sum();
        if granted - i64::try_from(debits.len()).unwrap_or(0) != i64::try_from(*left).unwrap_or(0) {
            found.push(format!(
                "client {tenant} was granted {granted} credits, has used {} and has {left}",
                debits.len()
            ));
        }
    }
    found
}

fn consents_are_kept(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let mut entries: BTreeMap<String, Vec<&StoredConsent>> = BTreeMap::new();
    for kept in evidence.consents.iter().flatten().filter(|kept| kept.consent.kind == "verification") {
        entries.entry(kept.consent.id.clone()).or_default().push(kept);
    }
    for (txn, kept) in &evidence.transactions {
        let listed = entries.remove(&txn.to_string()).unwrap_or_default();
        let expected = usize::from(completed(kept).is_some());
        // An erased transaction is in the register if it had ended.
        if listed.len() != expected && !(evidence.is_erased(*txn) && listed.len() == 1) {
            found.push(format!("{txn}: it is in the register of consents {} times", listed.len()));
        }
        for (entry, record) in listed.iter().zip(completed(kept)) {
            let was_given = record.passed || record.refused.is_some();
            if was_given != (entry.consent.answer == ConsentAnswer::Given) || entry.answered_at != record.verified_at {
                found.push(format!("{txn}: the register of consents says something else"));
            }
        }
    }
    found.extend(entries.into_keys().map(|txn| format!("{txn}: it is in the register of consents, and unknown")));
    found
}

fn grants_are_there(evidence: &Evidence<'_>) -> Found {
    let of = |tenant: usize| evidence.sim.tenants[tenant].credits.get();
    let sums = evidence.ledgers.iter().enumerate().map(|(tenant, (entries, _))| {
        let granted: i64 =
            entries.iter().filter(|entry| entry.kind == EntryKind::Grant).map(|entry| entry.amount).sum();
        (tenant, u64::try_from(granted).unwrap_or(0))
    });
    let mut found: Vec<String> = sums
        .filter(|(tenant, granted)| *granted != of(*tenant))
        .map(|(tenant, granted)| {
            format!("client {tenant} was granted {} credits, and its ledger says {granted}", of(tenant))
        })
        .collect();
    for (tenant, (entries, _)) in evidence.sim.tenants.iter().zip(&evidence.ledgers) {
        let kept: Vec<Value> = entries.iter().cloned().map(|entry| json!(StatementEntry::from(entry))).collect();
        let grants = tenant.grants.borrow();
        let other = grants.iter().filter(|told| !kept.contains(told));
        found.extend(other.map(|told| format!("client {} has another entry in its ledger than {told}", tenant.number)));
    }
    found
}

fn credits_are_used(evidence: &Evidence<'_>) -> Found {
    let unpaid = evidence.sim.diary.unpaid.borrow();
    let without_reason = unpaid.iter().filter(|unpaid| {
        // The balance was zero from one entry until the next.
        let (entries, _) = &evidence.ledgers[unpaid.tenant];
        !entries.iter().enumerate().any(|(at, entry)| {
            let tolerance = evidence.sim.world.tolerance();
            let until = entries.get(at + 1).map_or(Duration::MAX, |next| since_start(next.at) + tolerance);
            entry.balance_after == 0 && since_start(entry.at) <= unpaid.answered && until >= unpaid.asked
        })
    });
    without_reason
        .map(|unpaid| format!("client {} was refused at {:?} although it had credits", unpaid.tenant, unpaid.answered))
        .collect()
}

const fn completed(kept: &StoredTransaction) -> Option<&CompletedRecord> {
    match &kept.record {
        Some(TransactionRecord::Completed(record)) => Some(record),
        _ => None,
    }
}

fn what_was_answered_is_kept(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for Fact { txn, learned, .. } in evidence.sim.diary.facts.borrow().iter() {
        if evidence.is_erased(*txn) {
            continue;
        }
        let kept = &evidence.transactions[txn];
        match learned {
            Knowledge::Opened { .. } if kept.record.is_none() => {
                found.push(format!("{txn}: it was opened, and is unknown"));
            }
            Knowledge::Accepted { digest, has_place }
                if !completed(kept)
                    .is_some_and(|record| record.answer.0 == *digest && record.refused.is_none() == *has_place) =>
            {
                found.push(format!("{txn}: an answer was accepted, and is not what ended it"));
            }
            Knowledge::AnsweredBefore | Knowledge::Completed(_) | Knowledge::Ended { .. } | Knowledge::Proven
                if completed(kept).is_none() =>
            {
                found.push(format!("{txn}: it had ended, and waits"));
            }
            _ => {}
        }
    }
    found
}

fn residents_end_verifications(evidence: &Evidence<'_>) -> Found {
    let answers = evidence.sim.diary.answers.borrow();
    let ended = evidence.transactions.iter().filter_map(|(txn, kept)| Some((txn, completed(kept)?)));
    let mut found = Found::new();
    for (txn, record) in ended {
        if !answers.contains(&(*txn, record.answer.0)) {
            found.push(format!("{txn}: it ended without an answer of its resident"));
        }
        if record.verified_at >= record.opened.expires_at {
            found.push(format!("{txn}: an answer after its window ended it"));
        }
    }
    found
}

/// The store records the time of each step, so the state at each moment is known.
fn each_answer_was_true_at_its_time(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let mut bodies = BTreeMap::new();
    for Fact { txn, asked, answered, learned } in evidence.sim.diary.facts.borrow().iter() {
        let kept = &evidence.transactions[txn];
        let (Some(opened), Some(record)) = (kept.paid_at.map(since_start), &kept.record) else { continue };
        let expires = since_start(record.opened().expires_at);
        let ended = completed(kept).map(|record| since_start(record.verified_at));
        let over = ended.unwrap_or(expires);
        let tolerance = evidence.sim.world.tolerance();
        let (asked, answered) = (asked.saturating_sub(tolerance), *answered + tolerance);
        let is_true = match learned {
            Knowledge::Opened { expires_at } => {
                opened <= answered && expires_at.is_none_or(|at| since_start(at) == expires)
            }
            // A client polls again: a state that is not final does not wait for a replica.
            Knowledge::Pending => {
                opened <= answered && (asked <= over || evidence.sim.world.servers.may_be_superseded(asked, answered))
            }
            Knowledge::Completed(body) => {
                bodies.entry(*txn).or_insert(body.clone()) == body && ended.is_some_and(|ended| ended <= answered)
            }
            Knowledge::Accepted { .. } | Knowledge::AnsweredBefore | Knowledge::Proven => {
                ended.is_some_and(|ended| ended <= answered)
            }
            Knowledge::Ended { verified } => {
                ended.is_some_and(|ended| ended <= answered)
                    && completed(kept).is_some_and(|record| record.passed == *verified)
            }
            Knowledge::Expired | Knowledge::TooLate => ended.is_none() && expires <= answered,
            Knowledge::Unknown => asked <= opened,
        };
        if !is_true {
            found.push(format!("{txn}: \"{learned}\" was not so between {asked:?} and {answered:?}"));
        }
    }
    found
}

fn flows_end_in_one_way(evidence: &Evidence<'_>) -> Found {
    let reported = evidence.sim.diary.reported.borrow();
    let ends: Vec<_> = reported.iter().filter_map(|reported| Some((&reported.flow, reported.end.as_ref()?))).collect();
    let otherwise = |(flow, end): &&(&String, &Value)| ends.iter().any(|(other, first)| other == flow && first != end);
    ends.iter().filter(otherwise).map(|(flow, _)| format!("{flow}: two different ends of it are accepted")).collect()
}

fn erased_is_not_told(evidence: &Evidence<'_>) -> Found {
    let erased = evidence.sim.diary.erased.borrow();
    let told = |fact: &&Fact| {
        matches!(
            fact.learned,
            Knowledge::Completed(_) | Knowledge::Ended { .. } | Knowledge::Accepted { .. } | Knowledge::Proven
        )
    };
    let facts = evidence.sim.diary.facts.borrow();
    let after = |fact: &&Fact| erased.get(&fact.txn).copied().flatten().is_some_and(|at| fact.asked > at);
    let after_all = facts
        .iter()
        .filter(told)
        .filter(after)
        .map(|fact| format!("{}: \"{}\" although it is erased", fact.txn, fact.learned));
    let kept = evidence
        .transactions
        .iter()
        .filter(|(txn, kept)| matches!(erased.get(txn), Some(Some(_))) && kept.record.is_some());
    after_all.chain(kept.map(|(txn, _)| format!("{txn}: it is erased, and there"))).collect()
}

fn everything_drains(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    if evidence.waiting > 0 {
        found.push(format!("{} webhooks still wait", evidence.waiting));
    }
    for (number, live) in evidence.live.iter().enumerate().filter(|(_, live)| **live > 0) {
        found.push(format!("node {number} still has {live} live transactions"));
    }
    for (txn, kept) in &evidence.transactions {
        let Some(record) = completed(kept) else { continue };
        let is_registered = record.opened.event.is_some() && record.passed;
        let has_url = record.opened.terms.webhook_url.is_some() && record.refused.is_none();
        if (is_registered || has_url) && kept.delivery.as_ref().is_none_or(|delivery| delivery.attempt.is_none()) {
            found.push(format!("{txn}: nobody knows what became of its webhook"));
        }
    }
    for reported in evidence.sim.diary.reported.borrow().iter().filter(|reported| reported.is_told) {
        let deliveries = evidence.flows.get(&reported.flow).and_then(Option::as_ref);
        if deliveries.is_none_or(|deliveries| {
            deliveries.deliveries.is_empty() || deliveries.deliveries.iter().any(|one| one.delivery.attempt.is_none())
        }) {
            found.push(format!(
                "{}: nobody knows what became of the webhook of {} of client {}: {deliveries:?}",
                reported.flow, reported.key, reported.tenant
            ));
        }
    }
    found
}
