//! Transitions of locker, e-stamp and wealth-data flows, and refused reports.

use std::time::Duration;

use sakshi_domain::flow::dates::LocalTime;
use sakshi_domain::flow::doclocker::{DocLockerEnd, DocLockerFlow};
use sakshi_domain::flow::estamp::EStampFlow;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::report::Report;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::ConsentStatus;
use sakshi_domain::flow::transition::{ReportRefusal, Transition};
use sakshi_domain::flow::wealth_consent::WealthConsent;
use sakshi_domain::flow::wealth_data::DataFetch;
use sakshi_domain::flow::wealth_historical::HistoricalFetch;
use sakshi_domain::limits::{CONSENT_KEPT_MAX, FLOW_END_GRACE};
use sakshi_wire::doclocker::DocLockerOutcome;
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::read_report;
use sakshi_wire::reports::FlowReport;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use serde_json::{Value, json};

use crate::fixtures::*;

/// The result of a report: the transition of the flow, or the refusal.
type ReportResult<S> = Result<Transition<S>, ReportRefusal>;

/// Reports a golden file with a change to a locker flow.
fn report_locker(flow: &DocLockerFlow, golden: &str, edit: impl FnOnce(&mut Value)) -> ReportResult<DocLockerFlow> {
    let admitted = flow.admit(read_report::<Report<DocLockerOutcome>>(&connector_body(golden, edit)).unwrap())?;
    flow.report(&admitted, digest(&admitted), before_expiry())
}

/// Reports a golden file with a change to an e-stamp flow.
fn report_stamp(flow: &EStampFlow, golden: &str, edit: impl FnOnce(&mut Value)) -> ReportResult<EStampFlow> {
    let admitted = flow.admit(read_report::<Report<EStampOutcome>>(&connector_body(golden, edit)).unwrap())?;
    flow.report(&admitted, digest(&admitted), before_expiry())
}

/// Reports a status of a wealth-data consent, with a further change of the body.
fn report_consent(flow: &WealthConsent, status: &str, edit: impl FnOnce(&mut Value)) -> ReportResult<WealthConsent> {
    let body = connector_body(CONSENT_ACCEPTED, |body| {
        body["status"] = json!(status);
        edit(body);
    });
    let admitted = flow.admit(read_report::<Report<WealthConsentChange>>(&body).unwrap())?;
    flow.report(&admitted, digest(&admitted), before_expiry())
}

/// Reports a golden file with a change to a fetch of wealth data.
fn report_data(fetch: DataFetch, golden: &str, edit: impl FnOnce(&mut Value)) -> ReportResult<DataFetch> {
    let consent = requested_consent();
    let admitted = consent.admit(read_report::<Report<WealthDataNotice>>(&connector_body(golden, edit)).unwrap())?;
    fetch.report(&consent, &admitted, digest(&admitted))
}

