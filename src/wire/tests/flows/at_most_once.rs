//! At most one webhook per deduplication key: reports in random order and with repetitions, compared with a
//! model that knows only the specification's keys.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use proptest::sample::select;
use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::EsignFlow;
use sakshi_domain::flow::estamp::EStampFlow;
use sakshi_domain::flow::report::Report;
use sakshi_domain::flow::transition::{ReportRefusal, Transition};
use sakshi_domain::flow::wealth_consent::WealthConsent;
use sakshi_domain::flow::wealth_data::DataFetch;
use sakshi_domain::flow::wealth_historical::HistoricalFetch;
use sakshi_wire::doclocker::DocLockerOutcome;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::read_report;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use serde_json::{Value, json};

use crate::fixtures::*;

/// A report in short: its kind, status and content.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ShortReport {
    ESign { status: &'static str, content: u8 },
    DocLocker { status: &'static str, content: u8 },
    EStamp { status: &'static str, content: u8 },
    Consent { status: &'static str, content: u8 },
    Data { txn: u8, data_type: &'static str, content: u8 },
    Historical { account: u8, from: u8, content: u8 },
}
use ShortReport::{Consent, Data, DocLocker, ESign, EStamp, Historical};

fn any_report() -> impl Strategy<Value = ShortReport> {
    let words = |words: &'static [&'static str]| (select(words), 0..2_u8);
    prop_oneof![
        words(&["Pending", "Half", "Completed", "Rejected", "Expired"])
            .prop_map(|(status, content)| ESign { status, content }),
        words(&["Pending", "Fetched", "Failed"]).prop_map(|(status, content)| DocLocker { status, content }),
        words(&["Pending", "Completed", "Rejected"]).prop_map(|(status, content)| EStamp { status, content }),
        words(&["Accepted", "Rejected", "Revoked", "Expiring Soon", "Expired"])
            .prop_map(|(status, content)| Consent { status, content }),
        (0..3_u8, words(&["RAW", "ANALYSED"])).prop_map(|(txn, (data_type, content))| Data { txn, data_type, content }),
        (0..2_u8, 1..3_u8, 0..2_u8).prop_map(|(account, from, content)| Historical { account, from, content }),
    ]
}

/// Returns the key of the webhook that the model expects for a report, given the keys sent before.
fn expected_webhook(report: ShortReport, sent: &mut HashSet<String>) -> Option<String> {
    let rank = |status: &str| {
        ["Accepted", "Expiring Soon", "Revoked Expired Rejected"].iter().position(|words| words.contains(status))
    };
    let earlier: Vec<&str> = ["Accepted", "Expiring Soon", "Revoked", "Expired", "Rejected"]
        .into_iter()
        .filter(|status| sent.contains(*status))
        .collect();
    let key = match report {
        ESign { status: "Pending" | "Half", .. }
        | DocLocker { status: "Pending", .. }
        | EStamp { status: "Pending", .. } => {
            return None;
        }
        ESign { .. } => "esign".to_owned(),
        DocLocker { .. } => "doclocker".to_owned(),
        EStamp { .. } => "estamp".to_owned(),
        Consent { status: "Rejected", .. } if !earlier.is_empty() => return None,
        Consent { status, .. } if earlier.iter().any(|earlier| rank(earlier) >= rank(status)) => return None,
        Consent { status, .. } => status.to_owned(),
        Data { txn, data_type, .. } => format!("{txn} {data_type}"),
        Historical { account, from, .. } => format!("{account} {from}"),
    };
    sent.insert(key.clone()).then_some(key)
}

/// The flows and fetches that a store would hold, and the webhooks that it would queue.
struct FlowStore {
    esign: EsignFlow,
    doclocker: DocLockerFlow,
    estamp: EStampFlow,
    consent: WealthConsent,
    data: HashMap<u8, DataFetch>,
    historical: HashMap<(u8, u8), HistoricalFetch>,
    queued: Vec<String>,
}

/// Stores the result of a transition. Returns true if the report was a repetition.
fn apply<S>(transition: Result<Transition<S>, ReportRefusal>, queued: &mut Vec<String>, store: impl FnOnce(S)) -> bool {
    match transition {
        Ok(Transition::Repeated) => return true,
        Ok(Transition::Progressed { next }) => store(next),
        Ok(Transition::WebhookDue { next, webhook }) => {
            queued.push(webhook.to_string());
            store(next);
        }
        Err(_) => {}
    }
    false
}

impl FlowStore {
    fn new() -> Self {
        Self {
            esign: esign(),
            doclocker: doclocker(),
            estamp: estamp(),
            consent: consent(),
            data: HashMap::new(),
            historical: HashMap::new(),
            queued: Vec::new(),
        }
    }

    /// Handles a report. Returns true if it was a repetition.
    fn handle(&mut self, report: ShortReport) -> bool {
        let body = body_of(report);
        let queued = &mut self.queued;
        match report {
            ESign { .. } => {
                let admitted = self.esign.admit(read_report::<Report<EsignOutcome>>(&body).unwrap());
                let transition =
                    admitted.and_then(|report| self.esign.report(&report, digest(&report), before_expiry()));
                apply(transition, queued, |next| self.esign = next)
            }
            DocLocker { .. } => {
                let report = self.doclocker.admit(read_report::<Report<DocLockerOutcome>>(&body).unwrap()).unwrap();
                apply(self.doclocker.report(&report, digest(&report), before_expiry()), queued, |next| {
                    self.doclocker = next;
                })
            }
            EStamp { .. } => {
                let report = self.estamp.admit(read_report::<Report<EStampOutcome>>(&body).unwrap()).unwrap();
                apply(self.estamp.report(&report, digest(&report), before_expiry()), queued, |next| self.estamp = next)
            }
            Consent { .. } => {
                let report = self.consent.admit(read_report::<Report<WealthConsentChange>>(&body).unwrap()).unwrap();
                apply(self.consent.report(&report, digest(&report), before_expiry()), queued, |next| {
                    self.consent = next;
                })
            }
            Data { txn, .. } => {
                let fetch = self.data.entry(txn).or_default();
                let report = self.consent.admit(read_report::<Report<WealthDataNotice>>(&body).unwrap()).unwrap();
                apply(fetch.report(&self.consent, &report, digest(&report)), queued, |next| *fetch = next)
            }
            Historical { account, from, .. } => {
                let fetch = self.historical.entry((account, from)).or_default();
                let report = self.consent.admit(read_report::<Report<WealthHistoricalNotice>>(&body).unwrap()).unwrap();
                apply(fetch.report(&self.consent, &report, digest(&report)), queued, |next| *fetch = next)
            }
        }
    }
}

fn body_of(short: ShortReport) -> Vec<u8> {
    let numbered = |content: u8| json!(format!("content {content}"));
    match short {
        ESign { status, content } => {
            let golden = match status {
                "Rejected" => ESIGN_REJECTED,
                "Expired" => ESIGN_EXPIRED,
                _ => ESIGN_COMPLETED,
            };
            report(golden, |body: &mut Value| {
                body["signerInfo"][1]["signerName"] = numbered(content);
                match status {
                    "Pending" => unsigned(body),
                    "Half" => half_signed(body),
                    _ => {}
                }
            })
        }
        DocLocker { status, content } => {
            report(if status == "Failed" { DOCLOCKER_FAILED } else { DOCLOCKER_FETCHED }, |body| {
                body["message"] = numbered(content);
                if status == "Pending" {
                    body["data"]["docs"][1]["status"] = json!("Pending");
                }
            })
        }
        EStamp { status, content } => {
            report(if status == "Rejected" { ESTAMP_REJECTED } else { ESTAMP_COMPLETED }, |body| {
                body["message"] = numbered(content);
                body["data"]["workflowStatus"] = json!(status);
            })
        }
        Consent { status, content } => report(CONSENT_ACCEPTED, |body| {
            body["status"] = json!(status);
            body["userSessionId"] = json!(format!("session-{content}"));
        }),
        Data { txn, data_type, content } => report(DATA_RAW, |body| {
            body["txnId"] = json!(format!("fetch-{txn}"));
            body["dataType"] = json!(data_type);
            body["desc"] = numbered(content);
        }),
        Historical { account, from, content } => report(HISTORICAL, |body| {
            body["accountId"] = json!(format!("account-{account}"));
            body["fromDate"] = json!(format!("2020-04-0{from}"));
            body["fipId"] = json!(format!("fip-{content}"));
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_expected_webhook_is_queued_exactly_once(reports in prop::collection::vec(any_report(), 1..60)) {
        let (mut store, mut sent) = (FlowStore::new(), HashSet::new());
        for report in reports {
            let before = store.queued.len();
            let repeated = store.handle(report);
            let queued = store.queued.len() - before;
            prop_assert_eq!(queued, usize::from(expected_webhook(report, &mut sent).is_some()), "{:?}", report);
            prop_assert!(!(repeated && queued > 0));
            if queued > 0 {
                prop_assert!(store.handle(report), "a second copy is a repetition: {:?}", report);
            }
        }
        let keys: HashSet<&String> = store.queued.iter().collect();
        prop_assert_eq!(keys.len(), store.queued.len());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..900_usize) {
        prop_assert!(read_report::<Report<EsignOutcome>>(&bytes).is_err());
        let mut body = report(DOCLOCKER_FETCHED, |_| ());
        let at = at % body.len();
        let end = body.len().min(at + bytes.len());
        body[at..end].copy_from_slice(&bytes[..end - at]);
        let _ = read_report::<Report<DocLockerOutcome>>(&body);
    }
}
