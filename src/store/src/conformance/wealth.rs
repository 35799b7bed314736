//! Wealth-data consents: kept for as long as their upstream has notices to report.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use sakshi_domain::limits::FLOW_END_GRACE;
use sakshi_domain::time::Timestamp;

use super::TestStore;
use super::fixture::RESULT_TTL;
use super::flow_fixture::{
    CONSENT_TERM, FLOW_TTL, Flow, ShortReport, accept_report, create_client_app, load_flow, open_flow, wealth_flow,
};
use crate::Swept;

const DAY: Duration = Duration::from_secs(24 * 3_600);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Opens a consent, and returns it.
async fn open_consent(test: &impl TestStore) -> Flow {
    open_flow(test, wealth_flow(test, &create_client_app(test).await)).await
}

/// Advances the clock, and removes everything that has expired.
async fn advance_and_sweep(test: &impl TestStore, span: Duration) {
    test.advance(span);
    while test.store().sweep(test.now(), 100).await.unwrap() != Swept::default() {}
}

/// Reports a flow, and asserts that a webhook is queued. Returns the time until which the flow is kept.
async fn notify(test: &impl TestStore, flow: &Flow, report: ShortReport) -> Timestamp {
    assert!(accept_report(test, flow, report).await.is_some(), "{report:?}");
    load_flow(test, flow).await.unwrap().kept_until
}

/// Returns a report on the status of a consent.
const fn change(status: &'static str) -> ShortReport {
    ShortReport::Consent { status, content: 1 }
}

pub(crate) async fn a_consent_gets_its_notices_until_its_reported_end_and_some_days(test: &impl TestStore) {
    let flow = open_consent(test).await;
    let kept_until = notify(test, &flow, change("Accepted")).await;
    assert!(kept_until >= test.now() + CONSENT_TERM + FLOW_END_GRACE, "{kept_until}");
    advance_and_sweep(test, CONSENT_TERM - DAY).await;
    for report in [
        ShortReport::Data { fetch: 1, form: "RAW", content: 1 },
        ShortReport::Historical { account: 1, content: 1 },
        change("Expiring Soon"),
    ] {
        assert_eq!(notify(test, &flow, report).await, kept_until, "{report:?} states no other end");
    }
    advance_and_sweep(test, DAY + FLOW_END_GRACE - MILLISECOND).await;
    assert_eq!(notify(test, &flow, change("Expired")).await, test.now() + RESULT_TTL);
    advance_and_sweep(test, RESULT_TTL).await;
    assert_eq!(load_flow(test, &flow).await, None);
}

pub(crate) async fn each_report_keeps_a_consent_for_the_next_one_until_it_has_ended(test: &impl TestStore) {
    let flow = open_consent(test).await;
    let data = |fetch| ShortReport::Data { fetch, form: "RAW", content: 1 };
    // The notice that the person has agreed is late.
    for fetch in 1..=3 {
        advance_and_sweep(test, FLOW_TTL - MILLISECOND).await;
        assert!(notify(test, &flow, data(fetch)).await >= test.now() + FLOW_TTL, "fetch {fetch}");
    }
    advance_and_sweep(test, FLOW_TTL - MILLISECOND).await;
    notify(test, &flow, change("Accepted")).await;
    let kept_until = notify(test, &flow, change("Revoked")).await;
    assert_eq!(kept_until, test.now() + RESULT_TTL);
    advance_and_sweep(test, RESULT_TTL - MILLISECOND).await;
    assert_eq!(notify(test, &flow, data(4)).await, kept_until, "data keeps no ended consent");
    advance_and_sweep(test, MILLISECOND).await;
    assert_eq!(load_flow(test, &flow).await, None);
}
