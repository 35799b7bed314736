//! At-most-once delivery of the webhooks of reported flows, when the process is killed.

use std::time::Duration;

use sakshi_sandbox::receiver::Behaviour;
use serde_json::{Value, json};

use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::flow_fixture::{FlowFixture, body_of};
use sakshi_kit::goldens::*;
use sakshi_kit::waiting::TIMEOUT;

/// Opens a flow for each kind of report, and sends the report. Returns each flow, the kind and the golden file.
async fn report_each_kind(fixture: &FlowFixture) -> Vec<(OpenedFlow, &'static str, &'static str)> {
    let mut reported = Vec::new();
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
        reported.push((opened, kind, golden));
    }
    reported
}

#[tokio::test]
async fn queued_flow_webhooks_are_sent_after_a_kill_and_one_in_flight_becomes_unknown() {
    let mut fixture = FlowFixture::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    fixture.register_all(&fixture.backend).await;
    fixture.receiver.set_behaviour(Behaviour::Hang);
    let flows = report_each_kind(&fixture).await;
    assert_eq!(fixture.receiver.wait_for(1, TIMEOUT).await.len(), 1, "one is in flight, the others are queued");
    fixture.node.kill().await;
    fixture.receiver.set_behaviour(Behaviour::Answer(200));
    fixture.node.launch().await;
    let webhooks = fixture.webhooks(flows.len()).await;

    let mut outcomes = Vec::new();
    for (opened, kind, golden) in &flows {
        let flow_outcomes: Vec<String> = fixture.node.operator().outcomes(&opened.id).await;
        assert_eq!(flow_outcomes.len(), 1, "{kind}");
        outcomes.extend(flow_outcomes);
        let expected = opened.expected_body(golden);
        assert_eq!(
            webhooks.iter().filter(|webhook| body_of(webhook) == expected).count(),
            1,
            "{kind} arrives once, as reported"
        );
        fixture.connector.report_again(kind, &opened.report(golden)).await;
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [vec!["delivered"; flows.len() - 1], vec!["unknown"]].concat());
    fixture.webhooks(flows.len()).await;
}

/// Kills right after a report is accepted.
const KILLS: u64 = 8;

#[tokio::test]
async fn a_kill_right_after_a_report_is_accepted_loses_neither_report_nor_webhook() {
    let mut fixture = FlowFixture::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    fixture.register_all(&fixture.backend).await;
    let (mut flows, mut unknown_count) = (Vec::new(), 0);
    for round in 0..KILLS {
        let opened = fixture.backend.open_flow(Flow::Esign).await;
        fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
        fixture.node.kill().await;
        // Sometimes also during the recovery.
        if round % 3 == 2 {
            fixture.node.launch_and_kill(Duration::from_millis(30 * round)).await;
        }
        fixture.node.launch().await;
        assert_eq!(fixture.backend.poll(&opened).await.text, opened.expected_body(ESIGN_COMPLETED));
        match &fixture.node.operator().outcomes(&opened.id).await[..] {
            [outcome] if outcome == "unknown" => unknown_count += 1,
            [outcome] => assert_eq!(outcome, "delivered"),
            several => panic!("{several:?}"),
        }
        fixture.connector.report_again("esign", &opened.report(ESIGN_COMPLETED)).await;
        flows.push(opened);
    }
    let webhooks = fixture.receiver.received();
    for opened in &flows {
        let count = webhooks.iter().filter(|webhook| webhook.body == opened.expected_body(ESIGN_COMPLETED)).count();
        let outcomes = fixture.node.operator().outcomes(&opened.id).await;
        assert!(count == 1 || (count == 0 && outcomes == ["unknown"]), "{count} webhooks, recorded as {outcomes:?}");
    }
    eprintln!("{KILLS} kills: {} arrived, {unknown_count} are unknown", webhooks.len());
}

#[tokio::test]
async fn a_pending_report_and_a_registered_url_survive_a_kill() {
    let mut fixture = FlowFixture::start().await;
    fixture.register_all(&fixture.backend).await;
    let opened = fixture.backend.open_flow(Flow::Esign).await;
    fixture.connector.report_new("esign", &half_signed(&opened)).await;
    fixture.node.kill().await;
    fixture.node.launch().await;
    assert_eq!(fixture.backend.poll(&opened).await.text, opened.expected_body(ESIGN_PENDING));
    let contradiction = opened.report_with(ESIGN_COMPLETED, &[("/signerInfo/0/signerStatus", Some(json!("Rejected")))]);
    assert_ne!(fixture.connector.report("esign", &contradiction).await.status, 200, "a signature cannot be revoked");
    fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
    let body: Value = serde_json::from_slice(&fixture.webhooks(1).await[0].body).expect("JSON");
    assert_eq!(body["documentStatus"], "Completed");
}
