//! Polling fallbacks (specification, "Webhook configuration and polling"): a stub while a flow is pending, and the
//! webhook's body after its end.

use std::time::Duration;

use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::event::timestamp_in;
use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::flow_fixture::{FlowFixture, body_of};
use sakshi_kit::goldens::*;
use sakshi_kit::waiting::{TIMEOUT, eventually};

use crate::limits::assert_share_limit_of_two_per_second;

/// The path at which an eSign flow is polled.
const ESIGN_STATUS: &str = "/api/v1/esign/status";

/// Opens an eSign flow whose second signer has this time to sign.
async fn open_with_short_invitation(backend: &Backend, duration: Duration) -> OpenedFlow {
    let end = json!(timestamp_in(duration));
    backend
        .open_flow_with(Flow::Esign, &Flow::Esign.body_with(&[("/signerInfo/1/invitationExpireTimeStamp", Some(end))]))
        .await
}

/// Polls a document until it has expired.
async fn poll_until_expired(backend: &Backend, opened: &OpenedFlow) -> Answer {
    eventually("the end of the invitation", TIMEOUT, || async {
        let answer = backend.poll(opened).await;
        (answer.ok()["documentStatus"] == "Expired").then_some(answer)
    })
    .await
}

#[tokio::test]
async fn a_poll_of_a_flow_without_reports_returns_a_stub() {
    let fixture = FlowFixture::start().await;
    let esign = fixture.backend.open_flow(Flow::Esign).await;
    let poll = fixture.backend.poll(&esign).await.ok();
    assert_eq!(
        (&poll["success"], &poll["pending"], &poll["data"]["pending"]),
        (&json!(true), &json!(true), &json!(true)),
        "{poll}"
    );
    assert_eq!(
        (&poll["data"]["documentId"], &poll["data"]["documentStatus"]),
        (&json!(esign.id), &json!("Pending")),
        "{poll}"
    );
    for signer in poll["data"]["signerInfo"].as_array().expect("signers") {
        assert_eq!(
            (&signer["signerStatus"], &signer["nationalIdAuditInfo"]),
            (&json!("Pending"), &Value::Null),
            "{signer}"
        );
        assert!(signer.get("signingUrl").is_none(), "{signer}");
    }
    let locker = fixture.backend.open_flow(Flow::DocLocker).await;
    assert_eq!(fixture.backend.poll(&locker).await.text, locker.expected_body(DOCLOCKER_PENDING));
    for poll in [fixture.backend.poll(&esign).await, fixture.backend.poll(&locker).await] {
        assert!(!poll.text.contains("app_id") && !poll.text.contains(&fixture.backend.app), "{}", poll.text);
    }
}

#[tokio::test]
async fn a_poll_of_an_ended_flow_returns_the_bytes_of_its_webhook() {
    let fixture = FlowFixture::with_webhooks().await;
    for (number, (flow, golden)) in [
        (Flow::Esign, ESIGN_COMPLETED),
        (Flow::Esign, ESIGN_REJECTED),
        (Flow::DocLocker, DOCLOCKER_FETCHED),
        (Flow::DocLocker, DOCLOCKER_FAILED),
    ]
    .into_iter()
    .enumerate()
    {
        let opened = fixture.backend.open_flow(flow).await;
        fixture.connector.report_new(flow.kind(), &opened.report(golden)).await;
        let poll = fixture.backend.poll(&opened).await;
        assert_eq!((poll.status, poll.header("content-type")), (200, Some("application/json")));
        assert_eq!(ordered_details(&poll.text), opened.expected_body(golden));
        assert_eq!(body_of(&fixture.webhooks(number + 1).await[number]), poll.text);
    }
}

#[tokio::test]
async fn an_expired_invitation_expires_the_document_with_one_webhook() {
    let fixture = FlowFixture::with_webhooks().await;
    let opened = open_with_short_invitation(&fixture.backend, Duration::from_secs(8)).await;
    fixture.connector.report_new("esign", &half_signed(&opened)).await;
    assert_eq!(fixture.backend.poll(&opened).await.text, opened.expected_body(ESIGN_PENDING));
    let poll = poll_until_expired(&fixture.backend, &opened).await;
    assert_eq!(poll.text, opened.expected_body(ESIGN_EXPIRED));
    assert_eq!(body_of(&fixture.webhooks(1).await[0]), opened.expected_body(ESIGN_EXPIRED));
    // The upstream repeats its report, and then contradicts it.
    fixture.connector.report_again("esign", &opened.report(ESIGN_EXPIRED)).await;
    assert_eq!(fixture.connector.report("esign", &opened.report(ESIGN_COMPLETED)).await.refusal(409), "report_refused");
    assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"]);
    fixture.webhooks(1).await;
}

