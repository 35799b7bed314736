//! The at-most-once table for the webhooks of reported flows, row by row.

use std::time::Duration;

use sakshi_sandbox::receiver::Behaviour;
use serde_json::{Value, json};

use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::flow_fixture::{FlowFixture, body_of};
use sakshi_kit::goldens::*;
use sakshi_kit::waiting::TIMEOUT;

/// Opens a flow of each kind with its report, all for one receiver.
async fn reported(fixture: &FlowFixture) -> Vec<(OpenedFlow, &'static str, &'static str)> {
    let mut all = Vec::new();
    for (flow, kind, golden) in [
        (Flow::Esign, "esign", ESIGN_COMPLETED),
        (Flow::DocLocker, "doclocker", DOCLOCKER_FAILED),
        (Flow::EStamp, "estamp", ESTAMP_COMPLETED),
        (Flow::Wealth, "wealth-consent", CONSENT_ACCEPTED),
        (Flow::Wealth, "wealth-data", DATA_RAW),
        (Flow::Wealth, "wealth-historical", HISTORICAL),
    ] {
        let opened = fixture.backend.open_flow(flow).await;
        fixture.connector.report_new(kind, &opened.report(golden)).await;
        all.push((opened, kind, golden));
    }
    all
}

#[tokio::test]
async fn what_was_reported_before_a_kill_is_sent_once_after_it_and_what_was_under_way_is_unknown() {
    let mut fixture = FlowFixture::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    fixture.register_all(&fixture.backend).await;
    fixture.receiver.set_behaviour(Behaviour::Hang);
    let flows = reported(&fixture).await;
    assert_eq!(fixture.receiver.wait_for(1, TIMEOUT).await.len(), 1, "one is under way, the others are queued");
    fixture.node.kill().await;
    fixture.receiver.set_behaviour(Behaviour::Answer(200));
    fixture.node.launch().await;
    let arrived = fixture.webhooks(flows.len()).await;

    let mut outcomes = Vec::new();
    for (opened, kind, golden) in &flows {
        let of_this: Vec<String> = fixture.node.operator().outcomes(&opened.id).await;
        assert_eq!(of_this.len(), 1, "{kind}");
        outcomes.extend(of_this);
        let expected = opened.expected_body(golden);
        assert_eq!(
            arrived.iter().filter(|one| body_of(one) == expected).count(),
            1,
            "{kind} came once and as it was reported"
        );
        fixture.connector.report_again(kind, &opened.report(golden)).await;
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [vec!["delivered"; flows.len() - 1], vec!["unknown"]].concat());
    fixture.webhooks(flows.len()).await;
}

#[tokio::test]
async fn a_kill_right_after_a_report_was_accepted_loses_neither_the_report_nor_its_webhook() {
    let mut fixture = FlowFixture::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    fixture.register_all(&fixture.backend).await;
    let (mut expected, mut unknown) = (Vec::new(), 0);
    for round in 0..8 {
        let opened = fixture.backend.open_flow(Flow::Esign).await;
        fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
        fixture.node.kill().await;
        if round % 3 == 2 {
            fixture.node.launch_and_kill(Duration::from_millis(30 * round)).await;
        }
        fixture.node.launch().await;
        assert_eq!(fixture.backend.poll(&opened).await.text, opened.expected_body(ESIGN_COMPLETED));
        match &fixture.node.operator().outcomes(&opened.id).await[..] {
            [one] if one == "unknown" => unknown += 1,
            [one] => assert_eq!(one, "delivered"),
            several => panic!("{several:?}"),
        }
        fixture.connector.report_again("esign", &opened.report(ESIGN_COMPLETED)).await;
        expected.push(opened);
    }
    let arrived = fixture.receiver.received();
    for opened in &expected {
        let times = arrived.iter().filter(|one| one.body == opened.expected_body(ESIGN_COMPLETED)).count();
        let outcomes = fixture.node.operator().outcomes(&opened.id).await;
        assert!(times == 1 || (times == 0 && outcomes == ["unknown"]), "{times} webhooks, recorded as {outcomes:?}");
    }
    eprintln!("8 kills: {} arrived, {unknown} are unknown", arrived.len());
}

#[tokio::test]
async fn a_pending_report_and_a_registered_url_outlive_a_kill() {
    let mut fixture = FlowFixture::start().await;
    fixture.register_all(&fixture.backend).await;
    let opened = fixture.backend.open_flow(Flow::Esign).await;
    fixture.connector.report_new("esign", &half_signed(&opened)).await;
    fixture.node.kill().await;
    fixture.node.launch().await;
    assert_eq!(fixture.backend.poll(&opened).await.text, opened.expected_body(ESIGN_PENDING));
    let other = opened.report_with(ESIGN_COMPLETED, &[("/signerInfo/0/signerStatus", Some(json!("Rejected")))]);
    assert_ne!(fixture.connector.report("esign", &other).await.status, 200, "a signature is not taken back");
    fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
    let body: Value = serde_json::from_slice(&fixture.webhooks(1).await[0].body).expect("JSON");
    assert_eq!(body["documentStatus"], "Completed");
}
