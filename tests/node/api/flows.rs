//! The routes that open flows, on a whole node: with the sandbox's upstreams, and with one that does
//! what a test wants.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use reqwest::header::HeaderMap;
use sakshi_domain::limits::{FILE_REQUEST_BYTES_HELD_MAX, FILE_REQUEST_BYTES_MAX};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::in_process::InProcessNode;

const ESIGN: &str = "/api/v1/esign/request";
const LOCKER: &str = "/api/v1/doclocker/init";
const ESTAMP: &str = "/api/v1/estamp/init";
const WEALTH: &str = "/api/v1/wealth/consents";

fn document() -> Value {
    json!({ "documentInfo": { "name": "Loan", "content": "JVBERi0xLjQKJcOkw7zDtsOfCg==" }, "documentReferenceId": "loan-7",
        "signerInfo": [{ "signerName": "Asha Rao", "signerRefId": "borrower" }, { "signerName": "Vikram Sample" }] })
}

fn documents() -> Value {
    json!({ "docs": ["driving_licence"], "consent": "Y", "consentText": "I agree." })
}

fn stamp() -> Value {
    json!({ "apiType": "PhysicalEStamp", "document": { "documentName": "lease.pdf", "base64FileData": "QUJD" },
        "signatoriesInfo": [{ "name": "Asha Rao", "email_id": "asha@example.com", "signType": "electronic" }] })
}

fn consent() -> Value {
    json!({ "consent": "Y", "consent_text": "I agree." })
}

/// An upstream that answers every order with `answer`, or not at all when that is empty; and how many came.
async fn upstream(answer: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, orders) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&orders);
    actix_web::rt::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 16 * 1_024]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            if answer.is_empty() {
                open.push(stream);
            }
        }
    });
    (address, orders)
}

/// A node whose orders of every flow go to this address, and may take so long.
async fn ordering_from(address: SocketAddr, timeout_ms: &str) -> InProcessNode {
    let url = format!("http://{address}/");
    let set = ["esign_url", "doclocker_url", "estamp_url", "wealth_url"].map(|key| (format!("upstreams.{key}"), url.clone()));
    let set: Vec<(&str, &str)> = set.iter().map(|(key, url)| (key.as_str(), url.as_str())).collect();
    InProcessNode::start_with(&[&set[..], &[("upstreams.timeout_ms", timeout_ms)]].concat()).await
}

async fn once(live: &InProcessNode, key: &str, path: &str, body: &Value) -> (u16, HeaderMap, Value) {
    let request = live.signed(live.http.post(live.url(path))).header("Idempotency-Key", key).json(body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.headers().clone(), response.json().await.unwrap())
}

fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[actix_rt::test]
async fn every_flow_is_opened_with_what_its_upstream_answered_and_costs_no_credit() {
    let live = InProcessNode::start().await;
    let (_, before) = live.get("/api/v1/credits").await;
    let mut ids = Vec::new();
    for (flow, path, body, id, answered) in [
        ("esign", ESIGN, document(), "documentId", &["documentId", "documentReferenceId", "signerInfo"][..]),
        ("doclocker", LOCKER, documents(), "transactionId", &["requestUrl", "transactionId"]),
        ("estamp", ESTAMP, stamp(), "eStampId", &["eStampId"]),
        ("wealth", WEALTH, consent(), "uniqueIdentifier", &["consentHandle", "requestUrl", "uniqueIdentifier"]),
    ] {
        let (status, opened) = live.post(path, &body).await;
        assert_eq!((status, members(&opened)), (200, answered.to_vec()), "{path}: {opened}");
        ids.push((flow, opened[id].as_str().unwrap().to_owned()));
        if flow == "esign" {
            let signers = opened["signerInfo"].as_array().unwrap();
            assert_eq!(signers.iter().map(|signer| &signer["signerRefId"]).collect::<Vec<_>>(), [&json!("borrower"), &Value::Null]);
            assert!(signers.iter().all(|signer| signer["signingUrl"].as_str().unwrap().starts_with(&live.node.public_base)));
        }
    }
    for ((flow, id), outcome) in ids.iter().zip(["completed", "fetched", "rejected", "accepted"]) {
        let request = live.http.post(live.url(&format!("/sandbox/flows/{flow}/{id}"))).json(&json!({ "outcome": outcome }));
        let played: Value = request.send().await.unwrap().json().await.unwrap();
        let reported = played["reported"].as_array().unwrap();
        assert!(!reported.is_empty() && reported.iter().all(|report| report["status"] == 200), "{flow}: {played}");
    }
    assert_eq!(live.get("/api/v1/credits").await.1, before);
    live.stop().await;
}

#[actix_rt::test]
async fn a_repeat_under_a_key_gets_the_first_answer_and_another_request_under_it_is_refused() {
    let live = InProcessNode::start().await;
    for (key, path, body) in [("a", ESIGN, document()), ("b", LOCKER, documents()), ("c", ESTAMP, stamp()), ("d", WEALTH, consent())] {
        let first = once(&live, key, path, &body).await;
        let again = once(&live, key, path, &body).await;
        assert_eq!((first.0, again.0, &first.2), (200, 200, &again.2), "{path}");
        assert!(!first.1.contains_key("idempotency-replayed") && again.1["idempotency-replayed"] == "true", "{path}");
        let mut other = body.clone();
        other["request_id"] = json!("another");
        assert_eq!(once(&live, key, path, &other).await.2["code"], "idempotency_key_reused", "{path}");
    }
    assert_eq!(once(&live, "d", LOCKER, &documents()).await.0, 422, "it opened a flow of another kind");
    assert_eq!(once(&live, "b", WEALTH, &consent()).await.0, 422);
    live.stop().await;
}

