//! Polls as a client sees them on a whole node, and the room that their answers take.

use std::time::Duration;

use reqwest::Method;
use sakshi_api::polls::Polls;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::limits::{ANSWER_BYTES_HELD_MAX, FILE_BYTES_MAX};
use sakshi_domain::tenancy::{App, KeyCase};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use sakshi_service::error::ServiceError;
use sakshi_store::{Flows as _, ReportFlow, SealedPayload, Tenancy as _};
use sakshi_web::budget::MemoryBudgets;
use sakshi_web::error::ApiError;
use sakshi_wire::reports::FlowReport;
use serde_json::{Value, json};

use crate::flow_fixture::{Flow, Party};
use crate::in_process::InProcessNode;
use crate::store_fixture::{RESULT_TTL, StoreFixture};

const STATUS: &str = "/api/v1/esign/status";

fn party(live: &InProcessNode) -> Party {
    Party { client: live.first.client.clone(), app: live.first.app.clone(), now: SystemClock.now() }
}

async fn registered(live: &InProcessNode, receiver: &WebhookReceiver, api_type: &str) {
    let setting = json!({"apiType": api_type, "webhookUrl": receiver.url("/hook")});
    let (status, answer) = live.send(Method::PUT, "/api/v1/user/webhook", live.first.app.as_str(), &setting).await;
    assert_eq!((status, &answer["data"]), (200, &setting));
}

fn details(flow: &Flow) -> String {
    format!("/api/v1/doclocker/details/{}", flow.id)
}

#[actix_rt::test]
async fn a_document_is_pending_until_it_has_ended_and_then_the_poll_answers_the_bytes_of_the_webhook() {
    let live = InProcessNode::start().await;
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    registered(&live, &receiver, "ESign").await;
    let flow = party(&live).document(&*live.node.store).await;
    for name in ["documentId", "document_id"] {
        let (status, stub) = live.post(STATUS, &json!({ name: flow.id })).await;
        let expected = json!({"documentId": flow.id, "pending": true, "documentReferenceId": null, "documentStatus": "Pending",
            "signerInfo": flow.document("Pending")["signerInfo"]});
        assert_eq!((status, stub), (200, json!({"success": true, "pending": true, "data": expected})));
    }
    assert_eq!(live.report("esign", &flow.document("Completed")).await, (200, json!({"success": true, "result": "accepted"})));
    let request = live.signed(live.http.post(live.url(STATUS))).json(&json!({"documentId": flow.id}));
    let polled = request.send().await.unwrap();
    assert_eq!((polled.status().as_u16(), polled.headers()["content-type"].as_bytes()), (200, &b"application/json"[..]));
    let polled = polled.bytes().await.unwrap();
    let received = receiver.wait_for(1, Duration::from_secs(30)).await;
    assert_eq!(received[0].body, polled);
    let mut told = flow.document("Completed");
    told.as_object_mut().unwrap().remove("app_id");
    assert_eq!(serde_json::from_slice::<Value>(&polled).unwrap(), told);
    live.stop().await;
}

#[actix_rt::test]
async fn documents_of_the_locker_are_shown_as_they_come_and_at_last_as_the_webhook_has_them() {
    let live = InProcessNode::start().await;
    let flow = party(&live).locker(&*live.node.store).await;
    let (status, stub) = live.get(&details(&flow)).await;
    let nothing = json!({"success": true, "pending": true, "data": {"transactionId": flow.id, "pending": true}});
    assert_eq!((status, stub), (200, nothing));
    live.report("doclocker", &flow.locker("Pending")).await;
    let (_, stub) = live.get(&details(&flow)).await;
    assert_eq!((&stub["pending"], &stub["data"]["docs"][0]["status"]), (&json!(true), &json!("Pending")));
    let large = flow.locker_with("Fetched", "QUJD".repeat(FILE_BYTES_MAX / 3));
    assert_eq!(live.report("doclocker", &large).await.0, 200);
    let (status, ended) = live.get(&details(&flow)).await;
    assert_eq!((status, &ended["success"], &ended["data"]["transactionId"]), (200, &json!(true), &json!(flow.id)));
    assert!(ended["data"]["docs"][0]["dataPdf"] == large["data"]["docs"][0]["dataPdf"], "the file comes whole");
    live.stop().await;
}

