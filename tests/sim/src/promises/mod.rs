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

use self::events::{
    events_have_one_order, guests_are_checked_in_once, no_more_guests_than_places, repeated_guests_are_recognised,
};
use self::readings::{
    checks_leave_a_consent, large_grants_follow_decisions, lists_are_complete, operators_see_what_the_store_has,
    statements_agree_with_ledgers,
};
use self::webhooks::{
    outcomes_are_those_of_attempts, receivers_get_only_their_own_data, webhooks_are_sent_once,
    webhooks_follow_the_model,
};

use crate::evidence::{Evidence, StoredTransaction, time_in_run};
use crate::journal::{Fact, Observation};
use crate::shape::Deployment;

/// Sentences about the ways in which a run broke a promise.
type Violations = Vec<String>;

/// A promise and its check.
pub(crate) struct Promise {
    pub(crate) name: &'static str,
    /// True if the promise holds even if a failover loses acknowledged writes.
    survives_loss: bool,
    check: fn(&Evidence<'_>) -> Violations,
}

/// Returns a promise that holds in every deployment.
const fn always(name: &'static str, check: fn(&Evidence<'_>) -> Violations) -> Promise {
    Promise { name, survives_loss: true, check }
}

/// Returns a promise that holds unless a failover loses acknowledged writes.
const fn without_loss(name: &'static str, check: fn(&Evidence<'_>) -> Violations) -> Promise {
    Promise { name, survives_loss: false, check }
}

/// All promises.
pub(crate) const PROMISES: [Promise; 24] = [
    without_loss("every answer is possible and in time", answers_are_possible),
    always("a ledger adds up, and a transaction costs one credit", credits_are_conserved),
    without_loss("every grant is in the ledger", grants_are_in_the_ledger),
    without_loss("a request is refused for lack of credits only without credits", unpaid_refusals_had_no_credits),
    without_loss("an acknowledged state is kept", acknowledged_states_are_kept),
    always("an ended verification has one entry in the register of consents", ended_verifications_have_one_consent),
    always("only a resident's answer within the window ends a verification", residents_end_verifications),
    without_loss("an answer about a verification is true at its time", each_answer_was_true_at_its_time),
    always("an event never has more guests than places", no_more_guests_than_places),
    always(
        "a person who registers twice is recognised, or refused if the event says so",
        repeated_guests_are_recognised,
    ),
    without_loss("a guest is checked in once, and every answer has that time and gate", guests_are_checked_in_once),
    without_loss("one order of its steps explains every answer about an event", events_have_one_order),
    without_loss("a webhook is sent at most once and equals the poll", webhooks_are_sent_once),
    without_loss("the model of the outbox allows every step of a webhook", webhooks_follow_the_model),
    without_loss("the recorded outcome of a webhook is that of its attempt", outcomes_are_those_of_attempts),
    without_loss("a flow ends in one way", flows_end_in_one_way),
    always("no client gets data of another client", receivers_get_only_their_own_data),
    without_loss("statements and balances are those of the ledger", statements_agree_with_ledgers),
    without_loss("a list of transactions has each of its client once", lists_are_complete),
    without_loss("operators see webhooks and consents as the store has them", operators_see_what_the_store_has),
    without_loss("a check costs nothing and leaves one consent", checks_leave_a_consent),
    without_loss("credits above the limit move when a second operator confirms", large_grants_follow_decisions),
    without_loss("erased data is never returned", erased_data_is_never_returned),
    without_loss("all work ends, and every webhook has an outcome", all_work_ends),
];

/// Checks all promises that the run's deployment makes. Returns a sentence for each violation.
pub(crate) fn broken(evidence: &Evidence<'_>) -> Violations {
    let is_lossy = evidence.sim.world.deployment == Deployment::LossyReplica;
    let applicable = PROMISES.iter().filter(|promise| promise.survives_loss || !is_lossy);
    applicable
        .flat_map(|promise| {
            (promise.check)(evidence).into_iter().map(|violation| format!("{violation} (promise: {})", promise.name))
        })
        .collect()
}

/// Returns the impossible answers of the journal, and the operators' changes that were never answered.
fn answers_are_possible(evidence: &Evidence<'_>) -> Violations {
    let pending = evidence.sim.journal.pending_operations.borrow().clone();
    let unanswered = pending.into_iter().map(|operation| format!("nobody answers that {operation}"));
    evidence.sim.journal.violations().into_iter().chain(unanswered).collect()
}

