//! The invariants of the service, checked from outside: its records at the end are compared with what clients and guests
//! were told, with one [`Finding`] for each promise.
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

/// Everything that is known at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What the tester did and was told.
    pub journal: Records,
    /// Guests who were started.
    pub started: u64,
    /// What the receiver got.
    pub webhooks: Arrivals,
    /// What the service recorded of its webhooks, if it was asked.
    pub deliveries: Option<Deliveries>,
    /// Credits that the client was granted.
    pub granted: i64,
    /// Whether the result of every transaction that was answered was read.
    pub polled: bool,
    /// The client's ledger.
    pub ledger: Vec<StatementEntry>,
    /// The client's balance.
    pub balance: u64,
    /// The event and the transactions of its registered guests; none for the API.
    pub event: Option<(EventResponse, Vec<String>)>,
    /// The registered guests with their marks and check-ins, oldest first, if they are to be judged.
    pub guests: Option<Vec<RegisteredGuest>>,
    /// The doors of the event at the end of the run.
    pub doors: Vec<DoorView>,
    /// The places of the event, unless their number was changed during the run.
    pub max_guests: Option<u64>,
    /// When the service's counts were read, in seconds since the Unix epoch.
    pub read_at: i64,
    /// Whether those who left were given the time to expire.
    pub all_expired: bool,
    /// From when on a webhook is late.
    pub late: Duration,
}

/// What the service recorded of its webhooks.
#[derive(Clone, Debug, Default)]
pub struct Deliveries {
    /// How the attempt ended, by transaction.
    pub outcomes: HashMap<String, String>,
    /// Attempts that can have been under way when the service was killed; these end as `unknown`.
    pub unknown_max: u64,
}

/// Whose fault a broken rule would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The service's: its records contradict its answers.
    Service,
    /// The tester's: its own records contradict each other, so nothing else is proved.
    Tester,
}

/// What became of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is promised.
    pub rule: &'static str,
    /// Whose fault it would be.
    pub blame: Blame,
    /// Whether it held.
    pub held: bool,
    /// The figures.
    pub figures: String,
    /// Transactions that show that it did not, the first few.
    pub examples: Vec<String>,
}

/// How webhooks arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WebhookCounts {
    /// That had to come.
    pub expected: u64,
    /// Came in time.
    pub on_time: u64,
    /// Came later.
    pub late: u64,
    /// Never came.
    pub lost: u64,
    /// Came more than once.
    pub repeated: u64,
    /// Came for a transaction without an outcome to report.
    pub unexpected: u64,
}

/// Transactions by the outcome that they must have.
struct Expected<'a> {
    /// Completed for certain: registered, at an event.
    accepted: HashSet<&'a str>,
    /// Declined, and the service accepted that.
    declined: HashSet<&'a str>,
    /// The answer was posted and nothing came back.
    unknown: HashSet<&'a str>,
    registered: Option<HashSet<&'a str>>,
}

const EXAMPLES: usize = 10;

impl<'a> Expected<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let journal = &evidence.journal;
        let unknown = journal.replied(Posted::Consent, Reply::Unknown).chain(journal.replied(Posted::Refusal, Reply::Unknown));
        Self {
            accepted: journal.replied(Posted::Consent, Reply::Accepted).collect(),
            declined: journal.replied(Posted::Refusal, Reply::Accepted).collect(),
            unknown: unknown.collect(),
            registered: evidence.event.as_ref().map(|(_, list)| list.iter().map(String::as_str).collect()),
        }
    }

    /// Whose webhook must be sent: at an event registered guests, otherwise everybody who answered.
    fn owed(&self) -> HashSet<&'a str> {
        match &self.registered {
            Some(registered) => registered.union(&self.accepted).copied().collect(),
            None => self.accepted.union(&self.declined).copied().collect(),
        }
    }

    /// Whose webhook may come.
    fn allowed(&self) -> HashSet<&'a str> {
        match &self.registered {
            Some(registered) => registered.clone(),
            None => self.owed().union(&self.unknown).copied().collect(),
        }
    }
}

/// The transactions whose webhooks the run has to wait for.
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
            Some(arrival) if answered.is_some_and(|answered| arrival.first > answered.replied + evidence.late) => counts.late += 1,
            Some(_) => counts.on_time += 1,
        }
    }
    counts.repeated = arrived.values().filter(|arrival| arrival.count > 1).count() as u64;
    counts.unexpected = arrived.keys().filter(|txn| !allowed.contains(txn.as_str())).count() as u64;
    counts
}

/// Judges every rule.
#[must_use]
pub fn judge(evidence: &Evidence) -> Vec<Finding> {
    let expected = Expected::of(evidence);
    let mut findings =
        vec![rules::own_records(evidence), rules::own_transactions(evidence), rules::debits(evidence), rules::ledger(evidence)];
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

/// How the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything that is promised was kept.
    Held,
    /// The service broke a promise.
    Broken,
    /// The tester contradicts itself; nothing is proved.
    Tester,
}

impl Verdict {
    /// Whether no rule was broken.
    #[must_use]
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Held)
    }

    /// In words.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Held => "Every invariant held.",
            Self::Broken => "The service broke an invariant.",
            Self::Tester => "The tester contradicts itself; this run proves nothing.",
        }
    }

    /// Of these findings.
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

/// Debits by the transaction that they name.
fn debited(ledger: &[StatementEntry]) -> HashMap<&str, u32> {
    let mut debited = HashMap::new();
    for line in debits(ledger) {
        *debited.entry(line.reference.as_str()).or_default() += 1;
    }
    debited
}
