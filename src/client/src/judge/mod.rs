//! Checks the invariants of the service from outside: compares its records at the end of a run with its responses to
//! clients and guests. The result is one [`Finding`] per promise.
//!
//! The load tester uses this module after every run, and tests use it after storms of kills. It does no I/O.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sakshi_domain::credits::EntryKind;
use sakshi_wire::credits::StatementEntry;
use sakshi_wire::events::EventResponse;
use serde::Serialize;

use self::doors::DoorView;
use self::guests::RegisteredGuest;
use self::journal::{CallbackKind, Records, Reply};
use self::webhooks::Arrivals;

pub mod doors;
pub mod guests;
pub mod journal;
mod rules;
#[cfg(test)]
mod tests;
pub mod webhooks;

/// The evidence at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The tester's own records.
    pub journal: Records,
    /// Number of guests whose visits were started.
    pub started: u64,
    /// The webhooks that the receiver got.
    pub webhooks: Arrivals,
    /// The service's records of its webhooks, if they were read.
    pub deliveries: Option<Deliveries>,
    /// Credits granted to the client.
    pub granted: i64,
    /// True if the result of every transaction with a callback was polled.
    pub has_poll_results: bool,
    /// The client's ledger.
    pub ledger: Vec<StatementEntry>,
    /// The client's balance.
    pub balance: u64,
    /// The event and the transaction ids of its registered guests; `None` for a run without an event.
    pub event: Option<(EventResponse, Vec<String>)>,
    /// The registered guests with their marks and check-ins, oldest first, if they are checked.
    pub guests: Option<Vec<RegisteredGuest>>,
    /// The doors of the event at the end of the run.
    pub doors: Vec<DoorView>,
    /// The number of places of the event; `None` if their number was changed during the run.
    pub max_guests: Option<u64>,
    /// Time at which the service's counts were read, in seconds since the Unix epoch.
    pub read_at: i64,
    /// True if the transactions of all guests who left must have expired.
    pub all_expired: bool,
    /// Time after the callback's reply from which a webhook is late.
    pub late_after: Duration,
}

/// The service's records of its webhooks.
#[derive(Clone, Debug, Default)]
pub struct Deliveries {
    /// Outcomes of attempts, by transaction id.
    pub outcomes: HashMap<String, String>,
    /// Number of attempts that could be in flight at kills of the service. They end as `unknown`.
    pub unknown_max: u64,
}

/// The side at fault if a rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The service: its records contradict its responses.
    Service,
    /// The tester: its own records contradict each other, so the run proves nothing.
    Tester,
}

/// The result of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The promise.
    pub rule: &'static str,
    /// The side at fault if the promise is broken.
    pub blame: Blame,
    /// True if the promise was kept.
    pub held: bool,
    /// The figures that were compared.
    pub figures: String,
    /// The first few violations of the promise.
    pub examples: Vec<String>,
}

/// Numbers of webhooks by their arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WebhookCounts {
    /// Webhooks that had to arrive.
    pub expected: u64,
    /// Expected webhooks that arrived in time.
    pub on_time: u64,
    /// Expected webhooks that arrived late.
    pub late: u64,
    /// Expected webhooks that never arrived.
    pub lost: u64,
    /// Transactions whose webhook arrived more than once.
    pub repeated: u64,
    /// Transactions with a webhook, but without an outcome to report.
    pub unexpected: u64,
}

/// Transactions by their expected outcome.
struct Expected<'a> {
    /// Transactions whose credential was accepted; at an event, the guest is registered.
    accepted: HashSet<&'a str>,
    /// Transactions whose refusal was accepted.
    declined: HashSet<&'a str>,
    /// Transactions whose callback got no reply.
    unknown: HashSet<&'a str>,
    /// Transactions of registered guests; `None` without an event.
    registered: Option<HashSet<&'a str>>,
}

/// Number of violations that a finding lists.
const EXAMPLES_MAX: usize = 10;

impl<'a> Expected<'a> {
    fn from_evidence(evidence: &'a Evidence) -> Self {
        let journal = &evidence.journal;
        let unknown = journal
            .txns_with_reply(CallbackKind::Consent, Reply::Unknown)
            .chain(journal.txns_with_reply(CallbackKind::Refusal, Reply::Unknown));
        Self {
            accepted: journal.txns_with_reply(CallbackKind::Consent, Reply::Accepted).collect(),
            declined: journal.txns_with_reply(CallbackKind::Refusal, Reply::Accepted).collect(),
            unknown: unknown.collect(),
            registered: evidence.event.as_ref().map(|(_, txns)| txns.iter().map(String::as_str).collect()),
        }
    }

    /// Returns the transactions whose webhook must arrive: those of registered guests at an event, otherwise all
    /// accepted and declined ones.
    fn required_webhooks(&self) -> HashSet<&'a str> {
        match &self.registered {
            Some(registered) => registered.union(&self.accepted).copied().collect(),
            None => self.accepted.union(&self.declined).copied().collect(),
        }
    }

    /// Returns the transactions whose webhook may arrive.
    fn allowed_webhooks(&self) -> HashSet<&'a str> {
        match &self.registered {
            Some(registered) => registered.clone(),
            None => self.required_webhooks().union(&self.unknown).copied().collect(),
        }
    }
}

