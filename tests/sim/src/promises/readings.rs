//! Promises about what clients and operators read of records: statements, lists, registers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sakshi_domain::checks::CHECKS;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::delivery::DeliveryRecord;
use sakshi_domain::ids::TxnId;
use sakshi_wire::credits::StatementEntry;
use serde_json::{Value, json};

use super::Found;
use crate::diary::{Reading, StatementRead};
use crate::evidence::{Evidence, since_start};

/// Checks statements and balances against the ledger. Those that a failover may have taken back are left out.
pub(super) fn statements_agree_with_ledgers(evidence: &Evidence<'_>) -> Found {
    let ledgers: Vec<Vec<Value>> = evidence
        .ledgers
        .iter()
        .map(|(entries, _)| entries.iter().cloned().map(|entry| json!(StatementEntry::from(entry))).collect())
        .collect();
    let statements = evidence.sim.diary.statements.borrow();
    let found = statements.iter().filter(|reading| is_kept(evidence, reading));
    let mut found: Found =
        found.filter_map(|reading| wrong_statement(evidence, reading, &ledgers[reading.tenant])).collect();
    let balances = evidence.sim.diary.balances.borrow();
    let wrong = balances.iter().filter(|reading| is_kept(evidence, reading) && !was_balance(evidence, reading));
    found.extend(wrong.map(|reading| {
        let Reading { tenant, asked, answered, content } = reading;
        format!("client {tenant} is told of {content} credits between {asked:?} and {answered:?}, and had others")
    }));
    found
}

fn is_kept<T>(evidence: &Evidence<'_>, reading: &Reading<T>) -> bool {
    !evidence.sim.world.servers.may_be_unconfirmed(reading.asked, reading.answered)
}

fn wrong_statement(evidence: &Evidence<'_>, reading: &Reading<StatementRead>, ledger: &[Value]) -> Option<String> {
    let Reading { tenant, asked, content: StatementRead { total, entries }, .. } = reading;
    let tolerance = evidence.sim.world.tolerance();
    let (kept, _) = &evidence.ledgers[*tenant];
    let before = kept.iter().take_while(|entry| since_start(entry.at) + tolerance < *asked).count();
    let read = entries.len();
    if read as u64 != *total {
        return Some(format!("a statement of client {tenant} has {read} entries and says {total}"));
    }
    if ledger.get(..read) != Some(entries) {
        return Some(format!("a statement of client {tenant} has other entries than its ledger: {entries:?}"));
    }
    (read < before).then(|| format!("a statement of client {tenant} at {asked:?} has {read} entries of {before}"))
}

/// Returns true if the client had this balance at a moment between request and response.
fn was_balance(evidence: &Evidence<'_>, reading: &Reading<u64>) -> bool {
    let (entries, _) = &evidence.ledgers[reading.tenant];
    let tolerance = evidence.sim.world.tolerance();
    entries.iter().enumerate().any(|(at, entry)| {
        let until = entries.get(at + 1).map_or(Duration::MAX, |next| since_start(next.at) + tolerance);
        entry.balance_after == reading.content
            && since_start(entry.at) <= reading.answered + tolerance
            && until >= reading.asked
    })
}

/// Checks the lists of transactions after the last fault: each of the client's once, erased ones never.
pub(super) fn lists_are_complete(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let erased = evidence.sim.diary.erased.borrow();
    for (tenant, listed) in evidence.sim.diary.lists.borrow().iter() {
        let client = &evidence.sim.tenants[*tenant].client;
        let own = evidence
            .transactions
            .iter()
            .filter(|(_, kept)| kept.record.as_ref().is_some_and(|record| record.opened().client == *client));
        let own: BTreeSet<TxnId> = own.map(|(txn, _)| *txn).collect();
        let missing = own.difference(listed).filter(|txn| !erased.contains_key(txn));
        found.extend(missing.map(|txn| format!("{txn}: it is not in the list of transactions of client {tenant}")));
        let others = listed.difference(&own).filter(|txn| !matches!(erased.get(txn), Some(None)));
        found.extend(others.map(|txn| format!("{txn}: it is in the list of client {tenant}, and is none of its")));
    }
    found
}

/// A check costs nothing, and its consent is in the register once.
pub(super) fn checks_leave_a_consent(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let asked = evidence.sim.diary.checks.borrow();
    for (tenant, consents) in evidence.consents.iter().enumerate() {
        let mut entries = BTreeMap::<(&str, &str), usize>::new();
        let of_checks = consents.iter().filter(|kept| CHECKS.iter().any(|check| check.name == kept.consent.kind));
        of_checks.for_each(|kept| *entries.entry((&kept.consent.kind, &kept.consent.id)).or_default() += 1);
        for checked in asked.iter().filter(|checked| checked.tenant == tenant) {
            let count = entries.remove(&(checked.check.name, checked.id.as_str())).unwrap_or(0);
            let is_right = match (checked.check.needs_consent, checked.has_answer) {
                (true, true) => count == 1,
                (true, false) => count <= 1,
                (false, _) => count == 0,
            };
            if !is_right {
                let name = checked.check.name;
                found.push(format!("{}: a check of {name} is {count} times in the register of consents", checked.id));
            }
        }
        found.extend(entries.into_keys().map(|(kind, id)| format!("{id}: a consent to {kind} that nobody gave")));
    }
    found
}

/// A movement above the limit is made once a second operator confirms it, and not otherwise.
pub(super) fn decisions_are_kept(evidence: &Evidence<'_>) -> Found {
    let decided = evidence.sim.diary.decided.borrow();
    let is_made = |tenant: usize, reference: &str| {
        let (entries, _) = &evidence.ledgers[tenant];
        entries.iter().any(|entry| entry.kind == EntryKind::Grant && entry.reference == reference)
    };
    let wrong = decided.iter().filter(|decided| is_made(decided.tenant, &decided.reference) != decided.is_confirmed);
    wrong.map(|decided| format!("{decided:?}, and the ledger says otherwise")).collect()
}

/// Returns a delivery as operators must see it.
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
pub(super) fn operators_see_what_is_kept(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for (txn, shown) in evidence.sim.diary.shown_webhooks.borrow().iter() {
        let kept = evidence.transactions.get(txn).and_then(|kept| kept.delivery.clone());
        let kept = kept.map(|delivery| shown_to_operators(&delivery)).unwrap_or_default();
        if kept != *shown {
            found.push(format!("{txn}: its webhook is shown as {shown}, and is {kept}"));
        }
    }
    for (tenant, shown) in evidence.sim.diary.registers.borrow().iter() {
        let kept = evidence.consents[*tenant].iter();
        let kept: BTreeSet<String> =
            kept.map(|kept| format!("{} {}", json!(kept.consent.kind), json!(kept.consent.id))).collect();
        if kept != *shown {
            found.push(format!("the register of consents of client {tenant} is shown as {shown:?}, and is {kept:?}"));
        }
    }
    found
}
