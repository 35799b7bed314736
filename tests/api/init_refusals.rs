//! Bad input to init: every error names its field, and nothing is charged.

use reqwest::Method;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::INIT;
use sakshi_kit::node::TestNode;

/// Returns a valid body with these fields changed or added.
fn body_with(changes: &Value) -> Value {
    let mut body = json!({"claims": ["name"], "channel": "qr"});
    for (name, value) in changes.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn every_bad_field_gets_a_400_that_names_it_and_costs_nothing() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(10).await;
    let signature = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let long = "x".repeat(2_100);
    // Body, and the field that the error names.
    let cases = [
        (json!({"channel": "qr"}), "claims"),
        (json!({"claims": ["name"]}), "channel"),
        (body_with(&json!({"claims": []})), "claims"),
        (body_with(&json!({"claims": null})), "claims"),
        (body_with(&json!({"claims": "name"})), "claims"),
        (body_with(&json!({"claims": ["name", "shoe_size"]})), "claims[1]"),
        (body_with(&json!({"claims": ["name", "dob", "name"]})), "claims[2]"),
        (body_with(&json!({"claims": ["Name"]})), "claims[0]"),
        (body_with(&json!({"claims": ["name", 7]})), "claims[1]"),
        (body_with(&json!({"claims": ["residentName"]})), "claims[0]"),
        (body_with(&json!({"claims": ["uid"]})), "claims[0]"),
        (body_with(&json!({"channel": "fax"})), "channel"),
        (body_with(&json!({"channel": ""})), "channel"),
        (body_with(&json!({"channel": 1})), "channel"),
        (body_with(&json!({"language": "klingon"})), "language"),
        (body_with(&json!({"language": 0})), "language"),
        (body_with(&json!({"language": 24})), "language"),
        (body_with(&json!({"language": "24"})), "language"),
        (body_with(&json!({"language": -1})), "language"),
        (body_with(&json!({"language": 1.5})), "language"),
        (body_with(&json!({"language": true})), "language"),
        (body_with(&json!({"face_auth": "yes"})), "face_auth"),
        (body_with(&json!({"face_auth": 1})), "face_auth"),
        (body_with(&json!({"webhook_url": "not a url"})), "webhook_url"),
        (body_with(&json!({"webhook_url": "ftp://client.example/"})), "webhook_url"),
        (body_with(&json!({"webhook_url": "https://user:pass@client.example/"})), "webhook_url"),
        (body_with(&json!({"webhook_url": "https://client.example/#part"})), "webhook_url"),
        (body_with(&json!({"webhook_url": format!("https://client.example/{long}")})), "webhook_url"),
        (body_with(&json!({"webhook_url": ""})), "webhook_url"),
        (body_with(&json!({"redirect_url": "javascript:alert(1)"})), "redirect_url"),
        (body_with(&json!({"app_id": "com.example.bank"})), "app_id"),
        (body_with(&json!({"app_signature": signature})), "app_signature"),
        (body_with(&json!({"channel": "app", "app_id": "com.example.bank"})), "app_signature"),
        (body_with(&json!({"channel": "app", "app_signature": signature})), "app_id"),
        (
            body_with(&json!({"channel": "app", "app_id": "com.example.bank", "app_signature": "c2hvcnQ="})),
            "app_signature",
        ),
        (
            body_with(&json!({"channel": "app", "app_id": "com.example.bank", "app_signature": "not base64"})),
            "app_signature",
        ),
        (body_with(&json!({"channel": "app", "app_id": "", "app_signature": signature})), "app_id"),
        (body_with(&json!({"channel": "app", "app_id": "a;end", "app_signature": signature})), "app_id"),
        (body_with(&json!({"name_hint": ""})), "name_hint"),
        (body_with(&json!({"name_hint": long})), "name_hint"),
        (body_with(&json!({"client_reference_id": "line\nbreak"})), "client_reference_id"),
        (body_with(&json!({"request_id": "two words"})), "request_id"),
        (body_with(&json!({"shoe_size": 43})), "shoe_size"),
        (body_with(&json!({"Channel": "qr"})), "Channel"),
    ];
    for (body, field) in cases {
        let fields = backend.init(&body).await.refused_fields();
        assert!(fields.iter().any(|named| named == field), "{field} is not among {fields:?} for {body}");
    }
    assert_eq!(node.operator().balance(&backend.client).await, 10);
}