#[actix_rt::test]
async fn twenty_requests_at_once_under_one_key_place_one_order() {
    const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 52\r\n\r\n{\"consentHandle\":\"h\",\"requestUrl\":\"https://a.in/\"}  ";
    let (address, orders) = upstream(TAKEN).await;
    let live = ordering_from(address, "20000").await;
    for (placed, (path, body)) in [(LOCKER, documents()), (ESTAMP, stamp()), (WEALTH, consent())].into_iter().enumerate() {
        let (key, body) = (placed.to_string(), &body);
        let answers = join_all((0..20).map(|_| once(&live, &key, path, body))).await;
        assert!(answers.iter().all(|answer| answer.0 == 200 && answer.2 == answers[0].2), "{path}: {answers:?}");
        let first = answers.iter().filter(|answer| !answer.1.contains_key("idempotency-replayed")).count();
        assert_eq!((first, orders.load(Ordering::SeqCst)), (1, placed + 1), "{path}");
    }
    live.stop().await;
}

#[actix_rt::test]
async fn an_upstream_that_fails_or_is_late_opens_nothing_and_leaves_the_key_unused() {
    let (address, orders) = upstream("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 6\r\n\r\nsecret").await;
    let live = ordering_from(address, "300").await;
    for (path, body) in [(ESIGN, document()), (LOCKER, documents()), (ESTAMP, stamp()), (WEALTH, consent())] {
        for _ in 0..2 {
            let (status, _, refused) = once(&live, "key", path, &body).await;
            assert_eq!((status, &refused["code"]), (502, &json!("upstream_failed")), "{path}");
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }
    assert_eq!(orders.load(Ordering::SeqCst), 8, "no order is repeated, and no refusal is kept");
    live.stop().await;

    let (silent, _) = upstream("").await;
    let live = ordering_from(silent, "300").await;
    let (status, refused) = live.post(WEALTH, &consent()).await;
    assert_eq!((status, &refused["code"]), (504, &json!("upstream_timed_out")));
    live.stop().await;
}

#[actix_rt::test]
async fn every_problem_is_told_by_its_path_and_nothing_is_ordered() {
    let (address, orders) = upstream("").await;
    let live = ordering_from(address, "300").await;
    let body = json!({ "document_info": { "name": " ", "content": "no Base64!", "colour": "red" }, "consent": "Y",
        "signer_info": [{ "signer_name": "A", "foo": 1 }, { "signerName": 7 }, "B", {}], "responseUrl": "nowhere" });
    let (status, refused) = live.post(ESIGN, &body).await;
    let told: Vec<&str> = refused["errors"].as_array().unwrap().iter().map(|problem| problem["field"].as_str().unwrap()).collect();
    let expected = [
        "document_info.name",
        "document_info.content",
        "document_info.colour",
        "signer_info[0].foo",
        "signer_info[1].signerName",
        "signer_info[2]",
        "signer_info[3].signerName",
        "responseUrl",
        "consent",
    ];
    assert_eq!((status, told), (400, expected.to_vec()));
    let (status, refused) = live.post(WEALTH, &json!({ "consent": "N", "consentText": " ", "consent_text": " " })).await;
    assert_eq!((status, refused["errors"].as_array().unwrap().len()), (400, 2), "{refused}");
    assert_eq!(orders.load(Ordering::SeqCst), 0);
    live.stop().await;
}

#[actix_rt::test]
async fn the_correlation_id_of_the_body_is_the_one_that_is_echoed() {
    let live = InProcessNode::start().await;
    let mut body = consent();
    body["request_id"] = json!("order-7");
    let response = live.signed(live.http.post(live.url(WEALTH))).json(&body).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()["x-request-id"].to_str().unwrap()), (200, "order-7"));
    live.stop().await;
}

/// Announces a body and sends none of it.
async fn announce(live: &InProcessNode, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(live.node.public_addr).await.unwrap();
    let (key, app) = (live.first.key.reveal(), live.first.app.as_str());
    let head = format!(
        "POST {ESTAMP} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\nx-api-app-id: {app}\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[actix_rt::test]
async fn bodies_that_are_announced_and_do_not_come_take_no_room_from_anybody() {
    let live = InProcessNode::start().await;
    let mut held = Vec::new();
    for _ in 0..2 * FILE_REQUEST_BYTES_HELD_MAX / FILE_REQUEST_BYTES_MAX {
        held.push(announce(&live, FILE_REQUEST_BYTES_MAX).await);
    }
    assert_eq!(live.post(ESTAMP, &stamp()).await.0, 200);
    let mut large = announce(&live, FILE_REQUEST_BYTES_MAX + 1).await;
    let mut head = [0; 12];
    large.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    live.stop().await;
}
