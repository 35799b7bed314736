//! Polling fallbacks (specification, "Webhook configuration and polling"): a stub while a flow waits,
//! and the webhook's body once it has ended.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::flow::{Begun, Flow};
use sakshi_kit::goldens::*;
use sakshi_kit::office::{Office, body_of};
use sakshi_kit::venue::within;
use sakshi_kit::waiting::{PLENTY, eventually};

const ESIGN_STATUS: &str = "/api/v1/esign/status";

/// An eSign flow in which the second signer is invited for a moment only.
async fn begin_short(backend: &Backend, moment: Duration) -> Begun {
    let until = json!(within(moment));
    backend.begin_with(Flow::Esign, &Flow::Esign.body_with(&[("/signerInfo/1/invitationExpireTimeStamp", Some(until))])).await
}

/// Waits until a document has expired, and returns the poll's answer.
async fn expired(backend: &Backend, begun: &Begun) -> Answer {
    eventually("the end of the invitation", PLENTY, || async {
        let answer = backend.poll(begun).await;
        (answer.ok()["documentStatus"] == "Expired").then_some(answer)
    })
    .await
}

#[tokio::test]
async fn a_flow_that_nobody_has_reported_on_is_polled_as_a_stub() {
    let office = Office::open().await;
    let esign = office.backend.begin(Flow::Esign).await;
    let poll = office.backend.poll(&esign).await.ok();
    assert_eq!((&poll["success"], &poll["pending"], &poll["data"]["pending"]), (&json!(true), &json!(true), &json!(true)), "{poll}");
    assert_eq!((&poll["data"]["documentId"], &poll["data"]["documentStatus"]), (&json!(esign.id), &json!("Pending")), "{poll}");
    for signer in poll["data"]["signerInfo"].as_array().expect("signers") {
        assert_eq!((&signer["signerStatus"], &signer["nationalIdAuditInfo"]), (&json!("Pending"), &Value::Null), "{signer}");
        assert!(signer.get("signingUrl").is_none(), "{signer}");
    }
    let locker = office.backend.begin(Flow::DocLocker).await;
    assert_eq!(office.backend.poll(&locker).await.text, locker.sent(DOCLOCKER_PENDING));
    for poll in [office.backend.poll(&esign).await, office.backend.poll(&locker).await] {
        assert!(!poll.text.contains("app_id") && !poll.text.contains(&office.backend.app), "{}", poll.text);
    }
}

#[tokio::test]
async fn an_ended_flow_is_polled_in_the_bytes_of_its_webhook() {
    let office = Office::registered().await;
    for (number, (flow, golden)) in [
        (Flow::Esign, ESIGN_COMPLETED),
        (Flow::Esign, ESIGN_REJECTED),
        (Flow::DocLocker, DOCLOCKER_FETCHED),
        (Flow::DocLocker, DOCLOCKER_FAILED),
    ]
    .into_iter()
    .enumerate()
    {
        let begun = office.backend.begin(flow).await;
        office.connector.tell(flow.kind(), &begun.report(golden)).await;
        let poll = office.backend.poll(&begun).await;
        assert_eq!((poll.status, poll.header("content-type")), (200, Some("application/json")));
        assert_eq!(ordered_details(&poll.text), begun.sent(golden));
        assert_eq!(body_of(&office.webhooks(number + 1).await[number]), poll.text);
    }
}

#[tokio::test]
async fn an_invitation_that_ends_expires_the_document_by_the_services_clock_with_one_webhook() {
    let office = Office::registered().await;
    let begun = begin_short(&office.backend, Duration::from_secs(8)).await;
    office.connector.tell("esign", &half_signed(&begun)).await;
    assert_eq!(office.backend.poll(&begun).await.text, begun.sent(ESIGN_PENDING));
    let poll = expired(&office.backend, &begun).await;
    assert_eq!(poll.text, begun.sent(ESIGN_EXPIRED));
    assert_eq!(body_of(&office.webhooks(1).await[0]), begun.sent(ESIGN_EXPIRED));
    // The upstream says the same, and then something else.
    office.connector.tell_again("esign", &begun.report(ESIGN_EXPIRED)).await;
    assert_eq!(office.connector.report("esign", &begun.report(ESIGN_COMPLETED)).await.refusal(409), "report_refused");
    assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"]);
    office.webhooks(1).await;
}