/// Checks that ledgers add up, and that each transaction was debited once.
fn credits_are_conserved(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    if !evidence.audits.iter().all(Audit::is_clean) {
        violations.push("a ledger does not add up".to_owned());
    }
    for (txn, stored) in &evidence.transactions {
        match (stored.paid_at, &stored.record) {
            (None, Some(_)) => violations.push(format!("{txn}: it is open, and nobody has paid")),
            (Some(_), None) if !evidence.is_erased(*txn) => {
                violations.push(format!("{txn}: it was paid, and is unknown"));
            }
            _ => {}
        }
    }
    for (tenant, (entries, balance)) in evidence.ledgers.iter().enumerate() {
        let debits: Vec<_> = entries.iter().filter(|entry| entry.kind == EntryKind::Debit).collect();
        if debits.iter().any(|entry| entry.amount.abs() != 1) {
            violations.push(format!("a transaction of client {tenant} cost something else than one credit"));
        }
        let mut charged = BTreeSet::new();
        let repeated = debits.iter().filter(|entry| !charged.insert(&entry.reference));
        violations.extend(
            repeated.map(|entry| format!("{}: it was charged again at {:?}", entry.reference, time_in_run(entry.at))),
        );
        let granted: i64 =
            entries.iter().filter(|entry| entry.kind == EntryKind::Grant).map(|entry| entry.amount).sum();
        if granted - i64::try_from(debits.len()).unwrap_or(0) != i64::try_from(*balance).unwrap_or(0) {
            violations.push(format!(
                "client {tenant} was granted {granted} credits, has used {} and has {balance}",
                debits.len()
            ));
        }
    }
    violations
}

/// Checks the register of consents against the ended verifications.
fn ended_verifications_have_one_consent(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    let mut entries: BTreeMap<String, Vec<&StoredConsent>> = BTreeMap::new();
    for stored in evidence.consents.iter().flatten().filter(|stored| stored.consent.kind == "verification") {
        entries.entry(stored.consent.id.clone()).or_default().push(stored);
    }
    for (txn, stored) in &evidence.transactions {
        let listed = entries.remove(&txn.to_string()).unwrap_or_default();
        let expected = usize::from(completed(stored).is_some());
        // An erased transaction is in the register if it had ended.
        if listed.len() != expected && !(evidence.is_erased(*txn) && listed.len() == 1) {
            violations.push(format!("{txn}: it is in the register of consents {} times", listed.len()));
        }
        for (entry, record) in listed.iter().zip(completed(stored)) {
            let was_given = record.passed || record.refused.is_some();
            if was_given != (entry.consent.answer == ConsentAnswer::Given) || entry.answered_at != record.verified_at {
                violations.push(format!("{txn}: the register of consents says something else"));
            }
        }
    }
    violations.extend(entries.into_keys().map(|txn| format!("{txn}: it is in the register of consents, and unknown")));
    violations
}

/// Checks the grants of each ledger against the answers to the operators' grants.
fn grants_are_in_the_ledger(evidence: &Evidence<'_>) -> Violations {
    let expected = |tenant: usize| evidence.sim.tenants[tenant].credits.get();
    let sums = evidence.ledgers.iter().enumerate().map(|(tenant, (entries, _))| {
        let granted: i64 =
            entries.iter().filter(|entry| entry.kind == EntryKind::Grant).map(|entry| entry.amount).sum();
        (tenant, u64::try_from(granted).unwrap_or(0))
    });
    let mut violations: Violations = sums
        .filter(|(tenant, granted)| *granted != expected(*tenant))
        .map(|(tenant, granted)| {
            format!("client {tenant} was granted {} credits, and its ledger says {granted}", expected(tenant))
        })
        .collect();
    for (tenant, (entries, _)) in evidence.sim.tenants.iter().zip(&evidence.ledgers) {
        let ledger: Vec<Value> = entries.iter().cloned().map(|entry| json!(StatementEntry::from(entry))).collect();
        let grants = tenant.grants.borrow();
        let missing = grants.iter().filter(|grant| !ledger.contains(grant));
        let sentence = |grant: &Value| format!("client {} has another entry in its ledger than {grant}", tenant.number);
        violations.extend(missing.map(sentence));
    }
    violations
}

