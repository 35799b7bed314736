//! PAN verification with an immediate response (specification, "Other shown endpoints").

use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::flow_fixture::FlowFixture;
use sakshi_kit::goldens::PAN_VALID;
use sakshi_kit::upstream::{TOKEN, UpstreamBehaviour};

use crate::limits::assert_share_limit_of_two_per_second;

const PATH: &str = "/api/v1/pan/verify";
const PAN: &str = "ABCPE1234F";
const CONSENT_TEXT: &str = "I agree that my PAN is verified by Example Bank.";

fn valid_body() -> Value {
    json!({"pan": PAN, "consent": "Y", "consent_text": CONSENT_TEXT})
}

/// Returns the valid body with one member changed or added.
fn body_with(member: &str, value: Value) -> Value {
    let mut body = valid_body();
    body[member] = value;
    body
}

/// Requests a check, under a fixed request id.
async fn verify(backend: &Backend, body: &Value) -> Answer {
    backend.secrets.watch_for_personal_data(body);
    Answer::receive(backend.request(Method::POST, PATH).header("X-Request-ID", "req-1").json(body)).await
}

#[tokio::test]
async fn a_pan_is_verified_at_its_source_and_returned_in_the_golden_form() {
    let fixture = FlowFixture::start().await;
    let golden: Value = serde_json::from_str(PAN_VALID).expect("JSON");
    let answer = verify(&fixture.backend, &body_with("name_as_per_pan", json!("Asha Rao"))).await;
    assert_eq!(answer.ok(), golden);
    let order = fixture.upstream.last_order();
    assert_eq!(order.body, json!({"pan": PAN, "consent_text": CONSENT_TEXT, "name": "Asha Rao"}));
    assert_eq!(
        (order.flow.as_str(), &order.headers["authorization"]),
        ("pan", &format!("Bearer {TOKEN}").parse().expect("a header"))
    );

    fixture
        .upstream
        .set_behaviour(UpstreamBehaviour::Body(json!({"status": "valid", "date_of_birth_match": false}).to_string()));
    let answer = verify(&fixture.backend, &body_with("dateOfBirth", json!("1990-02-14"))).await.ok();
    assert_eq!(
        (&answer["data"]["date_of_birth_match"], &answer["data"]["name_as_per_pan_match"]),
        (&json!(false), &Value::Null)
    );
    assert_eq!(
        fixture.upstream.last_order().body,
        json!({"pan": PAN, "consent_text": CONSENT_TEXT, "date_of_birth": "1990-02-14"})
    );
    assert_eq!(fixture.node.operator().balance(&fixture.backend.client).await, 0, "a check costs no credit");
}

#[tokio::test]
async fn lower_case_pans_and_both_spellings_of_members_give_the_same_query() {
    let fixture = FlowFixture::start().await;
    let camel = json!({"pan": "abcpe1234f", "consent": "Y", "consentText": CONSENT_TEXT, "nameAsPerPan": "Asha Rao",
        "dateOfBirth": null,
        "requestId": "req-1"});
    fixture.backend.secrets.watch_for_personal_data(&camel);
    let answer = fixture.backend.post(PATH, &camel).await.ok();
    assert_eq!(answer, serde_json::from_str::<Value>(PAN_VALID).expect("JSON"));
    assert_eq!(fixture.upstream.last_order().body["pan"], PAN);
}

#[tokio::test]
async fn a_malformed_pan_gets_422_without_a_request_to_the_source() {
    let fixture = FlowFixture::start().await;
    for pan in ["", " "] {
        assert_eq!(verify(&fixture.backend, &body_with("pan", json!(pan))).await.refusal(422), "malformed_pan");
    }
    for pan in
        ["QWRPE1234", "QWRPE1234FX", "QWRPE12345", "1WRPE1234F", "QWRPE12E4F", "QWRPE 234F", "ÀWRPE1234", "no number"]
    {
        let answer = verify(&fixture.backend, &body_with("pan", json!(pan))).await;
        answer.refusal(422);
        assert!(!answer.text.contains(pan), "{}", answer.text);
    }
    assert!(fixture.upstream.orders().is_empty());
}

#[tokio::test]
async fn bad_fields_get_a_400_before_a_malformed_pan_gets_422() {
    let fixture = FlowFixture::start().await;
    let mut without_pan = valid_body();
    without_pan.as_object_mut().expect("an object").remove("pan");
    // Body, and the field that the error names.
    let cases = [
        (without_pan, "pan"),
        (body_with("pan", json!(7)), "pan"),
        (body_with("pan", Value::Null), "pan"),
        (body_with("consent", json!("N")), "consent"),
        (body_with("consent", json!("y")), "consent"),
        (body_with("consent", json!(true)), "consent"),
        (body_with("consent_text", json!("")), "consent_text"),
        (body_with("consent_text", json!(" ")), "consent_text"),
        (body_with("consent_text", json!("I agree.\u{0}")), "consent_text"),
        (body_with("consent_text", json!("x".repeat(4_097))), "consent_text"),
        (body_with("name_as_per_pan", json!("")), "name_as_per_pan"),
        (body_with("name_as_per_pan", json!("x".repeat(101))), "name_as_per_pan"),
        (body_with("date_of_birth", json!("14-02-1990")), "date_of_birth"),
        (body_with("date_of_birth", json!("1990-02-30")), "date_of_birth"),
        (body_with("dateOfBirth", json!("14-02-1990")), "dateOfBirth"),
        (body_with("request_id", json!("")), "request_id"),
        (json!({"pan": "not a pan", "consent": "Y", "consent_text": CONSENT_TEXT, "colour": "red"}), "colour"),
        (json!({"pan": "", "consent": "N", "consent_text": CONSENT_TEXT}), "consent"),
        (body_with("colour", json!("red")), "colour"),
        (json!({"pan": "not a pan", "consent": "N", "consent_text": CONSENT_TEXT}), "consent"),
    ];
    for (body, field) in cases {
        assert_eq!(verify(&fixture.backend, &body).await.refused_fields(), [field], "{body}");
    }
    let mut problems =
        verify(&fixture.backend, &json!({"pan": null, "consent": null, "consent_text": " "})).await.refused_fields();
    problems.sort_unstable();
    assert_eq!(problems, ["consent", "consent_text", "pan"]);
    for (snake, camel) in
        [("consent_text", "consentText"), ("name_as_per_pan", "nameAsPerPan"), ("date_of_birth", "dateOfBirth")]
    {
        let mut body = body_with(snake, json!("1990-02-14"));
        body[camel] = json!("1990-02-14");
        let fields = verify(&fixture.backend, &body).await.refused_fields();
        assert!(fields == [snake] || fields == [camel], "{fields:?}");
    }
    assert!(fixture.upstream.orders().is_empty());
}