#[actix_rt::test]
async fn what_the_app_does_not_have_is_404_and_what_is_not_asked_for_rightly_400() {
    let live = InProcessNode::start().await;
    let store = &*live.node.store;
    let own = party(&live);
    let other = App {
        app_id: AppId::generate(),
        client_id: own.client.clone(),
        name: "Other".into(),
        payload_spelling: KeyCase::default(),
        consent_webhook_url: None,
        data_webhook_url: None,
        historical_webhook_url: None,
        created_at: SystemClock.now(),
    };
    assert!(store.create_app(other.clone()).await.unwrap());
    let foreign = Party { app: other.app_id, ..own.clone() };
    let (document, locker) = (own.document(store).await, own.locker(store).await);
    let (foreign_document, foreign_locker) = (foreign.document(store).await, foreign.locker(store).await);
    let unknown = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
    for id in [unknown, "", "document-1", &foreign_document.id.to_string(), &locker.id.to_string(), &"x".repeat(4_000)] {
        let (status, refused) = live.post(STATUS, &json!({"documentId": id})).await;
        assert_eq!((status, &refused["code"]), (404, &json!("not_found")), "{id}");
    }
    for id in [unknown, "x", &foreign_locker.id.to_string(), &document.id.to_string()] {
        let (status, refused) = live.get(&format!("/api/v1/doclocker/details/{id}")).await;
        assert_eq!((status, &refused["code"]), (404, &json!("not_found")), "{id}");
    }
    for body in [json!({}), json!({"documentId": null}), json!({"documentId": 7}), json!({"documentId": document.id, "content": true})] {
        assert_eq!(live.post(STATUS, &body).await.0, 400, "{body}");
    }
    for path in [STATUS.to_owned(), details(&locker)] {
        let method = if path == STATUS { Method::POST } else { Method::GET };
        let (status, _) = live.send(method, &path, unknown, &json!({"documentId": document.id})).await;
        assert_eq!(status, 401, "{path}");
    }
    live.stop().await;
}

#[actix_rt::test]
async fn an_app_that_does_not_read_its_answers_is_refused_before_it_takes_the_room_of_all() {
    let fixture = StoreFixture::new();
    let client = fixture.client().await;
    let party = Party { app: fixture.app(&client).await, client, now: fixture.clock.now() };
    let flow = party.locker(&fixture.store).await;
    let large = flow.locker_with("Fetched", "QUJD".repeat(FILE_BYTES_MAX / 3));
    let report = FlowReport::parse(ReportKind::DocLocker, large.to_string().as_bytes()).unwrap();
    fixture.store.report_flow(ReportFlow { report, result_ttl: RESULT_TTL }).await.unwrap();
    let latest = async || -> SealedPayload { fixture.store.load_flow(flow.id, party.app.clone()).await.unwrap().unwrap().latest.unwrap() };
    let (polls, bytes) = (Polls::new(MemoryBudgets::new().answers), latest().await.size());
    let app = fixture.store.load_app(party.app.clone()).await.unwrap().unwrap();
    let other = App { app_id: AppId::generate(), client_id: ClientId::generate(), ..app.clone() };
    let mut unread = Vec::new();
    for _ in 0..ANSWER_BYTES_HELD_MAX / bytes {
        unread.push(polls.answer(&fixture.vault, &app, latest().await, Ok).await.unwrap());
    }
    let refused = polls.answer(&fixture.vault, &app, latest().await, Ok).await.unwrap_err();
    assert!(matches!(refused, ApiError::Service(ServiceError::Unavailable { code: "no_room", .. })), "{refused:?}");
    assert!(polls.answer(&fixture.vault, &other, latest().await, Ok).await.is_ok(), "there is room for others");
    unread.pop();
    assert!(polls.answer(&fixture.vault, &app, latest().await, Ok).await.is_ok());
}