/// Checks that the balance was zero at a moment of every request that was refused for lack of credits.
fn unpaid_refusals_had_no_credits(evidence: &Evidence<'_>) -> Violations {
    let unpaid = evidence.sim.journal.unpaid.borrow();
    let without_reason = unpaid.iter().filter(|unpaid| {
        // A balance lasts from its entry until the next one.
        let (entries, _) = &evidence.ledgers[unpaid.tenant];
        !entries.iter().enumerate().any(|(at, entry)| {
            let tolerance = evidence.sim.world.tolerance();
            let until = entries.get(at + 1).map_or(Duration::MAX, |next| time_in_run(next.at) + tolerance);
            entry.balance_after == 0 && time_in_run(entry.at) <= unpaid.answered_at && until >= unpaid.sent_at
        })
    });
    without_reason
        .map(|unpaid| {
            format!("client {} was refused at {:?} although it had credits", unpaid.tenant, unpaid.answered_at)
        })
        .collect()
}

/// Returns the record of a completed transaction; `None` if it is in another state.
const fn completed(stored: &StoredTransaction) -> Option<&CompletedRecord> {
    match &stored.record {
        Some(TransactionRecord::Completed(record)) => Some(record),
        _ => None,
    }
}

/// Checks that transactions are still as answers have shown them, unless they were erased.
fn acknowledged_states_are_kept(evidence: &Evidence<'_>) -> Violations {
    let servers = &evidence.sim.world.servers;
    let mut violations = Violations::new();
    for Fact { txn, sent_at, answered_at, observation } in evidence.sim.journal.facts.borrow().iter() {
        if evidence.is_erased(*txn) {
            continue;
        }
        let stored = &evidence.transactions[txn];
        match observation {
            Observation::Opened { .. } if stored.record.is_none() => {
                violations.push(format!("{txn}: it was opened, and is unknown"));
            }
            Observation::Accepted { digest, has_place }
                if !completed(stored)
                    .is_some_and(|record| record.answer.0 == *digest && record.refused.is_none() == *has_place) =>
            {
                violations.push(format!("{txn}: an answer was accepted, and is not what ended it"));
            }
            Observation::AnsweredBefore
            | Observation::Completed(_)
            | Observation::Ended { .. }
            | Observation::Proven
                if completed(stored).is_none() =>
            {
                violations.push(format!("{txn}: it had ended, and waits"));
            }
            Observation::Listed { .. }
                if completed(stored).is_none() && !servers.may_be_unconfirmed(*sent_at, *answered_at) =>
            {
                violations.push(format!("{txn}: a list showed that it had ended, and it waits"));
            }
            _ => {}
        }
    }
    violations
}

/// Checks that a resident's answer within the window ended each ended verification.
fn residents_end_verifications(evidence: &Evidence<'_>) -> Violations {
    let answers = evidence.sim.journal.resident_answers.borrow();
    let ended = evidence.transactions.iter().filter_map(|(txn, stored)| Some((txn, completed(stored)?)));
    let mut violations = Violations::new();
    for (txn, record) in ended {
        if !answers.contains(&(*txn, record.answer.0)) {
            violations.push(format!("{txn}: it ended without an answer of its resident"));
        }
        if record.verified_at >= record.opened.expires_at {
            violations.push(format!("{txn}: an answer after its window ended it"));
        }
    }
    violations
}

/// Checks each observation of a transaction against the times in its record, with the tolerance of the store's clock.
fn each_answer_was_true_at_its_time(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    let mut bodies = BTreeMap::new();
    let servers = &evidence.sim.world.servers;
    for Fact { txn, sent_at, answered_at, observation } in evidence.sim.journal.facts.borrow().iter() {
        let stored = &evidence.transactions[txn];
        let (Some(opened), Some(record)) = (stored.paid_at.map(time_in_run), &stored.record) else { continue };
        let expires = time_in_run(record.opened().expires_at);
        let ended = completed(stored).map(|record| time_in_run(record.verified_at));
        let pending_until = ended.unwrap_or(expires);
        let tolerance = evidence.sim.world.tolerance();
        let (sent_at, answered_at) = (sent_at.saturating_sub(tolerance), *answered_at + tolerance);
        let is_true = match observation {
            Observation::Opened { expires_at } => {
                opened <= answered_at && expires_at.is_none_or(|at| time_in_run(at) == expires)
            }
            // A node that reaches a former primary may still show a pending state.
            Observation::Pending => {
                opened <= answered_at && (sent_at <= pending_until || servers.may_be_superseded(sent_at, answered_at))
            }
            Observation::Completed(body) => {
                bodies.entry(*txn).or_insert(body.clone()) == body && ended.is_some_and(|ended| ended <= answered_at)
            }
            Observation::Accepted { .. } | Observation::AnsweredBefore | Observation::Proven => {
                ended.is_some_and(|ended| ended <= answered_at)
            }
            // A failover may have undone the end.
            Observation::Listed { .. } if servers.may_be_unconfirmed(sent_at, answered_at) => true,
            Observation::Ended { verified } | Observation::Listed { verified } => {
                ended.is_some_and(|ended| ended <= answered_at)
                    && completed(stored).is_some_and(|record| record.passed == *verified)
            }
            Observation::Expired | Observation::TooLate => ended.is_none() && expires <= answered_at,
            Observation::Unknown => sent_at <= opened,
        };
        if !is_true {
            violations.push(format!("{txn}: \"{observation}\" was not so between {sent_at:?} and {answered_at:?}"));
        }
    }
    violations
}

