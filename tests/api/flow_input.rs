//! Bad input to requests that open flows: every error names the path of its field, and nothing is ordered.

use reqwest::{Body, Method};
use sakshi_domain::limits::{FILE_REQUEST_BYTES_HELD_MAX, FILE_REQUEST_BYTES_MAX};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::event::timestamp_in;
use sakshi_kit::flow::{CONSENT_TEXT, Flow};
use sakshi_kit::node::TestNode;
use sakshi_kit::raw::Raw;
use sakshi_kit::upstream::Upstream;

use crate::limits::assert_share_limit_of_two_per_second;

const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

/// A change at a JSON pointer of a valid body, and the path that the error must name.
type Case = (&'static str, Option<Value>, &'static str);

/// Returns the case of a body with another value at the pointer.
fn set(pointer: &'static str, value: Value, path: &'static str) -> Case {
    (pointer, Some(value), path)
}

/// Returns the case of a body without the member at the pointer.
const fn without(pointer: &'static str, path: &'static str) -> Case {
    (pointer, None, path)
}

/// Checks that every case is refused with its path, and that nothing is ordered from the upstream.
async fn assert_refused(flow: Flow, cases: Vec<Case>) {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(1).await;
    for (pointer, value, path) in cases {
        let excerpt =
            value.as_ref().map_or_else(|| "none".to_owned(), |value| value.to_string().chars().take(80).collect());
        let answer = backend.try_open_flow(flow, &flow.body_with(&[(pointer, value)])).await;
        let fields = answer.refused_fields();
        assert!(fields == [path], "expected {path}, got {fields:?} for {pointer} = {excerpt}");
    }
    assert!(upstream.orders().is_empty(), "nothing was ordered");
}

#[tokio::test]
async fn every_bad_field_of_an_esign_request_gets_a_400_that_names_its_path() {
    let invitation = "/signerInfo/1/invitationExpireTimeStamp";
    let invitation_path = "signerInfo[1].invitationExpireTimeStamp";
    let many = json!(vec![json!({"signerName": "Asha Rao"}); 21]);
    let cases = vec![
        without("/documentInfo", "documentInfo"),
        set("/documentInfo", Value::Null, "documentInfo"),
        set("/documentInfo", json!("a document"), "documentInfo"),
        set("/documentInfo", json!([]), "documentInfo"),
        without("/documentInfo/name", "documentInfo.name"),
        set("/documentInfo/name", json!(""), "documentInfo.name"),
        set("/documentInfo/name", json!(" \n"), "documentInfo.name"),
        set("/documentInfo/name", json!(7), "documentInfo.name"),
        set("/documentInfo/name", json!("x".repeat(101)), "documentInfo.name"),
        without("/documentInfo/content", "documentInfo.content"),
        set("/documentInfo/content", json!(""), "documentInfo.content"),
        set("/documentInfo/content", json!("no Base64!"), "documentInfo.content"),
        set("/documentInfo/content", json!("QUJ"), "documentInfo.content"),
        set("/documentInfo/content", json!("QUJD\nQUJD"), "documentInfo.content"),
        set("/documentInfo/content", json!("QU-_"), "documentInfo.content"),
        set("/documentInfo/content", json!({"base64": "QUJD"}), "documentInfo.content"),
        set("/documentInfo/colour", json!("red"), "documentInfo.colour"),
        without("/signerInfo", "signerInfo"),
        set("/signerInfo", json!([]), "signerInfo"),
        set("/signerInfo", json!({"signerName": "Asha Rao"}), "signerInfo"),
        set("/signerInfo", many, "signerInfo"),
        set("/signerInfo/1", json!("Vikram Sample"), "signerInfo[1]"),
        without("/signerInfo/1/signerName", "signerInfo[1].signerName"),
        set("/signerInfo/1/signerName", json!(""), "signerInfo[1].signerName"),
        set("/signerInfo/1/signerName", json!("x".repeat(101)), "signerInfo[1].signerName"),
        set("/signerInfo/0/signerName", json!(["Asha", "Rao"]), "signerInfo[0].signerName"),
        set("/signerInfo/0/signerRefId", json!("x".repeat(129)), "signerInfo[0].signerRefId"),
        set("/signerInfo/0/signerRefId", json!(""), "signerInfo[0].signerRefId"),
        set("/signerInfo/0/colour", json!("red"), "signerInfo[0].colour"),
        set("/signerInfo/0/signerId", json!("of-my-own"), "signerInfo[0].signerId"),
        set(invitation, json!("tomorrow"), invitation_path),
        set(invitation, json!(1_800_000_000), invitation_path),
        set(invitation, json!("2020-01-01T00:00:00Z"), invitation_path),
        set(invitation, json!(timestamp_in(DAY).trim_end_matches('Z')), invitation_path),
        set(invitation, json!(timestamp_in(91 * DAY)), invitation_path),
        set("/documentReferenceId", json!("x".repeat(129)), "documentReferenceId"),
        set("/documentReferenceId", json!(7), "documentReferenceId"),
        set("/responseUrl", json!("ftp://client.example/"), "responseUrl"),
        set("/responseUrl", json!("https://user:pass@client.example/"), "responseUrl"),
        set("/responseUrl", json!("https://client.example/#part"), "responseUrl"),
        set("/responseUrl", json!(format!("https://client.example/{}", "x".repeat(2_048))), "responseUrl"),
        set("/responseUrl", json!(""), "responseUrl"),
        set("/colour", json!("red"), "colour"),
        set("/consent", json!("N"), "consent"),
        set("/request_id", json!("two words"), "request_id"),
    ];
    assert_refused(Flow::Esign, cases).await;
}

