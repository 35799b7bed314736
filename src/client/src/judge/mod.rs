//! The invariants of the service, checked from outside. Its records at the end are compared with the answers to clients
//! and guests, with one [`Finding`] for each promise.
//!
//! The load tester uses it after every run, and tests use it after storms of kills. It does no I/O.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sakshi_domain::credits::EntryKind;
use sakshi_wire::credits::StatementEntry;
use sakshi_wire::events::EventResponse;
use serde::Serialize;

use self::doors::DoorView;
use self::guests::RegisteredGuest;
use self::journal::{Posted, Records, Reply};
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
    /// Number of guests who were started.
    pub started: u64,
    /// Webhooks that the receiver got.
    pub webhooks: Arrivals,
    /// The service's records of its webhooks, if they were read.
    pub deliveries: Option<Deliveries>,
    /// Credits that the client was granted.
    pub granted: i64,
    /// True if the result of every answered transaction was read.
    pub polled: bool,
    /// The client's ledger.
    pub ledger: Vec<StatementEntry>,
    /// The client's balance.
    pub balance: u64,
    /// The event and the transactions of its registered guests; none for the API.
    pub event: Option<(EventResponse, Vec<String>)>,
    /// The registered guests with their marks and check-ins, oldest first, if they are checked.
    pub guests: Option<Vec<RegisteredGuest>>,
    /// The doors of the event at the end of the run.
    pub doors: Vec<DoorView>,
    /// The places of the event, unless their number was changed during the run.
    pub max_guests: Option<u64>,
    /// Time at which the service's counts were read, in seconds since the Unix epoch.
    pub read_at: i64,
    /// True if guests who left were given the time to expire.
    pub all_expired: bool,
    /// Time after which a webhook is late.
    pub late: Duration,
}

/// The service's records of its webhooks.
#[derive(Clone, Debug, Default)]
pub struct Deliveries {
    /// Outcome of the attempt, by transaction.
    pub outcomes: HashMap<String, String>,
    /// Number of attempts that can have been in flight when the service was killed; these end as `unknown`.
    pub unknown_max: u64,
}

/// The side at fault if a rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The service's: its records contradict its answers.
    Service,
    /// The tester's: its own records contradict each other, so nothing else is proved.
    Tester,
}

/// The result of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The promise.
    pub rule: &'static str,
    /// The side at fault if it is broken.
    pub blame: Blame,
    /// True if it held.
    pub held: bool,
    /// The figures.
    pub figures: String,
    /// Transactions that show the breach, the first few.
    pub examples: Vec<String>,
}

/// Webhooks by their arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WebhookCounts {
    /// Number that had to come.
    pub expected: u64,
    /// Number that came in time.
    pub on_time: u64,
    /// Number that came later.
    pub late: u64,
    /// Number that never came.
    pub lost: u64,
    /// Number that came more than once.
    pub repeated: u64,
    /// Number that came for a transaction without an outcome to report.
    pub unexpected: u64,
}

/// Transactions by their expected outcome.
struct Expected<'a> {
    /// Completed for certain: registered, at an event.
    accepted: HashSet<&'a str>,
    /// Declined, which the service accepted.
    declined: HashSet<&'a str>,
    /// The answer was posted, and no reply came.
    unknown: HashSet<&'a str>,
    registered: Option<HashSet<&'a str>>,
}

const EXAMPLES: usize = 10;

impl<'a> Expected<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let journal = &evidence.journal;
        let unknown =
            journal.replied(Posted::Consent, Reply::Unknown).chain(journal.replied(Posted::Refusal, Reply::Unknown));
        Self {
            accepted: journal.replied(Posted::Consent, Reply::Accepted).collect(),
            declined: journal.replied(Posted::Refusal, Reply::Accepted).collect(),
            unknown: unknown.collect(),
            registered: evidence.event.as_ref().map(|(_, list)| list.iter().map(String::as_str).collect()),
        }
    }

    /// Returns the transactions whose webhook must be sent: registered guests at an event, otherwise all that were
    /// answered.
    fn owed(&self) -> HashSet<&'a str> {
        match &self.registered {
            Some(registered) => registered.union(&self.accepted).copied().collect(),
            None => self.accepted.union(&self.declined).copied().collect(),
        }
    }

    /// Returns the transactions whose webhook may come.
    fn allowed(&self) -> HashSet<&'a str> {
        match &self.registered {
            Some(registered) => registered.clone(),
            None => self.owed().union(&self.unknown).copied().collect(),
        }
    }
}

