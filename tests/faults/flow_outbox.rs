//! The at-most-once table for the webhooks of reported flows, row by row.

use std::time::Duration;

use sakshi_sandbox::receiver::Behaviour;
use serde_json::{Value, json};

use sakshi_kit::flow::{Begun, Flow};
use sakshi_kit::goldens::*;
use sakshi_kit::office::{Office, body_of};
use sakshi_kit::waiting::PLENTY;

/// A flow of each kind with its report, all for one receiver.
async fn reported(office: &Office) -> Vec<(Begun, &'static str, &'static str)> {
    let mut all = Vec::new();
    for (flow, kind, golden) in [
        (Flow::Esign, "esign", ESIGN_COMPLETED),
        (Flow::DocLocker, "doclocker", DOCLOCKER_FAILED),
        (Flow::EStamp, "estamp", ESTAMP_COMPLETED),
        (Flow::Wealth, "wealth-consent", CONSENT_ACCEPTED),
        (Flow::Wealth, "wealth-data", DATA_RAW),
        (Flow::Wealth, "wealth-historical", HISTORICAL),
    ] {
        let begun = office.backend.begin(flow).await;
        office.connector.tell(kind, &begun.report(golden)).await;
        all.push((begun, kind, golden));
    }
    all
}

#[tokio::test]
async fn what_was_reported_before_a_kill_is_sent_once_after_it_and_what_was_under_way_is_unknown() {
    let mut office = Office::with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    office.register_all(&office.backend).await;
    office.receiver.set_behaviour(Behaviour::Hang);
    let flows = reported(&office).await;
    assert_eq!(office.receiver.wait_for(1, PLENTY).await.len(), 1, "one is under way, the others are queued");
    office.universe.kill().await;
    office.receiver.set_behaviour(Behaviour::Answer(200));
    office.universe.launch().await;
    let arrived = office.webhooks(flows.len()).await;

    let mut outcomes = Vec::new();
    for (begun, kind, golden) in &flows {
        let of_this: Vec<String> = office.universe.operator().outcomes(&begun.id).await;
        assert_eq!(of_this.len(), 1, "{kind}");
        outcomes.extend(of_this);
        let expected = begun.sent(golden);
        assert_eq!(arrived.iter().filter(|one| body_of(one) == expected).count(), 1, "{kind} came once and as it was reported");
        office.connector.tell_again(kind, &begun.report(golden)).await;
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [vec!["delivered"; flows.len() - 1], vec!["unknown"]].concat());
    office.webhooks(flows.len()).await;
}

#[tokio::test]
async fn a_kill_right_after_a_report_was_accepted_loses_neither_the_report_nor_its_webhook() {
    let mut office = Office::with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    office.register_all(&office.backend).await;
    let (mut expected, mut unknown) = (Vec::new(), 0);
    for round in 0..8 {
        let begun = office.backend.begin(Flow::Esign).await;
        office.connector.tell("esign", &begun.report(ESIGN_COMPLETED)).await;
        office.universe.kill().await;
        if round % 3 == 2 {
            office.universe.launch_and_kill(Duration::from_millis(30 * round)).await;
        }
        office.universe.launch().await;
        assert_eq!(office.backend.poll(&begun).await.text, begun.sent(ESIGN_COMPLETED));
        match &office.universe.operator().outcomes(&begun.id).await[..] {
            [one] if one == "unknown" => unknown += 1,
            [one] => assert_eq!(one, "delivered"),
            several => panic!("{several:?}"),
        }
        office.connector.tell_again("esign", &begun.report(ESIGN_COMPLETED)).await;
        expected.push(begun);
    }
    let arrived = office.receiver.received();
    for begun in &expected {
        let times = arrived.iter().filter(|one| one.body == begun.sent(ESIGN_COMPLETED)).count();
        let outcomes = office.universe.operator().outcomes(&begun.id).await;
        assert!(times == 1 || (times == 0 && outcomes == ["unknown"]), "{times} webhooks, recorded as {outcomes:?}");
    }
    eprintln!("8 kills: {} arrived, {unknown} are unknown", arrived.len());
}

#[tokio::test]
async fn a_pending_report_and_a_registered_url_outlive_a_kill() {
    let mut office = Office::open().await;
    office.register_all(&office.backend).await;
    let begun = office.backend.begin(Flow::Esign).await;
    office.connector.tell("esign", &half_signed(&begun)).await;
    office.universe.kill().await;
    office.universe.launch().await;
    assert_eq!(office.backend.poll(&begun).await.text, begun.sent(ESIGN_PENDING));
    let other = begun.report_with(ESIGN_COMPLETED, &[("/signerInfo/0/signerStatus", Some(json!("Rejected")))]);
    assert_ne!(office.connector.report("esign", &other).await.status, 200, "a signature is not taken back");
    office.connector.tell("esign", &begun.report(ESIGN_COMPLETED)).await;
    let body: Value = serde_json::from_slice(&office.webhooks(1).await[0].body).expect("JSON");
    assert_eq!(body["documentStatus"], "Completed");
}