#[tokio::test]
async fn every_bad_field_of_a_document_locker_request_gets_a_400_with_its_path() {
    let cases = vec![
        without("/docs", "docs"),
        set("/docs", json!([]), "docs"),
        set("/docs", json!("driving_licence"), "docs"),
        set("/docs", json!((0..21).map(|number| format!("document-{number}")).collect::<Vec<_>>()), "docs"),
        set("/docs/1", json!("driving_licence"), "docs[1]"),
        set("/docs/1", json!(""), "docs[1]"),
        set("/docs/1", json!(7), "docs[1]"),
        set("/docs/1", json!("x".repeat(101)), "docs[1]"),
        set("/responseUrl", json!("https://client.example/hook"), "responseUrl"),
        set("/webhook_url", json!("https://client.example/hook"), "webhook_url"),
    ];
    assert_refused(Flow::DocLocker, cases).await;
}

#[tokio::test]
async fn requests_that_fetch_personal_data_require_consent() {
    let cases = || {
        vec![
            without("/consent", "consent"),
            set("/consent", json!("N"), "consent"),
            set("/consent", json!("y"), "consent"),
            set("/consent", json!("yes"), "consent"),
            set("/consent", json!(true), "consent"),
            set("/consent", Value::Null, "consent"),
            without("/consent_text", "consent_text"),
            set("/consent_text", json!(""), "consent_text"),
            set("/consent_text", json!("  "), "consent_text"),
            set("/consent_text", json!("x".repeat(4_097)), "consent_text"),
            set("/consent_text", json!({"text": "I agree"}), "consent_text"),
            set("/colour", json!("red"), "colour"),
        ]
    };
    assert_refused(Flow::DocLocker, cases()).await;
    assert_refused(Flow::Wealth, cases()).await;
}

