//! Promises about records as clients and operators read them: statements, lists, registers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sakshi_domain::checks::CHECKS;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::delivery::DeliveryRecord;
use sakshi_domain::ids::TxnId;
use sakshi_wire::credits::StatementEntry;
use serde_json::{Value, json};

use super::Violations;
use crate::evidence::{Evidence, time_in_run};
use crate::journal::{Reading, StatementRead};

/// Checks statements and balances against the ledger, except those that may include writes that a failover lost.
pub(super) fn statements_agree_with_ledgers(evidence: &Evidence<'_>) -> Violations {
    let ledgers: Vec<Vec<Value>> = evidence
        .ledgers
        .iter()
        .map(|(entries, _)| entries.iter().cloned().map(|entry| json!(StatementEntry::from(entry))).collect())
        .collect();
    let statements = evidence.sim.journal.statements.borrow();
    let confirmed = statements.iter().filter(|reading| is_confirmed(evidence, reading));
    let mut violations: Violations =
        confirmed.filter_map(|reading| statement_violation(evidence, reading, &ledgers[reading.tenant])).collect();
    let balances = evidence.sim.journal.balances.borrow();
    let wrong = balances.iter().filter(|reading| is_confirmed(evidence, reading) && !was_balance(evidence, reading));
    violations.extend(wrong.map(|reading| {
        let Reading { tenant, sent_at, answered_at, content } = reading;
        format!("client {tenant} is told of {content} credits between {sent_at:?} and {answered_at:?}, and had others")
    }));
    violations
}

/// Returns true if no failover can have lost the content of a reading.
fn is_confirmed<T>(evidence: &Evidence<'_>, reading: &Reading<T>) -> bool {
    !evidence.sim.world.servers.may_be_unconfirmed(reading.sent_at, reading.answered_at)
}

/// Returns a sentence if a statement is not the beginning of the ledger, with all entries from before the request.
fn statement_violation(evidence: &Evidence<'_>, reading: &Reading<StatementRead>, ledger: &[Value]) -> Option<String> {
    let Reading { tenant, sent_at, content: StatementRead { total, entries }, .. } = reading;
    let tolerance = evidence.sim.world.tolerance();
    let (stored, _) = &evidence.ledgers[*tenant];
    let expected_min = stored.iter().take_while(|entry| time_in_run(entry.at) + tolerance < *sent_at).count();
    let read = entries.len();
    if read as u64 != *total {
        return Some(format!("a statement of client {tenant} has {read} entries and says {total}"));
    }
    if ledger.get(..read) != Some(entries) {
        return Some(format!("a statement of client {tenant} has other entries than its ledger: {entries:?}"));
    }
    (read < expected_min)
        .then(|| format!("a statement of client {tenant} at {sent_at:?} has {read} entries of {expected_min}"))
}

/// Returns true if the client had this balance at a moment between request and response.
fn was_balance(evidence: &Evidence<'_>, reading: &Reading<u64>) -> bool {
    let (entries, _) = &evidence.ledgers[reading.tenant];
    let tolerance = evidence.sim.world.tolerance();
    entries.iter().enumerate().any(|(index, entry)| {
        let until = entries.get(index + 1).map_or(Duration::MAX, |next| time_in_run(next.at) + tolerance);
        entry.balance_after == reading.content
            && time_in_run(entry.at) <= reading.answered_at + tolerance
            && until >= reading.sent_at
    })
}

/// Checks the lists of transactions after the last fault: each of the client's once, erased ones never.
pub(super) fn lists_are_complete(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    let erased = evidence.sim.journal.erased.borrow();
    for (tenant, listed) in evidence.sim.journal.listed_transactions.borrow().iter() {
        let client = &evidence.sim.tenants[*tenant].client;
        let own = evidence
            .transactions
            .iter()
            .filter(|(_, stored)| stored.record.as_ref().is_some_and(|record| record.opened().client == *client));
        let own: BTreeSet<TxnId> = own.map(|(txn, _)| *txn).collect();
        let missing = own.difference(listed).filter(|txn| !erased.contains_key(txn));
        violations
            .extend(missing.map(|txn| format!("{txn}: it is not in the list of transactions of client {tenant}")));
        let others = listed.difference(&own).filter(|txn| !matches!(erased.get(txn), Some(None)));
        violations.extend(others.map(|txn| format!("{txn}: it is in the list of client {tenant}, and is none of its")));
    }
    violations
}