#[tokio::test]
async fn an_invitation_that_ends_while_the_process_is_down_expires_when_it_is_back() {
    let mut office = Office::registered().await;
    let begun = begin_short(&office.backend, Duration::from_secs(5)).await;
    office.universe.kill().await;
    eventually("the end of the invitation", PLENTY, || async { (within(Duration::ZERO) > begun.until()[1]).then_some(()) }).await;
    office.universe.launch().await;
    // Nobody asks for it: the webhook comes by itself.
    let arrived = office.webhooks(1).await;
    let body: Value = serde_json::from_slice(&arrived[0].body).expect("JSON");
    assert_eq!((&body["documentId"], &body["documentStatus"], &body["content"]), (&json!(begun.id), &json!("Expired"), &Value::Null));
    for signer in body["signerInfo"].as_array().expect("signers") {
        assert_eq!(signer["signerStatus"], "Expired", "nobody can sign any more: {signer}");
    }
    assert_eq!(office.backend.poll(&begun).await.text, body_of(&arrived[0]));
    assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"]);
}

#[tokio::test]
async fn a_document_that_expires_without_a_url_can_be_fetched_as_expired() {
    let office = Office::open().await;
    let begun = begin_short(&office.backend, Duration::from_secs(3)).await;
    expired(&office.backend, &begun).await;
    assert!(office.universe.operator().deliveries(&begun.id).await.is_empty());
}

#[tokio::test]
async fn unknown_flows_and_those_of_another_app_are_the_same_404() {
    let office = Office::open().await;
    let neighbour = office.universe.backend(0).await;
    let (esign, locker) = (office.backend.begin(Flow::Esign).await, office.backend.begin(Flow::DocLocker).await);
    let (stamp, wealth) = (office.backend.begin(Flow::EStamp).await, office.backend.begin(Flow::Wealth).await);
    let unknown = uuid::Uuid::new_v4().to_string();
    let mut answers = vec![neighbour.poll(&esign).await, neighbour.poll(&locker).await];
    for id in [&*unknown, "seven", &locker.id, &stamp.id, &wealth.id] {
        answers.push(office.backend.post(ESIGN_STATUS, &json!({"documentId": id})).await);
    }
    for id in [&*unknown, "seven", &esign.id, &stamp.id, &wealth.id] {
        answers.push(office.backend.get(&format!("/api/v1/doclocker/details/{id}")).await);
    }
    for answer in &answers {
        assert_eq!(answer.refusal(404), "not_found");
    }
    let messages: Vec<Value> = answers.iter().map(|answer| answer.json()["message"].clone()).collect();
    assert_eq!((&messages[0], &messages[1]), (&messages[2], &messages[7]), "no oracle");
    let other = office.backend.presenting(&office.backend.key, &neighbour.app);
    assert_eq!(other.poll(&esign).await.refusal(401), "unauthorized");
}

#[tokio::test]
async fn what_asks_for_an_esign_status_is_checked() {
    let office = Office::open().await;
    let begun = office.backend.begin(Flow::Esign).await;
    let cases = [
        (json!({}), "documentId"),
        (json!({"documentId": null}), "documentId"),
        (json!({"documentId": 7}), "documentId"),
        (json!({"documentId": begun.id, "colour": "red"}), "colour"),
    ];
    for (body, field) in cases {
        assert_eq!(office.backend.post(ESIGN_STATUS, &body).await.refused_fields(), [field], "{body}");
    }
    let both = json!({"documentId": begun.id, "document_id": begun.id});
    let fields = office.backend.post(ESIGN_STATUS, &both).await.refused_fields();
    assert!(fields == ["documentId"] || fields == ["document_id"], "{fields:?}");
    let snake = office.backend.post(ESIGN_STATUS, &json!({"document_id": begun.id})).await;
    assert_eq!(snake.ok()["data"]["documentId"], begun.id);
    assert_eq!(office.backend.get(ESIGN_STATUS).await.refusal(405), "method_not_allowed");
    let post = office.backend.post(&format!("/api/v1/doclocker/details/{}", begun.id), &json!({})).await;
    assert_eq!(post.refusal(405), "method_not_allowed");
}