#[tokio::test]
async fn an_unknown_or_invalid_pan_is_a_result_and_not_an_error() {
    let fixture = FlowFixture::start().await;
    for (status, message) in [("not_found", Some("PAN not found")), ("invalid", None)] {
        fixture.upstream.set_behaviour(UpstreamBehaviour::Body(json!({"status": status}).to_string()));
        let answer = verify(&fixture.backend, &valid_body()).await.ok();
        assert_eq!((&answer["data"]["pan"], &answer["data"]["status"]), (&json!(PAN), &json!(status)), "{answer}");
        assert_eq!((&answer["statusCode"], &answer["success"]), (&json!(200), &json!(true)), "{answer}");
        assert!(message.is_none_or(|message| answer["message"] == message), "{answer}");
        assert_eq!(
            (&answer["data"]["name_as_per_pan_match"], &answer["data"]["nationalid_seeding_status"]),
            (&Value::Null, &Value::Null)
        );
    }
}

/// Checks that the error says that the source has verified nothing.
fn assert_not_verified(answer: &Answer) {
    let body = answer.json();
    let message = body["message"].as_str().expect("a message");
    assert!(message.starts_with("The source ") && message.ends_with(". Nothing was verified."), "{message}");
}

#[tokio::test]
async fn a_failed_source_gives_502_and_a_slow_source_504() {
    let mut fixture = FlowFixture::start().await;
    for behaviour in [
        UpstreamBehaviour::Status(500),
        UpstreamBehaviour::Status(404),
        UpstreamBehaviour::Status(204),
        UpstreamBehaviour::Body(String::new()),
        UpstreamBehaviour::Body("{}".to_owned()),
        UpstreamBehaviour::Body(json!({"status": "perhaps"}).to_string()),
        UpstreamBehaviour::Body(json!({"status": "valid", "name_match": "yes"}).to_string()),
        UpstreamBehaviour::Body(json!({"status": "valid", "more": "x".repeat(100_000)}).to_string()),
        UpstreamBehaviour::Drop,
    ] {
        fixture.upstream.set_behaviour(behaviour.clone());
        let answer = verify(&fixture.backend, &valid_body()).await;
        assert_eq!(answer.refusal(502), "upstream_failed", "{behaviour:?}");
        assert!(!answer.text.contains(PAN), "{}", answer.text);
        assert_not_verified(&answer);
    }
    // Only now, because a busy machine may take longer for an answer.
    fixture.node.set("UPSTREAMS__TIMEOUT_MS", "400");
    fixture.node.restart().await;
    fixture.upstream.set_behaviour(UpstreamBehaviour::Hang);
    let started = std::time::Instant::now();
    let timed_out = verify(&fixture.backend, &valid_body()).await;
    assert_eq!(timed_out.refusal(504), "upstream_timed_out");
    assert_not_verified(&timed_out);
    assert_within(started.elapsed(), Duration::from_secs(5), "the timeout of a source");
    fixture.upstream.set_behaviour(UpstreamBehaviour::Accept);
    let verified = eventually("an answer in time", TIMEOUT, || async {
        let answer = verify(&fixture.backend, &valid_body()).await;
        (answer.status != 504).then_some(answer)
    });
    verified.await.ok();
}

#[tokio::test]
async fn pan_checks_share_the_rate_limit_of_inits_and_require_both_headers() {
    let fixture = FlowFixture::start_with(&[("LIMITS__INIT_PER_SECOND_PER_APP", "2")]).await;
    let bare = fixture.node.http.post(fixture.node.addresses.public(PATH)).json(&valid_body());
    assert_eq!(Answer::receive(bare).await.refusal(401), "unauthorized");
    fixture.node.operator().grant(&fixture.backend.client, 60, "for the inits").await;
    let init_body = json!({"claims": ["name"], "channel": "qr"});
    let answers = assert_share_limit_of_two_per_second(|round| {
        let (backend, init_body) = (&fixture.backend, &init_body);
        async move { if round % 2 == 0 { verify(backend, &valid_body()).await } else { backend.init(init_body).await } }
    })
    .await;
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 429)));
    let verified = answers.iter().step_by(2).filter(|answer| answer.status == 200).count();
    assert_eq!(fixture.upstream.orders().len(), verified);
}
