//! The flows of one app: at most one delivery for each deduplication key, ever.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;

use super::{AnswerFuture, Behaviour, call_all};
use crate::ReportFlowOutcome;
use crate::conformance::TestStore;
use crate::conformance::flow_fixture::{Flow, ShortReport, locker, opened, party, registered, told, wealth};

/// Returns a report of the locker flow or the wealth-data flow.
pub(crate) fn step() -> impl Strategy<Value = ShortReport> {
    let statuses = vec!["Accepted", "Rejected", "Revoked", "Expiring Soon", "Expired"];
    prop_oneof![
        (select(vec!["Pending", "Fetched", "Failed"]), 0..2_u8)
            .prop_map(|(status, content)| ShortReport::Locker(status, content)),
        (select(statuses), 0..2_u8).prop_map(|(status, content)| ShortReport::Consent(status, content)),
        (0..3_u8, select(vec!["RAW", "ANALYSED"]), 0..2_u8)
            .prop_map(|(fetch, form, content)| ShortReport::Data(fetch, form, content)),
        (0..3_u8, 0..2_u8).prop_map(|(account, content)| ShortReport::Historical(account, content)),
    ]
}

/// The accepted reports under each key, and the report that the locker's poll shows.
#[derive(Default)]
struct Model {
    sent: BTreeMap<String, (&'static str, u8)>,
    consent: Option<&'static str>,
    shown: Option<u8>,
}

impl Model {
    fn expect(&mut self, report: ShortReport) -> &'static str {
        let (key, said) = match report {
            ShortReport::Locker("Pending", content) if !self.sent.contains_key("locker") => {
                return if self.shown.replace(content) == Some(content) { "repeated" } else { "progressed" };
            }
            ShortReport::Locker(word, content) => (key(report), (word, content)),
            ShortReport::Consent(_, content)
            | ShortReport::Data(_, _, content)
            | ShortReport::Historical(_, content) => (key(report), ("", content)),
            ShortReport::Document(_) | ShortReport::Large(_) => unreachable!("the model has no such report"),
        };
        match (self.sent.get(&key), report) {
            (Some(first), _) => return if *first == said { "repeated" } else { "refused" },
            (None, ShortReport::Consent(to, _)) if !moves(self.consent, to) => return "refused",
            (None, ShortReport::Consent(to, _)) => self.consent = Some(to),
            (None, _) => {}
        }
        self.sent.insert(key, said);
        "queued"
    }
}

fn moves(from: Option<&str>, to: &str) -> bool {
    match from {
        None => true,
        Some("Accepted") => matches!(to, "Expiring Soon" | "Revoked" | "Expired"),
        Some("Expiring Soon") => matches!(to, "Revoked" | "Expired"),
        Some(_) => false,
    }
}

fn execute(test: &impl TestStore, locker: &Flow, wealth: &Flow, report: ShortReport) -> AnswerFuture {
    let flow = if matches!(report, ShortReport::Locker(..)) { locker } else { wealth };
    let reported = test.store().report_flow(told(flow, report));
    Box::pin(async move {
        match reported.await.unwrap() {
            ReportFlowOutcome::Accepted { queued: Some(_), .. } => "queued",
            ReportFlowOutcome::Accepted { queued: None, .. } => "progressed",
            ReportFlowOutcome::Repeated => "repeated",
            ReportFlowOutcome::Refused(_) => "refused",
            ReportFlowOutcome::NotFound => "not found",
        }
        .to_owned()
    })
}

/// Makes the reports one after the other and compares each answer with the model's.
pub(crate) async fn compare(test: &impl TestStore, steps: Vec<ShortReport>) {
    let party = party(test).await;
    registered(test, &party).await;
    let (locker, wealth) = (opened(test, locker(test, &party)).await, opened(test, wealth(test, &party)).await);
    let mut model = Model::default();
    let expected: Vec<_> = steps.iter().map(|report| model.expect(*report)).collect();
    let one_by_one = Behaviour { in_order: false, expires: true };
    let calls = steps.iter().map(|report| execute(test, &locker, &wealth, *report));
    assert_eq!(call_all(one_by_one, calls).await, expected, "{steps:?}");
    let due = test.store().due_deliveries(None, None, 1_000).await.unwrap();
    let subjects: BTreeSet<_> = due.iter().map(|delivery| delivery.subject).collect();
    assert_eq!((due.len(), subjects.len()), (model.sent.len(), model.sent.len()));
}

/// Makes the reports all at once: in every order, each key has one delivery at most.
pub(crate) async fn race(test: &impl TestStore, steps: Vec<ShortReport>) {
    let party = party(test).await;
    registered(test, &party).await;
    let (locker, wealth) = (opened(test, locker(test, &party)).await, opened(test, wealth(test, &party)).await);
    let calls: Vec<_> = steps.iter().map(|report| execute(test, &locker, &wealth, *report)).collect();
    let answered = futures_util::future::join_all(calls).await;
    let queued: Vec<_> =
        steps.iter().zip(&answered).filter(|(_, answer)| *answer == "queued").map(|(report, _)| key(*report)).collect();
    let keys: BTreeSet<_> = queued.iter().collect();
    assert_eq!(keys.len(), queued.len(), "{steps:?} {answered:?}");
    assert_eq!(test.store().due_deliveries(None, None, 1_000).await.unwrap().len(), queued.len());
}

fn key(report: ShortReport) -> String {
    match report {
        ShortReport::Locker(..) => "locker".to_owned(),
        ShortReport::Consent(status, _) => status.to_owned(),
        ShortReport::Data(fetch, form, _) => format!("{fetch} {form}"),
        ShortReport::Historical(account, _) => format!("historical {account}"),
        ShortReport::Document(_) | ShortReport::Large(_) => unreachable!("the model has no such report"),
    }
}