#[tokio::test]
async fn every_bad_field_of_an_e_stamp_request_gets_a_400_that_names_its_path() {
    let cases = vec![
        without("/apiType", "apiType"),
        set("/apiType", json!("ESign"), "apiType"),
        set("/apiType", json!("registryestamp"), "apiType"),
        set("/apiType", json!(1), "apiType"),
        without("/document", "document"),
        without("/document/documentName", "document.documentName"),
        set("/document/documentName", json!("x".repeat(101)), "document.documentName"),
        without("/document/base64FileData", "document.base64FileData"),
        set("/document/base64FileData", json!("no Base64!"), "document.base64FileData"),
        set("/document/base64FileData", json!(""), "document.base64FileData"),
        set("/document/colour", json!("red"), "document.colour"),
        without("/signatoriesInfo", "signatoriesInfo"),
        set("/signatoriesInfo", json!([]), "signatoriesInfo"),
        without("/signatoriesInfo/0/name", "signatoriesInfo[0].name"),
        set("/signatoriesInfo/0/emailID", json!("nobody"), "signatoriesInfo[0].emailID"),
        set("/signatoriesInfo/0/emailID", json!(7), "signatoriesInfo[0].emailID"),
        without("/signatoriesInfo/0/signType", "signatoriesInfo[0].signType"),
        set("/signatoriesInfo/0/status", json!("Completed"), "signatoriesInfo[0].status"),
        set("/responseUrl", json!("https://client.example/hook"), "responseUrl"),
        set("/colour", json!("red"), "colour"),
    ];
    assert_refused(Flow::EStamp, cases).await;
}

#[tokio::test]
async fn all_problems_are_named_at_once() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(1).await;
    let body = json!({"document_info": {"name": " ", "content": "no Base64!", "colour": "red"}, "consent": "N",
        "signer_info": [{"signer_name": "A", "hat": 1}, {"signerName": 7}, "B", {}], "responseUrl": "nowhere"});
    let expected = [
        "document_info.name",
        "document_info.content",
        "document_info.colour",
        "signer_info[0].hat",
        "signer_info[1].signerName",
        "signer_info[2]",
        "signer_info[3].signerName",
        "responseUrl",
        "consent",
    ];
    assert_eq!(
        backend.try_open_flow(Flow::Esign, &body).await.refused_fields(),
        expected,
        "in the spelling of the request"
    );
    let wealth = json!({"consent": "N", "consentText": " ", "consent_text": " "});
    assert_eq!(backend.try_open_flow(Flow::Wealth, &wealth).await.refused_fields().len(), 2);
    assert!(upstream.orders().is_empty());
}

#[tokio::test]
async fn the_same_field_in_both_spellings_gets_400_at_every_depth() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(1).await;
    // Flow, pointer to an object, and both spellings of one of its members.
    let cases = [
        (Flow::Esign, "", "documentInfo", "document_info"),
        (Flow::Esign, "", "signerInfo", "signer_info"),
        (Flow::Esign, "", "documentReferenceId", "document_reference_id"),
        (Flow::Esign, "/signerInfo/0", "signerName", "signer_name"),
        (Flow::Esign, "/signerInfo/0", "signerRefId", "signer_ref_id"),
        (Flow::Esign, "/signerInfo/1", "invitationExpireTimeStamp", "invitation_expire_time_stamp"),
        (Flow::DocLocker, "", "consentText", "consent_text"),
        (Flow::EStamp, "", "apiType", "api_type"),
        (Flow::EStamp, "", "signatoriesInfo", "signatories_info"),
        (Flow::EStamp, "/document", "documentName", "document_name"),
        (Flow::EStamp, "/document", "base64FileData", "base64_file_data"),
        (Flow::EStamp, "/signatoriesInfo/0", "signType", "sign_type"),
        (Flow::EStamp, "/signatoriesInfo/0", "emailID", "email_id"),
        (Flow::Wealth, "", "consentText", "consent_text"),
    ];
    for (flow, pointer, camel, snake) in cases {
        let mut body = flow.body();
        let object = body.pointer_mut(pointer).expect("a member");
        let value = if object[camel].is_null() { object[snake].clone() } else { object[camel].clone() };
        object[camel] = value.clone();
        object[snake] = value;
        let path = pointer.trim_start_matches('/').replace("/0", "[0]").replace("/1", "[1]");
        let path = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let fields = backend.try_open_flow(flow, &body).await.refused_fields();
        assert!(fields == [path(camel)] || fields == [path(snake)], "{fields:?} for {pointer}/{camel}");
    }
    assert!(upstream.orders().is_empty());
}