/// Checks that no two accepted reports end a flow differently.
fn flows_end_in_one_way(evidence: &Evidence<'_>) -> Violations {
    let reports = evidence.sim.journal.accepted_reports.borrow();
    let ends: Vec<_> = reports.iter().filter_map(|report| Some((&report.flow, report.end.as_ref()?))).collect();
    let is_contradicted =
        |(flow, end): &&(&String, &Value)| ends.iter().any(|(other, other_end)| other == flow && other_end != end);
    ends.iter()
        .filter(is_contradicted)
        .map(|(flow, _)| format!("{flow}: two different ends of it are accepted"))
        .collect()
}

/// Checks that no answer after an erasure shows the end of the transaction, and that its record is gone.
fn erased_data_is_never_returned(evidence: &Evidence<'_>) -> Violations {
    let erased = evidence.sim.journal.erased.borrow();
    let shows_the_end = |fact: &&Fact| {
        matches!(
            fact.observation,
            Observation::Completed(_)
                | Observation::Ended { .. }
                | Observation::Listed { .. }
                | Observation::Accepted { .. }
                | Observation::Proven
        )
    };
    let facts = evidence.sim.journal.facts.borrow();
    let is_after_erasure = |fact: &&Fact| erased.get(&fact.txn).copied().flatten().is_some_and(|at| fact.sent_at > at);
    let returned = facts
        .iter()
        .filter(shows_the_end)
        .filter(is_after_erasure)
        .map(|fact| format!("{}: \"{}\" although it is erased", fact.txn, fact.observation));
    let still_stored = evidence
        .transactions
        .iter()
        .filter(|(txn, stored)| matches!(erased.get(txn), Some(Some(_))) && stored.record.is_some());
    returned.chain(still_stored.map(|(txn, _)| format!("{txn}: it is erased, and there"))).collect()
}

/// Checks that no webhook is queued, no transaction is live, and every webhook has an outcome.
fn all_work_ends(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    if evidence.queued_webhooks > 0 {
        violations.push(format!("{} webhooks still wait", evidence.queued_webhooks));
    }
    for (number, live) in evidence.live_transactions.iter().enumerate().filter(|(_, live)| **live > 0) {
        violations.push(format!("node {number} still has {live} live transactions"));
    }
    for (txn, stored) in &evidence.transactions {
        let Some(record) = completed(stored) else { continue };
        let is_registered = record.opened.event.is_some() && record.passed;
        let has_url = record.opened.terms.webhook_url.is_some() && record.refused.is_none();
        if (is_registered || has_url) && stored.delivery.as_ref().is_none_or(|delivery| delivery.attempt.is_none()) {
            violations.push(format!("{txn}: nobody knows what became of its webhook"));
        }
    }
    for report in evidence.sim.journal.accepted_reports.borrow().iter().filter(|report| report.has_webhook) {
        let deliveries = evidence.flow_deliveries.get(&report.flow).and_then(Option::as_ref);
        if deliveries.is_none_or(|deliveries| {
            deliveries.deliveries.is_empty() || deliveries.deliveries.iter().any(|row| row.delivery.attempt.is_none())
        }) {
            violations.push(format!(
                "{}: nobody knows what became of the webhook of {} of client {}: {deliveries:?}",
                report.flow, report.key, report.tenant
            ));
        }
    }
    violations
}
