//! A model of the flows of one app: at most one delivery for each deduplication key.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;

use super::{AnswerFuture, Behaviour, call_all};
use crate::ReportFlowOutcome;
use crate::conformance::TestStore;
use crate::conformance::flow_fixture::{
    Flow, ShortReport, build_report, create_client_app, locker_flow, open_flow, register_webhooks, wealth_flow,
};

/// Generates reports of a document-locker flow and of a wealth-data flow.
pub(crate) fn step() -> impl Strategy<Value = ShortReport> {
    let statuses = vec!["Accepted", "Rejected", "Revoked", "Expiring Soon", "Expired"];
    prop_oneof![
        (select(vec!["Pending", "Fetched", "Failed"]), 0..2_u8)
            .prop_map(|(status, content)| ShortReport::Locker { status, content }),
        (select(statuses), 0..2_u8).prop_map(|(status, content)| ShortReport::Consent { status, content }),
        (0..3_u8, select(vec!["RAW", "ANALYSED"]), 0..2_u8).prop_map(|(fetch, form, content)| ShortReport::Data {
            fetch,
            form,
            content
        }),
        (0..3_u8, 0..2_u8).prop_map(|(account, content)| ShortReport::Historical { account, content }),
    ]
}

/// The expected state of a store.
#[derive(Default)]
struct Model {
    /// Content of the accepted report, by deduplication key.
    accepted: BTreeMap<String, (&'static str, u8)>,
    /// Status of the consent.
    consent: Option<&'static str>,
    /// Content of the latest progress report of the locker.
    progress: Option<u8>,
}

impl Model {
    /// Applies a report. Returns the expected answer.
    fn expect(&mut self, report: ShortReport) -> &'static str {
        let (key, content) = match report {
            ShortReport::Locker { status: "Pending", content } if !self.accepted.contains_key("locker") => {
                return if self.progress.replace(content) == Some(content) { "repeated" } else { "progressed" };
            }
            ShortReport::Locker { status, content } => (key(report), (status, content)),
            ShortReport::Consent { content, .. }
            | ShortReport::Data { content, .. }
            | ShortReport::Historical { content, .. } => (key(report), ("", content)),
            ShortReport::Document(_) | ShortReport::Large(_) => unreachable!("the model has no such report"),
        };
        match (self.accepted.get(&key), report) {
            (Some(first), _) => return if *first == content { "repeated" } else { "refused" },
            (None, ShortReport::Consent { status: to, .. }) if !can_change(self.consent, to) => return "refused",
            (None, ShortReport::Consent { status: to, .. }) => self.consent = Some(to),
            (None, _) => {}
        }
        self.accepted.insert(key, content);
        "queued"
    }
}

/// Returns true if a consent may change between these states.
fn can_change(from: Option<&str>, to: &str) -> bool {
    match from {
        None => true,
        Some("Accepted") => matches!(to, "Expiring Soon" | "Revoked" | "Expired"),
        Some("Expiring Soon") => matches!(to, "Revoked" | "Expired"),
        Some(_) => false,
    }
}

/// Reports a flow to the store. Returns the answer in the words of the model.
fn execute(test: &impl TestStore, locker: &Flow, wealth: &Flow, report: ShortReport) -> AnswerFuture {
    let flow = if matches!(report, ShortReport::Locker { .. }) { locker } else { wealth };
    let outcome = test.store().report_flow(build_report(flow, report));
    Box::pin(async move {
        match outcome.await.unwrap() {
            ReportFlowOutcome::Accepted { queued: Some(_), .. } => "queued",
            ReportFlowOutcome::Accepted { queued: None, .. } => "progressed",
            ReportFlowOutcome::Repeated => "repeated",
            ReportFlowOutcome::Refused(_) => "refused",
            ReportFlowOutcome::NotFound => "not found",
        }
        .to_owned()
    })
}

/// Makes the reports one after the other, and compares each answer with the model's.
pub(crate) async fn compare(test: &impl TestStore, steps: Vec<ShortReport>) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    let (locker, wealth) =
        (open_flow(test, locker_flow(test, &client_app)).await, open_flow(test, wealth_flow(test, &client_app)).await);
    let mut model = Model::default();
    let expected: Vec<_> = steps.iter().map(|report| model.expect(*report)).collect();
    let sequential = Behaviour { executes_in_order: false, removes_expired: true };
    let calls = steps.iter().map(|report| execute(test, &locker, &wealth, *report));
    assert_eq!(call_all(sequential, calls).await, expected, "{steps:?}");
    let due = test.store().first_due_deliveries(1_000).await.unwrap();
    let subjects: BTreeSet<_> = due.iter().map(|delivery| delivery.subject).collect();
    assert_eq!((due.len(), subjects.len()), (model.accepted.len(), model.accepted.len()));
}

/// Makes all reports concurrently, and checks that each key has at most one delivery.
pub(crate) async fn race(test: &impl TestStore, steps: Vec<ShortReport>) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    let (locker, wealth) =
        (open_flow(test, locker_flow(test, &client_app)).await, open_flow(test, wealth_flow(test, &client_app)).await);
    let calls: Vec<_> = steps.iter().map(|report| execute(test, &locker, &wealth, *report)).collect();
    let answers = futures_util::future::join_all(calls).await;
    let queued: Vec<_> =
        steps.iter().zip(&answers).filter(|(_, answer)| *answer == "queued").map(|(report, _)| key(*report)).collect();
    let keys: BTreeSet<_> = queued.iter().collect();
    assert_eq!(keys.len(), queued.len(), "{steps:?} {answers:?}");
    assert_eq!(test.store().first_due_deliveries(1_000).await.unwrap().len(), queued.len());
}

/// Returns the deduplication key of a report.
fn key(report: ShortReport) -> String {
    match report {
        ShortReport::Locker { .. } => "locker".to_owned(),
        ShortReport::Consent { status, .. } => status.to_owned(),
        ShortReport::Data { fetch, form, .. } => format!("{fetch} {form}"),
        ShortReport::Historical { account, .. } => format!("historical {account}"),
        ShortReport::Document(_) | ShortReport::Large(_) => unreachable!("the model has no such report"),
    }
}