#[tokio::test]
async fn an_http_or_internal_response_url_is_refused_unless_allowed() {
    let upstream = Upstream::start().await;
    let settings = [("WEBHOOKS__ALLOW_HTTP", "false"), ("WEBHOOKS__ALLOW_PRIVATE_TARGETS", "false")];
    let node = TestNode::ordering_from(&upstream, &settings).await;
    let backend = node.backend_with_credits(1).await;
    for url in ["http://client.example/hook", "https://127.0.0.1/hook", "https://[::1]/hook", "https://10.0.0.1/hook"] {
        let answer =
            backend.try_open_flow(Flow::Esign, &Flow::Esign.body_with(&[("/responseUrl", Some(json!(url)))])).await;
        assert_eq!(answer.refused_fields(), ["responseUrl"], "{url}");
    }
    assert!(upstream.orders().is_empty());
}

/// Posts a body of any format to the operation that opens a flow.
async fn post_body(backend: &Backend, flow: Flow, content_type: &str, body: impl Into<Body>) -> Answer {
    Answer::receive(backend.request(Method::POST, flow.path()).header("content-type", content_type).body(body)).await
}

#[tokio::test]
async fn a_body_that_is_no_json_object_gets_400_and_another_type_415() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(1).await;
    for flow in Flow::ALL {
        for body in
            ["", "{", "[]", "null", "\"text\"", "{\"consent\":\"Y\"}{}", "{\"consent\":\"Y\",\"consent\":\"Y\"}"]
        {
            let answer = post_body(&backend, flow, "application/json", body).await;
            assert_eq!(answer.status, 400, "{flow:?} {body}: {}", answer.text);
            answer.refusal(400);
        }
        let deep = format!("{{\"documentInfo\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000));
        assert_eq!(post_body(&backend, flow, "application/json", deep).await.status, 400, "{flow:?}");
        assert_eq!(post_body(&backend, flow, "application/json", vec![b'{', 0xff, b'}']).await.status, 400, "{flow:?}");
        let form = post_body(&backend, flow, "application/x-www-form-urlencoded", "consent=Y").await;
        assert_eq!(form.refusal(415), "unsupported_media_type", "{flow:?}");
        let get = backend.get(flow.path()).await;
        assert_eq!((get.refusal(405), get.header("allow")), ("method_not_allowed".to_owned(), Some("POST")));
    }
    assert!(upstream.orders().is_empty());
}

#[tokio::test]
async fn a_body_over_the_limit_of_its_flow_gets_413() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(1).await;
    let (with_file, without_file) = (14 << 20, 65_537);
    for (flow, too_many_bytes) in [
        (Flow::Esign, with_file),
        (Flow::EStamp, with_file),
        (Flow::DocLocker, without_file),
        (Flow::Wealth, without_file),
    ] {
        // Whitespace, so that only the length can be wrong.
        let mut body = flow.body().to_string().into_bytes();
        body.resize(too_many_bytes + 65_536, b' ');
        let chunks: Vec<_> = body.chunks(60_000).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect();
        assert_eq!(
            post_body(&backend, flow, "application/json", body).await.refusal(413),
            "body_too_large",
            "{flow:?}"
        );
        let streamed = Body::wrap_stream(futures_util::stream::iter(chunks));
        assert_eq!(
            post_body(&backend, flow, "application/json", streamed).await.refusal(413),
            "body_too_large",
            "{flow:?}"
        );
    }
    assert!(upstream.orders().is_empty());
}