#[tokio::test]
async fn an_invitation_that_ends_during_downtime_expires_at_the_next_start() {
    let mut fixture = FlowFixture::with_webhooks().await;
    let opened = open_with_short_invitation(&fixture.backend, Duration::from_secs(5)).await;
    fixture.node.kill().await;
    eventually("the end of the invitation", TIMEOUT, || async {
        (timestamp_in(Duration::ZERO) > opened.invitation_ends()[1]).then_some(())
    })
    .await;
    fixture.node.launch().await;
    // The webhook is sent without any request.
    let webhooks = fixture.webhooks(1).await;
    let body: Value = serde_json::from_slice(&webhooks[0].body).expect("JSON");
    assert_eq!(
        (&body["documentId"], &body["documentStatus"], &body["content"]),
        (&json!(opened.id), &json!("Expired"), &Value::Null)
    );
    for signer in body["signerInfo"].as_array().expect("signers") {
        assert_eq!(signer["signerStatus"], "Expired", "the link to sign is gone: {signer}");
    }
    assert_eq!(fixture.backend.poll(&opened).await.text, body_of(&webhooks[0]));
    assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"]);
}

#[tokio::test]
async fn an_expired_document_without_a_webhook_url_can_be_polled() {
    let fixture = FlowFixture::start().await;
    let opened = open_with_short_invitation(&fixture.backend, Duration::from_secs(5)).await;
    poll_until_expired(&fixture.backend, &opened).await;
    assert!(fixture.node.operator().deliveries(&opened.id).await.is_empty());
}

#[tokio::test]
async fn unknown_and_foreign_flows_get_the_same_404() {
    let fixture = FlowFixture::start().await;
    let neighbour = fixture.node.backend_with_credits(0).await;
    let (esign, locker) =
        (fixture.backend.open_flow(Flow::Esign).await, fixture.backend.open_flow(Flow::DocLocker).await);
    let (stamp, wealth) =
        (fixture.backend.open_flow(Flow::EStamp).await, fixture.backend.open_flow(Flow::Wealth).await);
    let unknown = uuid::Uuid::new_v4().to_string();
    let mut answers = vec![neighbour.poll(&esign).await, neighbour.poll(&locker).await];
    for id in [&*unknown, "seven", &locker.id, &stamp.id, &wealth.id] {
        answers.push(fixture.backend.post(ESIGN_STATUS, &json!({"documentId": id})).await);
    }
    for id in [&*unknown, "seven", &esign.id, &stamp.id, &wealth.id] {
        answers.push(fixture.backend.get(&format!("/api/v1/doclocker/details/{id}")).await);
    }
    for answer in &answers {
        assert_eq!(answer.refusal(404), "not_found");
    }
    for id in ["", &"x".repeat(4_000)] {
        assert_eq!(fixture.backend.post(ESIGN_STATUS, &json!({"documentId": id})).await.refusal(404), "not_found");
    }
    let messages: Vec<Value> = answers.iter().map(|answer| answer.json()["message"].clone()).collect();
    // First the neighbour's polls of eSign and document locker, then five eSign polls, and then five of the locker.
    assert_eq!((&messages[0], &messages[1]), (&messages[2], &messages[7]), "the messages are the same");
    let with_foreign_app = fixture.backend.with_credentials(&fixture.backend.key, &neighbour.app);
    assert_eq!(with_foreign_app.poll(&esign).await.refusal(401), "unauthorized");
}

#[tokio::test]
async fn the_body_of_an_esign_status_request_is_validated() {
    let fixture = FlowFixture::start().await;
    let opened = fixture.backend.open_flow(Flow::Esign).await;
    let cases = [
        (json!({}), "documentId"),
        (json!({"documentId": null}), "documentId"),
        (json!({"documentId": 7}), "documentId"),
        (json!({"documentId": opened.id, "colour": "red"}), "colour"),
    ];
    for (body, field) in cases {
        assert_eq!(fixture.backend.post(ESIGN_STATUS, &body).await.refused_fields(), [field], "{body}");
    }
    let both = json!({"documentId": opened.id, "document_id": opened.id});
    let fields = fixture.backend.post(ESIGN_STATUS, &both).await.refused_fields();
    assert!(fields == ["documentId"] || fields == ["document_id"], "{fields:?}");
    let snake = fixture.backend.post(ESIGN_STATUS, &json!({"document_id": opened.id})).await;
    assert_eq!(snake.ok()["data"]["documentId"], opened.id);
    assert_eq!(fixture.backend.get(ESIGN_STATUS).await.refusal(405), "method_not_allowed");
    let post = fixture.backend.post(&format!("/api/v1/doclocker/details/{}", opened.id), &json!({})).await;
    assert_eq!(post.refusal(405), "method_not_allowed");
}

