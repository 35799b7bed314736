//! Transitions of the other flows, and reports that are refused.

use sakshi_domain::flow::doclocker::{DocLockerEnd, DocLockerFlow};
use sakshi_domain::flow::estamp::EStampFlow;
use sakshi_domain::flow::report::Report;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::ConsentStatus;
use sakshi_domain::flow::transition::{ReportRefusal, Transition};
use sakshi_domain::flow::wealth_consent::WealthConsent;
use sakshi_domain::flow::wealth_data::DataFetch;
use sakshi_domain::flow::wealth_historical::HistoricalFetch;
use sakshi_wire::doclocker::DocLockerOutcome;
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::read_report;
use sakshi_wire::reports::FlowReport;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use serde_json::{Value, json};

use crate::fixtures::*;

type Judged<S> = Result<Transition<S>, ReportRefusal>;

fn locker(flow: &DocLockerFlow, golden: &str, edit: impl FnOnce(&mut Value)) -> Judged<DocLockerFlow> {
    let admitted = flow.admit(read_report::<Report<DocLockerOutcome>>(&report(golden, edit)).unwrap())?;
    flow.report(&admitted, digest(&admitted), early())
}

fn stamp(flow: &EStampFlow, golden: &str, edit: impl FnOnce(&mut Value)) -> Judged<EStampFlow> {
    let admitted = flow.admit(read_report::<Report<EStampOutcome>>(&report(golden, edit)).unwrap())?;
    flow.report(&admitted, digest(&admitted), early())
}

fn moved(flow: &WealthConsent, status: &str, edit: impl FnOnce(&mut Value)) -> Judged<WealthConsent> {
    let body = report(CONSENT_ACCEPTED, |body| {
        body["status"] = json!(status);
        edit(body);
    });
    let admitted = flow.admit(read_report::<Report<WealthConsentChange>>(&body).unwrap())?;
    flow.report(&admitted, digest(&admitted), early())
}

fn data(fetch: DataFetch, golden: &str, edit: impl FnOnce(&mut Value)) -> Judged<DataFetch> {
    let consent = consent();
    let admitted = consent.admit(read_report::<Report<WealthDataNotice>>(&report(golden, edit)).unwrap())?;
    fetch.report(&consent, &admitted, digest(&admitted))
}

fn reported<S: std::fmt::Debug>(judged: Judged<S>) -> (S, String) {
    match judged {
        Ok(Transition::WebhookDue { next, webhook }) => (next, webhook.to_string()),
        other => panic!("{other:?}"),
    }
}