#[tokio::test]
async fn announced_bodies_that_never_arrive_take_no_memory() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    let announce = async |bytes: usize| {
        let Backend { key, app, .. } = &backend;
        let headers = format!(
            "x-api-key: {key}\r\nx-api-app-id: {app}\r\ncontent-type: application/json\r\ncontent-length: {bytes}"
        );
        Raw::post(&node, Flow::EStamp.path(), &headers, b"").await
    };
    let mut connections = Vec::new();
    for _ in 0..2 * FILE_REQUEST_BYTES_HELD_MAX / FILE_REQUEST_BYTES_MAX {
        connections.push(announce(FILE_REQUEST_BYTES_MAX).await);
    }
    backend.open_flow(Flow::EStamp).await;
    assert_eq!(announce(FILE_REQUEST_BYTES_MAX + 1).await.status().await, 413, "before the body arrives");
}

#[tokio::test]
async fn every_flow_without_both_headers_gets_401() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let (backend, other) = (node.backend_with_credits(1).await, node.backend_with_credits(1).await);
    for flow in Flow::ALL {
        let bare = Answer::receive(node.http.post(node.addresses.public(flow.path())).json(&flow.body())).await;
        assert_eq!(bare.refusal(401), "unauthorized", "{flow:?}");
        let foreign = backend.with_credentials(&backend.key, &other.app);
        assert_eq!(foreign.try_open_flow(flow, &flow.body()).await.refusal(401), "unauthorized", "{flow:?}");
    }
    assert!(upstream.orders().is_empty());
}

/// Repeats a request until it is refused for its rate.
async fn assert_limited(operation: &str, mut request: impl AsyncFnMut() -> Answer) {
    for _ in 0..50 {
        let answer = request().await;
        if answer.status == 429 {
            assert_eq!(answer.refusal(429), "rate_limited", "{operation}");
            return;
        }
        assert_eq!(answer.status, 200, "{operation}: {}", answer.text);
    }
    panic!("{operation} was never limited");
}

#[tokio::test]
async fn every_order_and_poll_is_rate_limited() {
    let upstream = Upstream::start().await;
    let limits = [("LIMITS__INIT_PER_SECOND_PER_APP", "1"), ("LIMITS__POLLS_PER_SECOND_PER_APP", "1")];
    let node = TestNode::ordering_from(&upstream, &limits).await;
    for flow in Flow::ALL {
        let backend = node.backend_with_credits(0).await;
        let opened = backend.open_flow(flow).await;
        assert_limited(&format!("an order of {flow:?}"), async || backend.try_open_flow(flow, &flow.body()).await)
            .await;
        if matches!(flow, Flow::Esign | Flow::DocLocker) {
            assert_limited(&format!("a poll of {flow:?}"), async || backend.poll(&opened).await).await;
        }
    }
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    assert_limited("a QR value", async || {
        backend.post("/api/v1/nationalid-ovse/qr-intent", &json!({"txnId": opened.txn})).await
    })
    .await;
}

#[tokio::test]
async fn flows_and_inits_share_a_rate_limit() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[("LIMITS__INIT_PER_SECOND_PER_APP", "2")]).await;
    let backend = node.backend_with_credits(200).await;
    let locker_body = json!({"docs": ["driving_licence"], "consent": "Y", "consent_text": CONSENT_TEXT});
    let (wealth_body, init_body) = (Flow::Wealth.body(), json!({"claims": ["name"], "channel": "qr"}));
    let answers = assert_share_limit_of_two_per_second(|round| {
        let (backend, locker_body, wealth_body, init_body) = (&backend, &locker_body, &wealth_body, &init_body);
        async move {
            match round % 3 {
                0 => backend.try_open_flow(Flow::DocLocker, locker_body).await,
                1 => backend.try_open_flow(Flow::Wealth, wealth_body).await,
                _ => backend.init(init_body).await,
            }
        }
    })
    .await;
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 429)));
}
