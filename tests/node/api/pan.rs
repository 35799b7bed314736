//! PAN verification through a whole node, with a source that answers as a test needs it.

use crate::in_process::InProcessNode;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Value, json};

/// What the source does when it is asked.
#[derive(Clone)]
enum Source {
    Says(Value),
    Fails(StatusCode),
    Hangs,
}

async fn answer(source: Data<Source>) -> HttpResponse {
    match &**source {
        Source::Says(body) => HttpResponse::Ok().json(body),
        Source::Fails(status) => HttpResponse::build(*status).finish(),
        Source::Hangs => std::future::pending().await,
    }
}

/// A node that asks this source, with this patience.
async fn asking(source: Source, timeout_ms: &str) -> InProcessNode {
    let source = Data::new(source);
    let server = HttpServer::new(move || App::new().app_data(source.clone()).route("/pans", web::post().to(answer)));
    let server = server.workers(1).disable_signals().bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/pans", server.addrs()[0]);
    actix_rt::spawn(server.run());
    InProcessNode::start_with(&[("upstreams.pan_url", &url), ("upstreams.timeout_ms", timeout_ms)]).await
}

const PLENTY: &str = "20000";

fn request() -> Value {
    json!({ "pan": "ABCPE1234F", "consent": "Y", "consent_text": "I agree.", "name_as_per_pan": "Asha Rao", "request_id": "req-1" })
}

async fn verified(live: &InProcessNode, body: &Value) -> (u16, Value) {
    live.post("/api/v1/pan/verify", body).await
}

fn fields(refused: &Value) -> Vec<&str> {
    refused["errors"].as_array().unwrap().iter().map(|problem| problem["field"].as_str().unwrap()).collect()
}

#[actix_rt::test]
async fn a_known_pan_is_answered_in_the_form_of_the_webhooks() {
    let known = json!({ "status": "valid", "category": "individual", "name_match": true, "nationalid_seeding_status": "y" });
    let live = asking(Source::Says(known), PLENTY).await;
    let golden: Value = serde_json::from_str(include_str!("../../../src/wire/tests/golden/pan_valid.json")).unwrap();
    assert_eq!(verified(&live, &request()).await, (200, golden.clone()));
    let camel = json!({ "pan": "abcpe1234f", "consent": "Y", "consentText": "I agree.", "nameAsPerPan": "Asha Rao", "dateOfBirth": null,
        "requestId": "req-1" });
    assert_eq!(verified(&live, &camel).await, (200, golden));
    live.stop().await;
}

#[actix_rt::test]
async fn a_pan_that_is_not_known_is_an_answer() {
    let live = asking(Source::Says(json!({ "status": "not_found" })), PLENTY).await;
    let (status, answered) = verified(&live, &request()).await;
    assert_eq!((status, &answered["success"], &answered["message"]), (200, &json!(true), &json!("PAN not found")));
    assert_eq!((&answered["data"]["status"], &answered["data"]["name_as_per_pan_match"]), (&json!("not_found"), &Value::Null));
    live.stop().await;
}

#[actix_rt::test]
async fn what_is_wrong_with_a_request_is_told_before_what_is_no_pan() {
    let live = asking(Source::Fails(StatusCode::IM_A_TEAPOT), PLENTY).await;
    let refused = async |change: Value| {
        let mut body = request();
        body.as_object_mut().unwrap().extend(change.as_object().cloned().unwrap());
        verified(&live, &body).await
    };
    for text in ["nonsense", "", " "] {
        let (status, body) = refused(json!({ "pan": text })).await;
        assert_eq!((status, &body["code"]), (422, &json!("malformed_pan")), "{text}");
        assert!(!body.to_string().contains("nonsense"), "{body}");
    }
    for (change, named) in [
        (json!({ "pan": "nonsense", "consent": "N" }), vec!["consent"]),
        (json!({ "pan": "nonsense", "shoe_size": 44 }), vec!["shoe_size"]),
        (json!({ "pan": 7 }), vec!["pan"]),
        (json!({ "pan": null }), vec!["pan"]),
        (json!({ "pan": "", "consent": "N" }), vec!["consent"]),
        (json!({ "consent_text": "I agree.\u{0}" }), vec!["consent_text"]),
        (json!({ "pan": null, "consent": null, "consent_text": " " }), vec!["consent", "consent_text", "pan"]),
        (json!({ "nameAsPerPan": "Asha" }), vec!["nameAsPerPan"]),
        (json!({ "dateOfBirth": "14-02-1990" }), vec!["dateOfBirth"]),
        (json!({ "name_as_per_pan": "x".repeat(101), "request_id": "" }), vec!["name_as_per_pan", "request_id"]),
    ] {
        let (status, body) = refused(change).await;
        let mut found = fields(&body);
        found.sort_unstable();
        assert_eq!((status, found), (400, named), "{body}");
    }
    live.stop().await;
}

#[actix_rt::test]
async fn a_source_that_fails_is_a_502_and_one_that_hangs_a_504() {
    for (source, timeout_ms, expected) in [
        (Source::Fails(StatusCode::NOT_FOUND), PLENTY, (502, "upstream_failed")),
        (Source::Says(json!({ "status": "perhaps" })), PLENTY, (502, "upstream_failed")),
        (Source::Says(json!({ "status": "valid", "more": "x".repeat(100_000) })), PLENTY, (502, "upstream_failed")),
        (Source::Hangs, "100", (504, "upstream_timed_out")),
    ] {
        let live = asking(source, timeout_ms).await;
        let (status, body) = verified(&live, &request()).await;
        assert_eq!((status, body["code"].as_str().unwrap()), expected);
        let said = body["message"].as_str().unwrap();
        assert!(said.starts_with("The source did not answer") && said.ends_with("; nothing was verified."), "{said}");
        live.stop().await;
    }
}