/// Checks that each check of a number that needs a consent has one in the register, and that the register has no other.
pub(super) fn checks_leave_a_consent(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    let checks = evidence.sim.journal.checks.borrow();
    for (tenant, consents) in evidence.consents.iter().enumerate() {
        let mut entries = BTreeMap::<(&str, &str), usize>::new();
        let check_consents =
            consents.iter().filter(|stored| CHECKS.iter().any(|check| check.name == stored.consent.kind));
        check_consents.for_each(|stored| *entries.entry((&stored.consent.kind, &stored.consent.id)).or_default() += 1);
        for requested in checks.iter().filter(|requested| requested.tenant == tenant) {
            let count = entries.remove(&(requested.check.name, requested.id.as_str())).unwrap_or(0);
            let is_right = match (requested.check.needs_consent, requested.has_answer) {
                (true, true) => count == 1,
                (true, false) => count <= 1,
                (false, _) => count == 0,
            };
            if !is_right {
                let name = requested.check.name;
                violations
                    .push(format!("{}: a check of {name} is {count} times in the register of consents", requested.id));
            }
        }
        violations.extend(entries.into_keys().map(|(kind, id)| format!("{id}: a consent to {kind} that nobody gave")));
    }
    violations
}

/// Checks that a grant above the limit is made if, and only if, a second operator has confirmed it.
pub(super) fn large_grants_follow_decisions(evidence: &Evidence<'_>) -> Violations {
    let grants = evidence.sim.journal.decided_grants.borrow();
    let is_made = |tenant: usize, reference: &str| {
        let (entries, _) = &evidence.ledgers[tenant];
        entries.iter().any(|entry| entry.kind == EntryKind::Grant && entry.reference == reference)
    };
    let wrong = grants.iter().filter(|grant| is_made(grant.tenant, &grant.reference) != grant.is_confirmed);
    wrong.map(|grant| format!("{grant:?}, and the ledger says otherwise")).collect()
}

/// Returns the JSON of a delivery as operators must see it.
fn shown_to_operators(delivery: &DeliveryRecord) -> Value {
    let attempt = delivery.attempt.map(|attempt| {
        let failure = attempt.failure;
        json!({
            "outcome": attempt.outcome.as_str(),
            "reason": failure.map(|failure| failure.reason.as_str()),
            "part": failure.and_then(|failure| failure.part).map(|part| part.as_str()),
            "sent": attempt.outcome.sent().as_str(),
            "status": attempt.status,
            "duration_ms": attempt.duration_ms,
        })
    });
    json!({
        "id": delivery.id.0,
        "origin": delivery.origin,
        "queued_at": delivery.queued_at,
        "claimed_at": delivery.claimed_at,
        "attempt": attempt,
    })
}

/// Compares what operators see after the last fault with the store.
pub(super) fn operators_see_what_the_store_has(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    for (txn, shown) in evidence.sim.journal.shown_webhooks.borrow().iter() {
        let stored = evidence.transactions.get(txn).and_then(|stored| stored.delivery.clone());
        let stored = stored.map(|delivery| shown_to_operators(&delivery)).unwrap_or_default();
        if stored != *shown {
            violations.push(format!("{txn}: its webhook is shown as {shown}, and is {stored}"));
        }
    }
    for (tenant, shown) in evidence.sim.journal.consent_registers.borrow().iter() {
        let stored = evidence.consents[*tenant].iter();
        let stored: BTreeSet<String> =
            stored.map(|stored| format!("{} {}", json!(stored.consent.kind), json!(stored.consent.id))).collect();
        if stored != *shown {
            violations
                .push(format!("the register of consents of client {tenant} is shown as {shown:?}, and is {stored:?}"));
        }
    }
    violations
}