#[tokio::test]
async fn e_stamps_and_wealth_data_have_no_poll() {
    let fixture = FlowFixture::start().await;
    let (stamp, wealth) =
        (fixture.backend.open_flow(Flow::EStamp).await, fixture.backend.open_flow(Flow::Wealth).await);
    for path in [
        format!("/api/v1/estamp/details/{}", stamp.id),
        format!("/api/v1/estamp/{}", stamp.id),
        format!("/api/v1/wealth/consents/{}", wealth.id),
        format!("/api/v1/wealth/details/{}", wealth.id),
    ] {
        assert_eq!(fixture.backend.get(&path).await.refusal(404), "not_found", "{path}");
    }
}

#[tokio::test]
async fn a_result_can_be_polled_until_its_configured_retention_ends() {
    let fixture = FlowFixture::start_with(&[("FLOWS__RESULT_TTL_S", "5")]).await;
    let (esign, locker) =
        (fixture.backend.open_flow(Flow::Esign).await, fixture.backend.open_flow(Flow::DocLocker).await);
    let pending = fixture.backend.open_flow(Flow::Esign).await;
    fixture.connector.report_new("esign", &esign.report(ESIGN_COMPLETED)).await;
    fixture.connector.report_new("doclocker", &locker.report(DOCLOCKER_FETCHED)).await;
    assert_eq!((fixture.backend.poll(&esign).await.status, fixture.backend.poll(&locker).await.status), (200, 200));
    for opened in [&esign, &locker] {
        eventually("the end of the result", TIMEOUT, || async {
            (fixture.backend.poll(opened).await.status == 404).then_some(())
        })
        .await;
    }
    assert_eq!(fixture.backend.poll(&pending).await.ok()["pending"], true, "a pending flow is kept");
}

#[tokio::test]
async fn reports_survive_a_graceful_restart() {
    let mut fixture = FlowFixture::start().await;
    let (ended, partly_signed) =
        (fixture.backend.open_flow(Flow::Esign).await, fixture.backend.open_flow(Flow::Esign).await);
    fixture.connector.report_new("esign", &ended.report(ESIGN_COMPLETED)).await;
    fixture.connector.report_new("esign", &half_signed(&partly_signed)).await;
    fixture.node.restart().await;
    assert_eq!(fixture.backend.poll(&ended).await.text, ended.expected_body(ESIGN_COMPLETED));
    assert_eq!(fixture.backend.poll(&partly_signed).await.text, partly_signed.expected_body(ESIGN_PENDING));
    fixture.connector.report_again("esign", &half_signed(&partly_signed)).await;
    fixture.connector.report_new("esign", &partly_signed.report(ESIGN_COMPLETED)).await;
    assert_eq!(fixture.backend.poll(&partly_signed).await.text, partly_signed.expected_body(ESIGN_COMPLETED));
}

#[tokio::test]
async fn polls_of_flows_share_the_rate_limit_of_all_polls() {
    let fixture = FlowFixture::start_with(&[("LIMITS__POLLS_PER_SECOND_PER_APP", "2")]).await;
    let locker = fixture.backend.open_flow(Flow::DocLocker).await;
    let esign = fixture.backend.open_flow(Flow::Esign).await;
    let unknown_txn = uuid::Uuid::new_v4().to_string();
    let answers = assert_share_limit_of_two_per_second(|round| {
        let (backend, locker, esign, unknown_txn) = (&fixture.backend, &locker, &esign, &unknown_txn);
        async move {
            match round % 3 {
                0 => backend.poll(locker).await,
                1 => backend.poll(esign).await,
                _ => backend.result(unknown_txn).await,
            }
        }
    })
    .await;
    for (round, answer) in answers.iter().enumerate().filter(|(_, answer)| answer.status != 429) {
        assert_eq!(answer.status, if round % 3 == 2 { 404 } else { 200 }, "{}", answer.text);
    }
}
