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

/// A report in short: its kind, and the parts that decide whether its webhook is due. `content` distinguishes reports
/// that are otherwise equal. `Half` is an eSign report in which one of two signers has signed.
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
    let status_and_content = |statuses: &'static [&'static str]| (select(statuses), 0..2_u8);
    prop_oneof![
        status_and_content(&["Pending", "Half", "Completed", "Rejected", "Expired"])
            .prop_map(|(status, content)| ESign { status, content }),
        status_and_content(&["Pending", "Fetched", "Failed"])
            .prop_map(|(status, content)| DocLocker { status, content }),
        status_and_content(&["Pending", "Completed", "Rejected"])
            .prop_map(|(status, content)| EStamp { status, content }),
        status_and_content(&["Accepted", "Rejected", "Revoked", "Expiring Soon", "Expired"])
            .prop_map(|(status, content)| Consent { status, content }),
        (0..3_u8, status_and_content(&["RAW", "ANALYSED"])).prop_map(|(txn, (data_type, content))| Data {
            txn,
            data_type,
            content
        }),
        (0..2_u8, 1..3_u8, 0..2_u8).prop_map(|(account, from, content)| Historical { account, from, content }),
    ]
}

/// Returns the key of the webhook that the model expects for a report, if any, and adds it to the keys sent so far.
fn expected_webhook(report: ShortReport, sent_keys: &mut HashSet<String>) -> Option<String> {
    // A consent moves to a higher rank only; the last three statuses are final.
    let rank = |status: &str| {
        ["Accepted", "Expiring Soon", "Revoked Expired Rejected"].iter().position(|statuses| statuses.contains(status))
    };
    let earlier: Vec<&str> = ["Accepted", "Expiring Soon", "Revoked", "Expired", "Rejected"]
        .into_iter()
        .filter(|status| sent_keys.contains(*status))
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
    sent_keys.insert(key.clone()).then_some(key)
}

/// The flows and fetches that a store would hold, and the webhooks that it would queue.
struct FlowStore {
    esign: EsignFlow,
    doclocker: DocLockerFlow,
    estamp: EStampFlow,
    consent: WealthConsent,
    data: HashMap<u8, DataFetch>,
    historical: HashMap<(u8, u8), HistoricalFetch>,
    /// The keys of the queued webhooks.
    queued: Vec<String>,
}

/// Stores the result of a transition. Returns true if the report was a repetition.
fn store_transition<S>(
    transition: Result<Transition<S>, ReportRefusal>,
    queued: &mut Vec<String>,
    store: impl FnOnce(S),
) -> bool {
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
            esign: new_esign_flow(),
            doclocker: new_locker_flow(),
            estamp: new_estamp_flow(),
            consent: requested_consent(),
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
                store_transition(transition, queued, |next| self.esign = next)
            }
            DocLocker { .. } => {
                let report = self.doclocker.admit(read_report::<Report<DocLockerOutcome>>(&body).unwrap()).unwrap();
                store_transition(self.doclocker.report(&report, digest(&report), before_expiry()), queued, |next| {
                    self.doclocker = next;
                })
            }
            EStamp { .. } => {
                let report = self.estamp.admit(read_report::<Report<EStampOutcome>>(&body).unwrap()).unwrap();
                store_transition(self.estamp.report(&report, digest(&report), before_expiry()), queued, |next| {
                    self.estamp = next;
                })
            }
            Consent { .. } => {
                let report = self.consent.admit(read_report::<Report<WealthConsentChange>>(&body).unwrap()).unwrap();
                store_transition(self.consent.report(&report, digest(&report), before_expiry()), queued, |next| {
                    self.consent = next;
                })
            }
            Data { txn, .. } => {
                let fetch = self.data.entry(txn).or_default();
                let report = self.consent.admit(read_report::<Report<WealthDataNotice>>(&body).unwrap()).unwrap();
                store_transition(fetch.report(&self.consent, &report, digest(&report)), queued, |next| *fetch = next)
            }
            Historical { account, from, .. } => {
                let fetch = self.historical.entry((account, from)).or_default();
                let report = self.consent.admit(read_report::<Report<WealthHistoricalNotice>>(&body).unwrap()).unwrap();
                store_transition(fetch.report(&self.consent, &report, digest(&report)), queued, |next| *fetch = next)
            }
        }
    }
}

/// Builds the connector's body of a report from a golden file.
fn body_of(short: ShortReport) -> Vec<u8> {
    let numbered_text = |content: u8| json!(format!("content {content}"));
    match short {
        ESign { status, content } => {
            let golden = match status {
                "Rejected" => ESIGN_REJECTED,
                "Expired" => ESIGN_EXPIRED,
                _ => ESIGN_COMPLETED,
            };
            connector_body(golden, |body: &mut Value| {
                body["signerInfo"][1]["signerName"] = numbered_text(content);
                match status {
                    "Pending" => unsigned(body),
                    "Half" => half_signed(body),
                    _ => {}
                }
            })
        }
        DocLocker { status, content } => {
            connector_body(if status == "Failed" { DOCLOCKER_FAILED } else { DOCLOCKER_FETCHED }, |body| {
                body["message"] = numbered_text(content);
                if status == "Pending" {
                    body["data"]["docs"][1]["status"] = json!("Pending");
                }
            })
        }
        EStamp { status, content } => {
            connector_body(if status == "Rejected" { ESTAMP_REJECTED } else { ESTAMP_COMPLETED }, |body| {
                body["message"] = numbered_text(content);
                body["data"]["workflowStatus"] = json!(status);
            })
        }
        Consent { status, content } => connector_body(CONSENT_ACCEPTED, |body| {
            body["status"] = json!(status);
            body["userSessionId"] = json!(format!("session-{content}"));
        }),
        Data { txn, data_type, content } => connector_body(DATA_RAW, |body| {
            body["txnId"] = json!(format!("fetch-{txn}"));
            body["dataType"] = json!(data_type);
            body["desc"] = numbered_text(content);
        }),
        Historical { account, from, content } => connector_body(HISTORICAL, |body| {
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
        let (mut store, mut sent_keys) = (FlowStore::new(), HashSet::new());
        for report in reports {
            let before = store.queued.len();
            let is_repetition = store.handle(report);
            let queued_now = store.queued.len() - before;
            let is_webhook_expected = expected_webhook(report, &mut sent_keys).is_some();
            prop_assert_eq!(queued_now, usize::from(is_webhook_expected), "{:?}", report);
            prop_assert!(!(is_repetition && queued_now > 0));
            if queued_now > 0 {
                prop_assert!(store.handle(report), "a second copy is a repetition: {:?}", report);
            }
        }
        let keys: HashSet<&String> = store.queued.iter().collect();
        prop_assert_eq!(keys.len(), store.queued.len());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), offset in 0..900_usize) {
        prop_assert!(read_report::<Report<EsignOutcome>>(&bytes).is_err());
        let mut body = connector_body(DOCLOCKER_FETCHED, unchanged);
        let offset = offset % body.len();
        let end = body.len().min(offset + bytes.len());
        body[offset..end].copy_from_slice(&bytes[..end - offset]);
        let _ = read_report::<Report<DocLockerOutcome>>(&body);
    }
}