#[tokio::test]
async fn the_same_field_in_both_spellings_gets_400() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    for (snake, camel, value) in [
        ("face_auth", "faceAuth", json!(true)),
        ("webhook_url", "webhookUrl", json!("https://client.example/")),
        ("client_reference_id", "clientReferenceId", json!("a")),
    ] {
        let fields = backend.init(&body_with(&json!({snake: value, camel: value}))).await.refused_fields();
        assert!(fields == [snake] || fields == [camel], "{fields:?}");
    }
    assert_eq!(node.operator().balance(&backend.client).await, 1);
}

/// The message about a language that is not accepted.
const LANGUAGE_MESSAGE: &str = "must be english, hindi, marathi, gujarati, tamil, telugu, bengali, kannada, malayalam, \
                        punjabi, urdu, assamese, oriya or nepali, or a code from 1 to 23";
const CLAIM_MESSAGE: &str = "is not a known claim; the claims are name, local_name, photo, dob, gender, age_above_18, \
                       age_above_50, age_above_60, age_above_75, nri_status, care_of, enrolment_number, \
                       enrolment_date, credential_date, address, regional_address, building, locality, street, \
                       landmark, vtc, sub_district, district, state, pincode, po_name, mobile, masked_mobile, email, \
                       masked_email";

#[tokio::test]
async fn each_error_message_says_what_would_be_accepted() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    for (body, expected) in [
        (
            r#"{"claims":["zz"],"channel":"fax","face_auth":"x"}"#,
            vec![
                ("claims[0]", CLAIM_MESSAGE),
                ("channel", "must be web, qr or app"),
                ("face_auth", "must be true or false"),
            ],
        ),
        (r#"{"claims":["name"],"channel":"web","language":true}"#, vec![("language", LANGUAGE_MESSAGE)]),
        (r#"{"claims":["name"],"channel":"web","language":{"a":[1]}}"#, vec![("language", LANGUAGE_MESSAGE)]),
        (
            r#"{"claims":["zz",7],"channel":5,"colour":"red"}"#,
            vec![
                ("claims[0]", CLAIM_MESSAGE),
                ("claims[1]", CLAIM_MESSAGE),
                ("channel", "must be web, qr or app"),
                ("colour", "is not a field of this request"),
            ],
        ),
        (
            r#"{"claims":"name"}"#,
            vec![("claims", "must be an array of the names of claims"), ("channel", "is required")],
        ),
        (
            r#"{"claims":[],"channel":"qr","webhookUrl":7,"nameHint":"","requestId":"a b"}"#,
            vec![
                ("claims", "must name 1 to 30 claims"),
                ("webhookUrl", "must be a string"),
                ("nameHint", "must be 1 to 1024 characters without control characters"),
                ("requestId", "must be 1 to 128 visible ASCII characters"),
            ],
        ),
        (
            r#"{"claims":["name"],"channel":"app","appId":"com.a.b"}"#,
            vec![("app_signature", "is required together with app_id")],
        ),
        (
            r#"{"claims":["name"],"channel":"app","appId":7,"app_signature":7}"#,
            vec![("appId", "must be a string"), ("app_signature", "must be a string")],
        ),
        (r#"{"claims":["name"],"channel":"web","appId":"com.a.b"}"#, vec![("appId", "is only for channel app")]),
        (
            r#"{"claims":["name"],"channel":"qr","faceAuth":true,"face_auth":1,"channel":"web"}"#,
            vec![("channel", "is given more than once"), ("faceAuth", "is given as face_auth too; give one of them")],
        ),
    ] {
        let answer =
            Answer::receive(backend.request(Method::POST, INIT).header("content-type", "application/json").body(body))
                .await;
        assert_eq!(answer.refusal(400), "validation_failed", "{body}");
        let expected: Vec<Value> =
            expected.into_iter().map(|(field, message)| json!({"field": field, "message": message})).collect();
        assert_eq!(answer.json()["errors"], json!(expected), "{body}");
    }
    assert_eq!(node.operator().balance(&backend.client).await, 1);
}

#[tokio::test]
async fn all_problems_are_named_at_once() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let body = json!({"claims": ["shoe_size", "name", "hat_size"], "channel": "fax", "language": "klingon",
        "webhook_url": "nowhere"});
    let fields = backend.init(&body).await.refused_fields();
    for field in ["claims[0]", "claims[2]", "channel", "language", "webhook_url"] {
        assert!(fields.iter().any(|named| named == field), "{field} is not among {fields:?}");
    }
}

#[tokio::test]
async fn an_http_webhook_is_refused_unless_allowed() {
    let node = TestNode::start_with(&[("WEBHOOKS__ALLOW_HTTP", "false")]).await;
    let backend = node.backend_with_credits(1).await;
    let fields = backend.init(&body_with(&json!({"webhook_url": "http://client.example/"}))).await.refused_fields();
    assert_eq!(fields, ["webhook_url"]);
}
