//! Puts evidence, findings and latencies of a run into the figures that are reported.

use std::collections::BTreeMap;
use std::time::Duration;

use sakshi_domain::time::Timestamp;
use sakshi_judge::journal::{Posted, Reply};
use sakshi_judge::{Evidence, Finding, Verdict, WebhookCounts};

use crate::plan::Plan;
use crate::record::{Latencies, Step, StepRecord};
use crate::report::{Credits, Guests, Places, Process, StepSummary, Summary, Tester, at};
use crate::run::in_words;
use crate::strain::Strain;

/// How a run ended, besides its evidence.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Ended {
    pub began: Timestamp,
    pub took: Duration,
    pub steps: BTreeMap<Step, StepRecord>,
    pub strain: Strain,
    pub memory: Vec<(f64, u64)>,
    pub processes: Vec<Process>,
    pub findings: Vec<Finding>,
    pub counts: WebhookCounts,
    pub verdict: Verdict,
}

/// The figures.
#[must_use]
pub fn summarise(plan: &Plan, evidence: &Evidence, ended: Ended) -> Summary {
    let (model, correction) = in_words(plan);
    let seconds = ended.took.as_secs_f64();
    let journal = &evidence.journal;
    let known = journal.entries.len() as u64;
    let count = |posted, reply| journal.replied(posted, reply).count() as u64;
    let spent = evidence.ledger.iter().filter(|line| line.kind == "debit").map(|line| line.amount).sum();
    let both = |latencies: &Latencies| (at(latencies, 99.0), latencies.max() as f64 / 1_000.0);
    let guests = Guests {
        let_in: evidence.let_in,
        completed: count(Posted::Consent, Reply::Accepted),
        declined: count(Posted::Refusal, Reply::Accepted),
        left: journal.entries.values().filter(|entry| entry.answered.is_none()).count() as u64,
        turned_away: journal.turned_away.len() as u64 + count(Posted::Consent, Reply::Full),
        failed: journal.failed,
    };
    Summary {
        scenario: plan.scenario.name().to_owned(),
        model,
        correction: correction.to_owned(),
        began: ended.began.to_string(),
        seconds,
        verdict: ended.verdict,
        guests,
        steps: ended.steps.iter().map(|(step, record)| StepSummary::of(*step, record, plan.slice, seconds)).collect(),
        webhooks: ended.counts,
        credits: Credits { spent, least: known, most: known + journal.unknown_openings },
        places: evidence.event.as_ref().map(|(event, _)| Places { registered: event.registration_count, max_guests: event.max_guests }),
        tester: Tester {
            lag_ms: both(&ended.strain.lag),
            wait_ms: both(&ended.strain.waits),
            busy: ended.strain.busy,
            signs: ended.strain.signs(),
        },
        memory: ended.memory,
        processes: ended.processes,
        troubles: journal.troubles.clone(),
        findings: ended.findings,
    }
}
