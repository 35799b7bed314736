//! HTTP: unreadable, too large or misdirected requests get the common error envelope.

use reqwest::Method;
use serde_json::json;

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{Backend, INIT, QR_INTENT};
use sakshi_kit::node::TestNode;

async fn post_init(backend: &Backend, content_type: &str, body: Vec<u8>) -> Answer {
    Answer::receive(backend.request(Method::POST, INIT).header("content-type", content_type).body(body)).await
}

#[tokio::test]
async fn a_body_that_is_not_json_gets_400_and_costs_nothing() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    for body in [
        "",
        "{",
        "nul",
        "{}{}",
        "{\"claims\":[\"name\"],\"channel\":\"qr\"} x",
        "\u{feff}{",
        "{\"a\":\"\u{0}\"}",
        "1x",
        "[{]",
        "{\"claims\":[}",
    ] {
        let answer = post_init(&backend, "application/json", body.as_bytes().to_vec()).await;
        assert_eq!(answer.refusal(400), "malformed_request", "{}", answer.text);
    }
    assert_eq!(post_init(&backend, "application/json", Vec::new()).await.json()["message"], "The body is empty.");
    for body in [vec![b'"', 0xff, b'"'], vec![b'['; 60_000]] {
        assert_eq!(post_init(&backend, "application/json", body).await.refusal(400), "malformed_request");
    }
    // Some parsers read an array as an object with its members in the order of declaration.
    let array = format!("[[\"name\"],\"qr\"{}]", ",null".repeat(9));
    for body in [
        "[]",
        "7",
        "\"text\"",
        "null",
        &array,
        &format!(" \n{array}"),
        &format!("{}{}", "[".repeat(50), "]".repeat(50)),
    ] {
        let answer = post_init(&backend, "application/json", body.as_bytes().to_vec()).await;
        assert_eq!(answer.refused_fields(), ["body"], "{}", answer.text);
        assert!(!answer.text.contains("InitRequest"), "{}", answer.text);
    }
    assert_eq!(node.operator().balance(&backend.client).await, 1);
}

#[tokio::test]
async fn a_body_over_the_limit_gets_413() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let large = json!({"claims": ["name"], "channel": "qr", "name_hint": "x".repeat(70_000)}).to_string();
    assert_eq!(
        post_init(&backend, "application/json", large.clone().into_bytes()).await.refusal(413),
        "body_too_large"
    );
    let chunks =
        large.as_bytes().chunks(1_000).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect::<Vec<_>>();
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let request = backend.request(Method::POST, INIT).header("content-type", "application/json").body(stream);
    assert_eq!(Answer::receive(request).await.refusal(413), "body_too_large", "even without a declared length");
    assert_eq!(node.operator().balance(&backend.client).await, 1);
}

#[tokio::test]
async fn another_media_type_gets_415_and_a_missing_one_means_json() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(3).await;
    let body = json!({"claims": ["name"], "channel": "qr"}).to_string().into_bytes();
    for content_type in ["text/plain", "application/xml", "application/x-www-form-urlencoded", "application/jsonx"] {
        assert_eq!(
            post_init(&backend, content_type, body.clone()).await.refusal(415),
            "unsupported_media_type",
            "{content_type}"
        );
    }
    Answer::receive(backend.request(Method::POST, INIT).body(body.clone())).await.ok();
    for content_type in ["application/json", "Application/JSON; charset=utf-8"] {
        post_init(&backend, content_type, body.clone()).await.ok();
    }
}

#[tokio::test]
async fn another_method_gets_a_405_that_lists_the_allowed_methods() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    for (method, path, allow) in [
        (Method::GET, INIT, "POST"),
        (Method::DELETE, INIT, "POST"),
        (Method::PUT, QR_INTENT, "POST"),
        (Method::POST, "/api/v1/nationalid-ovse/result/3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11", "GET, HEAD"),
        (Method::POST, "/api/ping", "GET, HEAD"),
    ] {
        let answer = Answer::receive(backend.request(method.clone(), path)).await;
        assert_eq!(answer.refusal(405), "method_not_allowed", "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
}

#[tokio::test]
async fn an_unknown_path_gets_a_404_in_the_error_envelope() {
    let node = TestNode::start().await;
    for path in [
        "/api",
        "/api/v1",
        "/api/v2/nationalid-ovse/init",
        "/api/v1/nationalid-ovse",
        "/api/ping/",
        "/admin/v1/tree",
        "/metrics",
        "/livez",
    ] {
        assert_eq!(node.get(path).await.refusal(404), "not_found", "{path}");
    }
    assert_eq!(node.operator().get("/admin/v1/nothing").await.refusal(404), "not_found");
}

#[tokio::test]
async fn a_request_id_is_echoed_or_generated() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    let body = json!({"claims": ["name"], "channel": "qr"});
    let with_own_id =
        Answer::receive(backend.request(Method::POST, INIT).header("X-Request-ID", "order-7/a").json(&body)).await;
    assert_eq!((with_own_id.status, with_own_id.header("x-request-id")), (200, Some("order-7/a")));
    let (first, second) = (node.get("/api/ping").await, node.get("/api/ping").await);
    assert_ne!(first.header("x-request-id").unwrap(), second.header("x-request-id").unwrap());
    for bad in ["two words", "", &"x".repeat(129), "caf\u{e9}"] {
        let value = reqwest::header::HeaderValue::from_bytes(bad.as_bytes()).unwrap();
        let answer = Answer::receive(
            node.http.request(Method::GET, node.addresses.public("/api/ping")).header("X-Request-ID", value),
        )
        .await;
        assert_eq!((answer.status, answer.header("x-request-id").map(str::len)), (200, Some(36)), "{bad}");
    }
    let with_two_ids = node
        .http
        .request(Method::GET, node.addresses.public("/api/ping"))
        .header("X-Request-ID", "one")
        .header("X-Request-ID", "two");
    assert_eq!(Answer::receive(with_two_ids).await.header("x-request-id").map(str::len), Some(36));
}

#[tokio::test]
async fn responses_of_the_api_are_json() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.init(&json!({"claims": ["name"], "channel": "qr"})).await;
    assert_eq!(opened.header("content-type"), Some("application/json"));
    let refused = backend.init(&json!({})).await;
    assert_eq!((refused.status, refused.header("content-type")), (400, Some("application/json")));
}

#[tokio::test]
async fn sandbox_app_errors_are_json_for_programs_and_pages_for_people() {
    let (node, other_node) = (TestNode::start().await, TestNode::start().await);
    let (backend, other_backend) = (node.backend_with_credits(1).await, other_node.backend_with_credits(1).await);
    let (own, foreign) = (backend.open(&["name"]).await, other_backend.open(&["name"]).await);
    let path = node.addresses.public("/sandbox/app/answer");
    for (body, status, code, message) in [
        (
            json!({"intent": own.answer["intentJwt"], "action": "zap"}),
            400,
            "unknown_action",
            "the actions are approve, decline, abort",
        ),
        (json!({"intent": foreign.answer["intentJwt"]}), 403, "foreign_callback", "made for another address"),
        (json!({"intent": "x.y.z"}), 400, "unreadable_intent", "Give an intent JWT"),
        (json!({}), 400, "malformed_body", "needs an intent"),
    ] {
        let refused = Answer::receive(node.http.post(&path).json(&body)).await;
        assert_eq!(refused.refusal(status), code, "{}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains(message), "{}", refused.text);
    }
    let page = node.get(&format!("/sandbox/app?req={}", foreign.answer["intentJwt"].as_str().unwrap())).await;
    assert!(page.status == 403 && page.text.contains("made for another address"), "{}", page.text);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
}
