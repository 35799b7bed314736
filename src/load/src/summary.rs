//! Builds the figures of the report from the evidence, findings and latencies of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use sakshi_client::judge::journal::{CallbackKind, Reply};
use sakshi_client::judge::{Evidence, Finding, Verdict, count_webhooks};
use sakshi_domain::credits::EntryKind;
use sakshi_domain::time::Timestamp;

use crate::doors::{ScanCounts, count_scans};
use crate::record::{Step, StepRecord};
use crate::report::{Credits, Doors, Guests, Places, Process, StepSummary, Summary, Tester};
use crate::workload::{Model, Workload};

/// Measurements of a run, besides the evidence for the judge.
#[derive(Debug)]
pub(crate) struct Measurements {
    pub(crate) started_at: Timestamp,
    pub(crate) duration: Duration,
    pub(crate) steps: BTreeMap<Step, StepRecord>,
    pub(crate) tester: Tester,
    /// Resident bytes of the service, with the seconds since the start.
    pub(crate) memory: Vec<(f64, u64)>,
    pub(crate) processes: Vec<Process>,
}

/// Builds all reported figures.
pub(crate) fn summarise(
    workload: &Workload,
    evidence: &Evidence,
    findings: Vec<Finding>,
    measurements: Measurements,
) -> Summary {
    let (model, correction) = describe_model(workload);
    let seconds = measurements.duration.as_secs_f64();
    let journal = &evidence.journal;
    let opened = journal.entries.len() as u64;
    let count = |callback, reply| journal.txns_with_reply(callback, reply).count() as u64;
    let spent = evidence.ledger.iter().filter(|line| line.kind == EntryKind::Debit).map(|line| line.amount).sum();
    let guests = Guests {
        started: evidence.started,
        completed: count(CallbackKind::Consent, Reply::Accepted),
        declined: count(CallbackKind::Refusal, Reply::Accepted),
        left: journal.entries.values().filter(|entry| entry.callback.is_none()).count() as u64,
        turned_away: journal.turned_away.len() as u64 + count(CallbackKind::Consent, Reply::Full),
        already_registered: count(CallbackKind::Consent, Reply::Duplicate),
        failed: journal.failed,
    };
    Summary {
        scenario: format!("{:?}", workload.scenario).to_lowercase(),
        model,
        correction: correction.to_owned(),
        began: measurements.started_at.to_string(),
        seconds,
        verdict: Verdict::from_findings(&findings),
        guests,
        steps: measurements
            .steps
            .iter()
            .map(|(step, record)| StepSummary::new(*step, record, workload.slice, seconds))
            .collect(),
        webhooks: count_webhooks(evidence),
        credits: Credits { spent, least: opened, most: opened + journal.unknown_openings },
        places: evidence.event.as_ref().map(|(event, _)| Places {
            registered: event.registration_count.into(),
            max_guests: event.max_guests.get().into(),
        }),
        doors: door_figures(evidence),
        tester: measurements.tester,
        memory: measurements.memory,
        processes: measurements.processes,
        problems: journal.problems.clone(),
        findings,
    }
}

fn door_figures(evidence: &Evidence) -> Option<Doors> {
    let ScanCounts { checked_in, at_two_doors, sent_later } = count_scans(&evidence.journal.scans);
    let doors = evidence.doors.len() as u64;
    (doors > 0).then_some(Doors { doors, checked_in, at_two_doors, sent_later })
}

/// Describes the model, and the correction of the latencies.
fn describe_model(workload: &Workload) -> (String, &'static str) {
    match workload.model {
        Model::Open { rate } => (
            format!(
                "open model, {} guests at {rate:.1}/s on average (Poisson, seed {})",
                workload.guests, workload.seed
            ),
            "Latencies count from the intended time of a request, so a stall shows in every request that it delays.",
        ),
        Model::Closed { users, interval } => (
            match interval {
                Some(interval) => {
                    format!(
                        "closed model, {users} users, {} guests, each user at most every {:.2} s",
                        workload.guests,
                        interval.as_secs_f64()
                    )
                }
                None => format!("closed model, {users} users, {} guests, one after the other", workload.guests),
            },
            "Corrected for coordinated omission: for a request that took longer than its user's interval, the samples \
                that the user did not send are added.",
        ),
    }
}