/// Returns the transactions whose webhooks the run has to wait for.
#[must_use]
pub fn owed(journal: &Records, event: bool) -> Vec<String> {
    let declined = journal.replied(Posted::Refusal, Reply::Accepted).filter(|_| !event);
    journal.replied(Posted::Consent, Reply::Accepted).chain(declined).map(str::to_owned).collect()
}

/// Counts the webhooks.
#[must_use]
pub fn webhooks(evidence: &Evidence) -> WebhookCounts {
    let expected = Expected::of(evidence);
    let (owed, allowed, arrived) = (expected.owed(), expected.allowed(), &evidence.webhooks.by_txn);
    let mut counts = WebhookCounts { expected: owed.len() as u64, ..WebhookCounts::default() };
    for txn in &owed {
        let answered = evidence.journal.entries.get(*txn).and_then(|entry| entry.answered);
        match arrived.get(*txn) {
            None => counts.lost += 1,
            Some(arrival) if answered.is_some_and(|answered| arrival.first > answered.replied + evidence.late) => {
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
    let expected = Expected::of(evidence);
    let mut findings = vec![
        rules::own_records(evidence),
        rules::own_transactions(evidence),
        rules::debits(evidence),
        rules::ledger(evidence),
    ];
    if let Some((event, list)) = &evidence.event {
        findings.extend([
            rules::places(evidence, event, list),
            rules::registered(evidence, &expected, event, list),
            rules::scans(evidence, event),
            rules::abandoned(evidence, event),
        ]);
        findings.extend(evidence.max_guests.map(|places| rules::full(evidence, places)));
        if let Some(guests) = &evidence.guests {
            findings.push(guests::duplicates(evidence, event, guests));
            findings.push(guests::refusals(evidence, event, guests));
            if !evidence.doors.is_empty() {
                findings.extend([
                    doors::tried(evidence, guests),
                    doors::once(evidence, guests),
                    doors::agree(evidence, event, guests),
                    doors::counts(evidence, event, guests),
                ]);
            }
        }
    }
    if evidence.polled {
        findings.push(rules::results(evidence));
    }
    findings.extend(evidence.deliveries.as_ref().map(|deliveries| rules::deliveries(evidence, deliveries, &expected)));
    findings.extend([
        rules::reported(evidence, &expected),
        rules::once(evidence),
        rules::only_expected(evidence, &expected),
        rules::correct(evidence, &expected),
        rules::answers(evidence),
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
    /// The tester contradicts itself; nothing is proved.
    Tester,
}

impl Verdict {
    /// Returns true if no rule was broken.
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
    pub fn of(findings: &[Finding]) -> Self {
        let broken = |blame| findings.iter().any(|finding| !finding.held && finding.blame == blame);
        match (broken(Blame::Tester), broken(Blame::Service)) {
            (true, _) => Self::Tester,
            (false, true) => Self::Broken,
            (false, false) => Self::Held,
        }
    }
}

fn debits(ledger: &[StatementEntry]) -> impl Iterator<Item = &StatementEntry> {
    ledger.iter().filter(|line| line.kind == EntryKind::Debit)
}

/// Counts debits by the transaction that they name.
fn debited(ledger: &[StatementEntry]) -> HashMap<&str, u32> {
    let mut debited = HashMap::new();
    for line in debits(ledger) {
        *debited.entry(line.reference.as_str()).or_default() += 1;
    }
    debited
}