/// Returns the new state and the key of the due webhook.
fn with_webhook<S: std::fmt::Debug>(transition: ReportResult<S>) -> (S, String) {
    match transition {
        Ok(Transition::WebhookDue { next, webhook }) => (next, webhook.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Returns the new state of a flow that continues without a webhook.
fn without_webhook<S: std::fmt::Debug>(transition: ReportResult<S>) -> S {
    match transition {
        Ok(Transition::Progressed { next }) => next,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_locker_flow_ends_when_no_document_is_pending() {
    let with_pending_document = |body: &mut Value| body["data"]["docs"][1]["status"] = json!("Pending");
    let flow = without_webhook(report_locker(&new_locker_flow(), DOCLOCKER_FETCHED, with_pending_document));
    assert_eq!(report_locker(&flow, DOCLOCKER_FETCHED, with_pending_document), Ok(Transition::Repeated));
    let (flow, key) = with_webhook(report_locker(&flow, DOCLOCKER_FETCHED, unchanged));
    assert_eq!(key, format!("doclocker app_1 {FLOW_ID}"));
    assert!(matches!(&flow, DocLockerFlow::Ended { end, .. } if end.outcome == DocLockerEnd::Fetched));
    for _ in 0..3 {
        assert_eq!(report_locker(&flow, DOCLOCKER_FETCHED, unchanged), Ok(Transition::Repeated));
    }
    assert_eq!(report_locker(&flow, DOCLOCKER_FAILED, unchanged), Err(ReportRefusal::AlreadyEnded("Fetched")));
    assert_eq!(
        report_locker(&flow, DOCLOCKER_FETCHED, with_pending_document),
        Err(ReportRefusal::AlreadyEnded("Fetched"))
    );
}

#[test]
fn a_locker_flow_without_a_document_ends_as_failed() {
    let (flow, _) = with_webhook(report_locker(&new_locker_flow(), DOCLOCKER_FAILED, unchanged));
    assert_eq!(report_locker(&flow, DOCLOCKER_FETCHED, unchanged), Err(ReportRefusal::AlreadyEnded("Failed")));
}

#[test]
fn a_different_correlation_id_is_refused() {
    let refused = report_locker(&new_locker_flow(), DOCLOCKER_FETCHED, |body| body["request_id"] = json!("req-2"));
    assert_eq!(refused, Err(ReportRefusal::Contradicts("request_id")));
}

#[test]
fn an_e_stamp_ends_once() {
    let pending = |body: &mut Value| {
        body["success"] = json!(true);
        body["data"]["workflowStatus"] = json!("Pending");
    };
    let flow = without_webhook(report_stamp(&new_estamp_flow(), ESTAMP_REJECTED, pending));
    assert_eq!(report_stamp(&flow, ESTAMP_REJECTED, pending), Ok(Transition::Repeated));
    let (flow, key) = with_webhook(report_stamp(&flow, ESTAMP_COMPLETED, unchanged));
    assert_eq!(key, format!("estamp app_1 {FLOW_ID}"));
    assert_eq!(report_stamp(&flow, ESTAMP_COMPLETED, unchanged), Ok(Transition::Repeated));
    assert_eq!(report_stamp(&flow, ESTAMP_REJECTED, unchanged), Err(ReportRefusal::AlreadyEnded("Completed")));
    assert_eq!(
        report_stamp(&flow, ESTAMP_COMPLETED, |body| body["app_id"] = json!("app_2")),
        Err(ReportRefusal::NotThisFlow)
    );
}

#[test]
fn accepted_accepted_revoked_are_two_webhooks() {
    let (flow, first) = with_webhook(report_consent(&requested_consent(), "Accepted", unchanged));
    assert_eq!(report_consent(&flow, "Accepted", unchanged), Ok(Transition::Repeated));
    let (flow, second) = with_webhook(report_consent(&flow, "Revoked", unchanged));
    assert_eq!([first, second], ["wealth-consent app_1 consent-1 Accepted", "wealth-consent app_1 consent-1 Revoked"]);
    assert_eq!(report_consent(&flow, "Accepted", unchanged), Ok(Transition::Repeated), "an old report is a repetition");
    let refused = report_consent(&flow, "Accepted", |body| body["userSessionId"] = json!("session-9"));
    assert_eq!(refused, Err(ReportRefusal::ReportedDifferently));
}

#[test]
fn a_consent_only_moves_forward() {
    use ConsentStatus::{Accepted, Expired, ExpiringSoon, Rejected, Revoked};
    let is_allowed = |from, to| match from {
        None => true,
        Some(Accepted) => matches!(to, ExpiringSoon | Revoked | Expired),
        Some(ExpiringSoon) => matches!(to, Revoked | Expired),
        Some(Rejected | Revoked | Expired) => false,
    };
    for from in [None].into_iter().chain(ConsentStatus::ALL.iter().copied().map(Some)) {
        let flow = from.map_or_else(requested_consent, |from| {
            with_webhook(report_consent(&requested_consent(), from.as_str(), unchanged)).0
        });
        for to in ConsentStatus::ALL.iter().copied().filter(|to| Some(*to) != from) {
            match (report_consent(&flow, to.as_str(), unchanged), from) {
                (Ok(Transition::WebhookDue { .. }), from) => assert!(is_allowed(from, to), "{from:?} to {to}"),
                (Err(refusal), Some(from)) => {
                    assert!(
                        !is_allowed(Some(from), to) && refusal == ReportRefusal::StatusChangeNotAllowed { from, to },
                        "{from} to {to}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_handle_and_the_first_reported_consent_id_are_fixed() {
    let other_handle =
        report_consent(&requested_consent(), "Accepted", |body| body["consentHandle"] = json!("handle-2"));
    assert_eq!(other_handle, Err(ReportRefusal::Contradicts("consentHandle")));
    let (flow, _) = with_webhook(report_consent(&requested_consent(), "Accepted", unchanged));
    assert_eq!(flow.consent_id().unwrap().as_str(), "consent-1");
    assert_eq!(
        report_consent(&flow, "Revoked", |body| body["consentId"] = json!("consent-2")),
        Err(ReportRefusal::Contradicts("consentId"))
    );
    let report = read_report::<Report<WealthDataNotice>>(&connector_body(DATA_RAW, |body| {
        body["consentId"] = json!("consent-2");
    }))
    .unwrap();
    assert_eq!(flow.admit(report), Err(ReportRefusal::Contradicts("consentId")));
}

#[test]
fn a_consent_is_kept_for_further_notices_until_it_has_ended() {
    let (now, kept, pending_ttl) = (before_expiry(), at("2026-02-02T00:00:00Z"), Duration::from_secs(90 * 86_400));
    let kept_after =
        |flow: FlowState, kept, end: &str| flow.kept_for_notices(kept, now, pending_ttl, LocalTime::parse(end).ok());
    let accepted = with_webhook(report_consent(&requested_consent(), "Accepted", unchanged)).0;
    let revoked = with_webhook(report_consent(&accepted, "Revoked", unchanged)).0;
    let (requested, accepted) = (FlowState::Wealth(requested_consent()), FlowState::Wealth(accepted));
    let end = "2027-01-31 09:30:00";
    let in_last_zone = at("2027-01-31T21:30:00Z");
    assert_eq!(kept_after(accepted.clone(), kept, end), in_last_zone + FLOW_END_GRACE);
    let late = at("2028-01-01T00:00:00Z");
    assert_eq!(kept_after(accepted.clone(), late, end), late, "never shorter than before");
    assert_eq!(kept_after(accepted.clone(), kept, "9999-12-31 23:59:59"), now + CONSENT_KEPT_MAX + FLOW_END_GRACE);
    for end in ["none", "2026-01-31 09:30:00"] {
        for consent in [&requested, &accepted] {
            assert_eq!(kept_after(consent.clone(), kept, end), now + pending_ttl, "{end}");
        }
    }
    for other in [FlowState::Wealth(revoked), FlowState::DocLocker(new_locker_flow())] {
        assert_eq!(kept_after(other, kept, end), kept);
    }
}

#[test]
fn raw_then_analysed_then_raw_again_are_two_webhooks() {
    let (fetch, first) = with_webhook(report_data(DataFetch::Awaited, DATA_RAW, unchanged));
    let (fetch, second) = with_webhook(report_data(fetch, DATA_ANALYSED, unchanged));
    assert_eq!(report_data(fetch, DATA_RAW, unchanged), Ok(Transition::Repeated));
    assert_eq!([first, second], ["wealth-data app_1 fetch-1 RAW", "wealth-data app_1 fetch-1 ANALYSED"]);
    assert_eq!(
        report_data(fetch, DATA_FAILED, unchanged),
        Err(ReportRefusal::ReportedDifferently),
        "raw data was ready before"
    );
    let (analysed_first, _) = with_webhook(report_data(DataFetch::Awaited, DATA_ANALYSED, unchanged));
    assert_eq!(with_webhook(report_data(analysed_first, DATA_RAW, unchanged)).0, fetch, "the order does not matter");
}

#[test]
fn a_historical_fetch_is_reported_once_for_each_consent_account_and_span() {
    let consent = requested_consent();
    let report_to = |fetch: HistoricalFetch, edit: &dyn Fn(&mut Value)| {
        let admitted =
            consent.admit(read_report::<Report<WealthHistoricalNotice>>(&connector_body(HISTORICAL, edit)).unwrap())?;
        fetch.report(&consent, &admitted, digest(&admitted))
    };
    let (fetch, key) = with_webhook(report_to(HistoricalFetch::Awaited, &unchanged));
    assert_eq!(key, "wealth-historical app_1 consent-1 account-2 2020-04-01 2026-01-31");
    assert_eq!(report_to(fetch, &unchanged), Ok(Transition::Repeated));
    let failed = report_to(fetch, &|body| body["status"] = json!("HISTORICAL_DATA_FETCH_FAILED"));
    assert_eq!(failed, Err(ReportRefusal::ReportedDifferently));
    let handle = report_to(HistoricalFetch::Awaited, &|body| body["consentHandleId"] = json!("handle-2"));
    assert_eq!(handle, Err(ReportRefusal::Contradicts("consentHandleId")));
}

#[test]
fn a_report_on_a_fetch_has_a_key_and_a_report_on_a_flow_has_none() {
    let key = |kind, golden, edit: &dyn Fn(&mut Value)| {
        FlowReport::parse(kind, &connector_body(golden, edit)).unwrap().fetch_key()
    };
    let data = |edit: &dyn Fn(&mut Value)| key(ReportKind::WealthData, DATA_RAW, edit);
    assert_eq!(data(&unchanged).as_deref(), Some("data fetch-1"));
    assert_eq!(data(&|body| body["txnId"] = json!("fetch-2")).as_deref(), Some("data fetch-2"));
    let historical = key(ReportKind::WealthHistorical, HISTORICAL, &unchanged);
    assert_eq!(historical.as_deref(), Some("historical consent-1 account-2 2020-04-01 2026-01-31"));
    assert_eq!(key(ReportKind::WealthConsent, CONSENT_ACCEPTED, &unchanged), None);
}

#[test]
fn flows_survive_serialisation() {
    let ended = with_webhook(report_locker(&new_locker_flow(), DOCLOCKER_FETCHED, unchanged)).0;
    let stored = serde_json::to_string(&ended).unwrap();
    assert_eq!(serde_json::from_str::<DocLockerFlow>(&stored).unwrap(), ended);
    let ended = with_webhook(report_stamp(&new_estamp_flow(), ESTAMP_COMPLETED, unchanged)).0;
    let stored = serde_json::to_string(&ended).unwrap();
    assert_eq!(serde_json::from_str::<EStampFlow>(&stored).unwrap(), ended);
    let revoked = with_webhook(report_consent(
        &with_webhook(report_consent(&requested_consent(), "Accepted", unchanged)).0,
        "Revoked",
        unchanged,
    ))
    .0;
    let stored = serde_json::to_string(&revoked).unwrap();
    assert_eq!(serde_json::from_str::<WealthConsent>(&stored).unwrap(), revoked);
    let both = with_webhook(report_data(
        with_webhook(report_data(DataFetch::Awaited, DATA_RAW, unchanged)).0,
        DATA_ANALYSED,
        unchanged,
    ))
    .0;
    let stored = serde_json::to_string(&both).unwrap();
    assert_eq!(serde_json::from_str::<DataFetch>(&stored).unwrap(), both);
}