#[tokio::test]
async fn e_stamps_and_wealth_data_have_no_poll() {
    let office = Office::open().await;
    let (stamp, wealth) = (office.backend.begin(Flow::EStamp).await, office.backend.begin(Flow::Wealth).await);
    for path in [
        format!("/api/v1/estamp/details/{}", stamp.id),
        format!("/api/v1/estamp/{}", stamp.id),
        format!("/api/v1/wealth/consents/{}", wealth.id),
        format!("/api/v1/wealth/details/{}", wealth.id),
    ] {
        assert_eq!(office.backend.get(&path).await.refusal(404), "not_found", "{path}");
    }
}

#[tokio::test]
async fn a_result_can_be_fetched_for_as_long_as_the_operator_says_and_not_longer() {
    let office = Office::with(&[("FLOWS__RESULT_TTL_S", "2")]).await;
    let (esign, locker) = (office.backend.begin(Flow::Esign).await, office.backend.begin(Flow::DocLocker).await);
    let waiting = office.backend.begin(Flow::Esign).await;
    office.connector.tell("esign", &esign.report(ESIGN_COMPLETED)).await;
    office.connector.tell("doclocker", &locker.report(DOCLOCKER_FETCHED)).await;
    assert_eq!((office.backend.poll(&esign).await.status, office.backend.poll(&locker).await.status), (200, 200));
    for begun in [&esign, &locker] {
        eventually("the end of the result", PLENTY, || async { (office.backend.poll(begun).await.status == 404).then_some(()) }).await;
    }
    assert_eq!(office.backend.poll(&waiting).await.ok()["pending"], true, "what waits is kept");
}

#[tokio::test]
async fn what_was_reported_is_there_after_a_restart_in_good_order() {
    let mut office = Office::open().await;
    let (ended, half) = (office.backend.begin(Flow::Esign).await, office.backend.begin(Flow::Esign).await);
    office.connector.tell("esign", &ended.report(ESIGN_COMPLETED)).await;
    office.connector.tell("esign", &half_signed(&half)).await;
    office.universe.restart().await;
    assert_eq!(office.backend.poll(&ended).await.text, ended.sent(ESIGN_COMPLETED));
    assert_eq!(office.backend.poll(&half).await.text, half.sent(ESIGN_PENDING));
    office.connector.tell_again("esign", &half_signed(&half)).await;
    office.connector.tell("esign", &half.report(ESIGN_COMPLETED)).await;
    assert_eq!(office.backend.poll(&half).await.text, half.sent(ESIGN_COMPLETED));
}

#[tokio::test]
async fn polls_of_flows_share_the_rate_of_polls() {
    let office = Office::with(&[("LIMITS__POLLS_PER_SECOND_PER_APP", "2")]).await;
    let locker = office.backend.begin(Flow::DocLocker).await;
    let esign = office.backend.begin(Flow::Esign).await;
    let mut limited = 0;
    for round in 0..60 {
        let answer = office.backend.poll(if round % 2 == 0 { &locker } else { &esign }).await;
        match answer.status {
            200 => {}
            _ => {
                assert_eq!(answer.refusal(429), "rate_limited");
                limited += 1;
            }
        }
    }
    assert!(limited > 20, "only {limited} of 60 were limited");
    let result = office.backend.request(Method::GET, &sakshi_kit::backend::result_path(&uuid::Uuid::new_v4().to_string()));
    assert_eq!(Answer::to(result).await.refusal(429), "rate_limited", "the rate is the one of all polls");
}
