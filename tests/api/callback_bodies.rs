//! Callbacks over raw sockets whose bodies never arrive: some responses do not wait for the body. `tests/hostile/`
//! covers the resources held by such requests.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::node::TestNode;
use sakshi_kit::raw::Raw;
use sakshi_kit::waiting::{TIMEOUT, eventually};

/// Maximum size of a callback.
const CALLBACK_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Returns the headers that announce a body.
fn headers_for(length: usize, format: CallbackFormat) -> String {
    format!("content-type: {}\r\ncontent-length: {length}", format.content_type())
}

#[tokio::test]
async fn a_wrong_capability_gets_its_404_before_the_body_arrives() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    let path = format!("/cb/{}/abcdefabcdefabcdefabcdef", opened.txn);
    let json =
        Raw::post(&node, &path, &headers_for(CALLBACK_BYTES_MAX, CallbackFormat::Json), b"{").await.answer().await;
    assert!(json.starts_with("HTTP/1.1 404 ") && json.contains("content-type: application/json"), "{json}");
    let reply: Value = serde_json::from_str(json.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((&reply["txn"], &reply["responseCode"]), (&Value::from(&*opened.txn), &Value::from(404)));
    let xml = Raw::post(&node, &path, &headers_for(CALLBACK_BYTES_MAX, CallbackFormat::Xml), b"<").await.answer().await;
    assert!(xml.starts_with("HTTP/1.1 404 ") && xml.contains("<ResponseCode>404</ResponseCode>"), "{xml}");
    let chunked_headers = "accept: application/xml\r\ntransfer-encoding: chunked";
    let chunked = Raw::post(&node, &path, chunked_headers, b"").await.answer().await;
    assert!(chunked.starts_with("HTTP/1.1 404 ") && chunked.contains("<ResponseCode>404</ResponseCode>"), "{chunked}");
    assert!(backend.is_pending(&opened.txn).await);
}

#[tokio::test]
async fn a_rate_limited_address_gets_its_429_before_the_body_arrives() {
    let node = TestNode::start_with(&[("LIMITS__CALLBACKS_PER_SECOND_PER_ADDRESS", "1")]).await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    let headers = headers_for(CALLBACK_BYTES_MAX, CallbackFormat::Json);
    let limited = eventually("a 429", TIMEOUT, || async {
        let _first = Raw::post(&node, &opened.callback_path(), &headers, b"{").await;
        let mut second = Raw::post(&node, &opened.callback_path(), &headers, b"{").await;
        let response = timeout(Duration::from_millis(500), second.answer()).await.ok()?;
        response.starts_with("HTTP/1.1 429 ").then_some(response)
    });
    assert!(limited.await.contains("retry-after: "));
}