/// Returns the ids of the transactions for whose webhooks a run must wait. At an event, declined transactions have no
/// webhook.
#[must_use]
pub fn txns_with_webhook(journal: &Records, has_event: bool) -> Vec<String> {
    let declined = journal.txns_with_reply(CallbackKind::Refusal, Reply::Accepted).filter(|_| !has_event);
    journal.txns_with_reply(CallbackKind::Consent, Reply::Accepted).chain(declined).map(str::to_owned).collect()
}

/// Counts the webhooks by their arrival.
#[must_use]
pub fn count_webhooks(evidence: &Evidence) -> WebhookCounts {
    let expected = Expected::from_evidence(evidence);
    let (required, allowed, arrived) =
        (expected.required_webhooks(), expected.allowed_webhooks(), &evidence.webhooks.by_txn);
    let mut counts = WebhookCounts { expected: required.len() as u64, ..WebhookCounts::default() };
    for txn in &required {
        let callback = evidence.journal.entries.get(*txn).and_then(|entry| entry.callback);
        match arrived.get(*txn) {
            None => counts.lost += 1,
            Some(arrival)
                if callback.is_some_and(|callback| arrival.first > callback.replied_at + evidence.late_after) =>
            {
                counts.late += 1;
            }
            Some(_) => counts.on_time += 1,
        }
    }
    counts.repeated = arrived.values().filter(|arrival| arrival.count > 1).count() as u64;
    counts.unexpected = arrived.keys().filter(|txn| !allowed.contains(txn.as_str())).count() as u64;
    counts
}

/// Checks every rule.
#[must_use]
pub fn judge(evidence: &Evidence) -> Vec<Finding> {
    let expected = Expected::from_evidence(evidence);
    let mut findings = vec![
        rules::check_own_records(evidence),
        rules::check_own_transactions(evidence),
        rules::check_debits(evidence),
        rules::check_ledger(evidence),
    ];
    if let Some((event, registered_txns)) = &evidence.event {
        findings.extend([
            rules::check_places(evidence, event, registered_txns),
            rules::check_registrations(evidence, &expected, event, registered_txns),
            rules::check_scan_count(evidence, event),
            rules::check_abandoned_count(evidence, event),
        ]);
        findings.extend(evidence.max_guests.map(|places| rules::check_turned_away(evidence, places)));
        if let Some(guests) = &evidence.guests {
            findings.push(guests::check_marks(evidence, event, guests));
            findings.push(guests::check_refusals(evidence, event, guests));
            if !evidence.doors.is_empty() {
                findings.extend([
                    doors::check_lists(evidence, guests),
                    doors::check_single_check_in(evidence, guests),
                    doors::check_times_and_gates(evidence, event, guests),
                    doors::check_counts(evidence, event, guests),
                ]);
            }
        }
    }
    if evidence.has_poll_results {
        findings.push(rules::check_results(evidence));
    }
    findings.extend(
        evidence.deliveries.as_ref().map(|deliveries| rules::check_deliveries(evidence, deliveries, &expected)),
    );
    findings.extend([
        rules::check_required_webhooks(evidence, &expected),
        rules::check_repeated_webhooks(evidence),
        rules::check_unexpected_webhooks(evidence, &expected),
        rules::check_webhook_outcomes(evidence, &expected),
        rules::check_refused_callbacks(evidence),
    ]);
    findings
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every promise was kept.
    Held,
    /// The service broke a promise.
    Broken,
    /// The tester contradicts itself, so the run proves nothing.
    Tester,
}

impl Verdict {
    /// Returns true if every promise was kept.
    #[must_use]
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Held)
    }

    /// Returns the verdict in words.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Held => "Every invariant held.",
            Self::Broken => "The service broke an invariant.",
            Self::Tester => "The tester contradicts itself; this run proves nothing.",
        }
    }

    /// Returns the verdict on these findings.
    #[must_use]
    pub fn from_findings(findings: &[Finding]) -> Self {
        let broken = |blame| findings.iter().any(|finding| !finding.held && finding.blame == blame);
        match (broken(Blame::Tester), broken(Blame::Service)) {
            (true, _) => Self::Tester,
            (false, true) => Self::Broken,
            (false, false) => Self::Held,
        }
    }
}

/// Returns the debits of a ledger.
fn debits(ledger: &[StatementEntry]) -> impl Iterator<Item = &StatementEntry> {
    ledger.iter().filter(|entry| entry.kind == EntryKind::Debit)
}

/// Counts debits by the transaction that they name.
fn debits_by_txn(ledger: &[StatementEntry]) -> HashMap<&str, u32> {
    let mut by_txn = HashMap::new();
    for debit in debits(ledger) {
        *by_txn.entry(debit.reference.as_str()).or_default() += 1;
    }
    by_txn
}