fn progressed<S: std::fmt::Debug>(judged: Judged<S>) -> S {
    match judged {
        Ok(Transition::Progressed { next }) => next,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_locker_flow_ends_when_no_document_is_awaited_any_more() {
    let waiting = |body: &mut Value| body["data"]["docs"][1]["status"] = json!("Pending");
    let flow = progressed(locker(&doclocker(), DOCLOCKER_FETCHED, waiting));
    assert_eq!(locker(&flow, DOCLOCKER_FETCHED, waiting), Ok(Transition::Repeated));
    let (flow, key) = reported(locker(&flow, DOCLOCKER_FETCHED, |_| ()));
    assert_eq!(key, format!("doclocker app_1 {FLOW}"));
    assert!(matches!(&flow, DocLockerFlow::Ended { end, .. } if end.how == DocLockerEnd::Fetched));
    for _ in 0..3 {
        assert_eq!(locker(&flow, DOCLOCKER_FETCHED, |_| ()), Ok(Transition::Repeated));
    }
    assert_eq!(locker(&flow, DOCLOCKER_FAILED, |_| ()), Err(ReportRefusal::AlreadyEnded("Fetched")));
    assert_eq!(locker(&flow, DOCLOCKER_FETCHED, waiting), Err(ReportRefusal::AlreadyEnded("Fetched")));
}

#[test]
fn a_person_who_declines_ends_a_locker_flow_without_a_document() {
    let (flow, _) = reported(locker(&doclocker(), DOCLOCKER_FAILED, |_| ()));
    assert_eq!(locker(&flow, DOCLOCKER_FETCHED, |_| ()), Err(ReportRefusal::AlreadyEnded("Failed")));
}

#[test]
fn a_correlation_id_other_than_the_flows_is_refused() {
    let refused = locker(&doclocker(), DOCLOCKER_FETCHED, |body| body["request_id"] = json!("req-2"));
    assert_eq!(refused, Err(ReportRefusal::Contradicts("request_id")));
}

#[test]
fn an_e_stamp_ends_once() {
    let pending = |body: &mut Value| {
        body["success"] = json!(true);
        body["data"]["workflowStatus"] = json!("Pending");
    };
    let flow = progressed(stamp(&estamp(), ESTAMP_REJECTED, pending));
    assert_eq!(stamp(&flow, ESTAMP_REJECTED, pending), Ok(Transition::Repeated));
    let (flow, key) = reported(stamp(&flow, ESTAMP_COMPLETED, |_| ()));
    assert_eq!(key, format!("estamp app_1 {FLOW}"));
    assert_eq!(stamp(&flow, ESTAMP_COMPLETED, |_| ()), Ok(Transition::Repeated));
    assert_eq!(stamp(&flow, ESTAMP_REJECTED, |_| ()), Err(ReportRefusal::AlreadyEnded("Completed")));
    assert_eq!(stamp(&flow, ESTAMP_COMPLETED, |body| body["app_id"] = json!("app_2")), Err(ReportRefusal::NotThisFlow));
}

#[test]
fn accepted_accepted_revoked_are_two_webhooks() {
    let (flow, first) = reported(moved(&consent(), "Accepted", |_| ()));
    assert_eq!(moved(&flow, "Accepted", |_| ()), Ok(Transition::Repeated));
    let (flow, second) = reported(moved(&flow, "Revoked", |_| ()));
    assert_eq!([first, second], ["wealth-consent app_1 consent-1 Accepted", "wealth-consent app_1 consent-1 Revoked"]);
    assert_eq!(moved(&flow, "Accepted", |_| ()), Ok(Transition::Repeated), "an old report that comes again is known");
    let refused = moved(&flow, "Accepted", |body| body["userSessionId"] = json!("session-9"));
    assert_eq!(refused, Err(ReportRefusal::ReportedDifferently));
}

#[test]
fn a_consent_moves_forward_only() {
    use ConsentStatus::{Accepted, Expired, ExpiringSoon, Rejected, Revoked};
    let follows = |from, to| match from {
        None => true,
        Some(Accepted) => matches!(to, ExpiringSoon | Revoked | Expired),
        Some(ExpiringSoon) => matches!(to, Revoked | Expired),
        Some(Rejected | Revoked | Expired) => false,
    };
    for from in [None].into_iter().chain(ConsentStatus::ALL.iter().copied().map(Some)) {
        let flow = from.map_or_else(consent, |from| reported(moved(&consent(), from.as_str(), |_| ())).0);
        for to in ConsentStatus::ALL.iter().copied().filter(|to| Some(*to) != from) {
            match (moved(&flow, to.as_str(), |_| ()), from) {
                (Ok(Transition::WebhookDue { .. }), from) => assert!(follows(from, to), "{from:?} to {to}"),
                (Err(refusal), Some(from)) => {
                    assert!(
                        !follows(Some(from), to) && refusal == ReportRefusal::MoveNotAllowed { from, to },
                        "{from} to {to}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_first_report_fixes_the_consent_and_the_handle_was_fixed_before() {
    let other_handle = moved(&consent(), "Accepted", |body| body["consentHandle"] = json!("handle-2"));
    assert_eq!(other_handle, Err(ReportRefusal::Contradicts("consentHandle")));
    let (flow, _) = reported(moved(&consent(), "Accepted", |_| ()));
    assert_eq!(flow.consent_id().unwrap().as_str(), "consent-1");
    assert_eq!(
        moved(&flow, "Revoked", |body| body["consentId"] = json!("consent-2")),
        Err(ReportRefusal::Contradicts("consentId"))
    );
    let report =
        read_report::<Report<WealthDataNotice>>(&report(DATA_RAW, |body| body["consentId"] = json!("consent-2")))
            .unwrap();
    assert_eq!(flow.admit(report), Err(ReportRefusal::Contradicts("consentId")));
}

#[test]
fn raw_then_analysed_then_raw_again_are_two_webhooks() {
    let (fetch, first) = reported(data(DataFetch::Awaited, DATA_RAW, |_| ()));
    let (fetch, second) = reported(data(fetch, DATA_ANALYSED, |_| ()));
    assert_eq!(data(fetch, DATA_RAW, |_| ()), Ok(Transition::Repeated));
    assert_eq!([first, second], ["wealth-data app_1 fetch-1 RAW", "wealth-data app_1 fetch-1 ANALYSED"]);
    assert_eq!(data(fetch, DATA_FAILED, |_| ()), Err(ReportRefusal::ReportedDifferently), "raw data was ready before");
    let (other_way, _) = reported(data(DataFetch::Awaited, DATA_ANALYSED, |_| ()));
    assert_eq!(reported(data(other_way, DATA_RAW, |_| ())).0, fetch, "the order does not matter");
}

#[test]
fn a_historical_fetch_is_reported_once_for_each_consent_account_and_span() {
    let consent = consent();
    let judge = |fetch: HistoricalFetch, edit: &dyn Fn(&mut Value)| {
        let admitted =
            consent.admit(read_report::<Report<WealthHistoricalNotice>>(&report(HISTORICAL, edit)).unwrap())?;
        fetch.report(&consent, &admitted, digest(&admitted))
    };
    let (fetch, key) = reported(judge(HistoricalFetch::Awaited, &|_| ()));
    assert_eq!(key, "wealth-historical app_1 consent-1 account-2 2020-04-01 2026-01-31");
    assert_eq!(judge(fetch, &|_| ()), Ok(Transition::Repeated));
    let failed = judge(fetch, &|body| body["status"] = json!("HISTORICAL_DATA_FETCH_FAILED"));
    assert_eq!(failed, Err(ReportRefusal::ReportedDifferently));
    let handle = judge(HistoricalFetch::Awaited, &|body| body["consentHandleId"] = json!("handle-2"));
    assert_eq!(handle, Err(ReportRefusal::Contradicts("consentHandleId")));
}

#[test]
fn each_fetch_is_known_by_what_identifies_it_and_a_flow_by_itself() {
    let key =
        |kind, golden, edit: &dyn Fn(&mut Value)| FlowReport::parse(kind, &report(golden, edit)).unwrap().fetch_key();
    let data = |edit: &dyn Fn(&mut Value)| key(ReportKind::WealthData, DATA_RAW, edit);
    assert_eq!(data(&|_| ()).as_deref(), Some("data fetch-1"));
    assert_eq!(data(&|body| body["txnId"] = json!("fetch-2")).as_deref(), Some("data fetch-2"));
    let historical = key(ReportKind::WealthHistorical, HISTORICAL, &|_| ());
    assert_eq!(historical.as_deref(), Some("historical consent-1 account-2 2020-04-01 2026-01-31"));
    assert_eq!(key(ReportKind::WealthConsent, CONSENT_ACCEPTED, &|_| ()), None);
}

#[test]
fn flows_survive_being_stored() {
    let ended = reported(locker(&doclocker(), DOCLOCKER_FETCHED, |_| ())).0;
    let stored = serde_json::to_string(&ended).unwrap();
    assert_eq!(serde_json::from_str::<DocLockerFlow>(&stored).unwrap(), ended);
    let ended = reported(stamp(&estamp(), ESTAMP_COMPLETED, |_| ())).0;
    let stored = serde_json::to_string(&ended).unwrap();
    assert_eq!(serde_json::from_str::<EStampFlow>(&stored).unwrap(), ended);
    let revoked = reported(moved(&reported(moved(&consent(), "Accepted", |_| ())).0, "Revoked", |_| ())).0;
    let stored = serde_json::to_string(&revoked).unwrap();
    assert_eq!(serde_json::from_str::<WealthConsent>(&stored).unwrap(), revoked);
    let both = reported(data(reported(data(DataFetch::Awaited, DATA_RAW, |_| ())).0, DATA_ANALYSED, |_| ())).0;
    let stored = serde_json::to_string(&both).unwrap();
    assert_eq!(serde_json::from_str::<DataFetch>(&stored).unwrap(), both);
}
