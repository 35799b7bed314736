//! Bodies as the OpenAPI document describes them.

use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::limits::{FILE_CHARS_MAX, GUESTS_MAX, SIGNERS_MAX};
use serde_json::{Value, json};

use crate::Describe;
use crate::doclocker::DocLockerOutcome;
use crate::esign::EsignRequest;
use crate::events::{CreateEventRequest, PatchEventRequest};
use crate::operator::transfer::ExportedClient;
use crate::ovse::{InitRequest, OvseResult};
use crate::reports::FlowReport;
use crate::wealth::WealthConsentChange;

fn schema<T: Describe>(name: &str) -> Value {
    let mut schemas = crate::Schemas::new();
    T::collect(&mut schemas);
    schemas.remove(name).unwrap()
}

#[test]
fn bounds_are_the_limits_and_what_a_request_must_have_is_required() {
    let event = schema::<CreateEventRequest>("CreateEventRequest");
    assert_eq!(event["required"], json!(["name", "claims", "max_guests", "expires_at"]));
    assert_eq!(event["properties"]["max_guests"]["maximum"], json!(GUESTS_MAX));
    let url = json!({"type": "string", "format": "uri", "maxLength": 2048, "description": "Receives one webhook for \
        each registered guest.", "x-order": 11});
    assert_eq!(event["properties"]["webhook_url"], url);
    assert_eq!(schema::<PatchEventRequest>("PatchEventRequest").get("required"), None);
    assert_eq!(schema::<InitRequest>("InitRequest")["required"], json!(["claims", "channel"]));
}

#[test]
fn parts_have_names_and_are_referred_to() {
    let request = schema::<EsignRequest>("EsignRequest");
    let document = json!({"$ref": "#/components/schemas/SourceDocument", "description": "The document.", "x-order": 0});
    assert_eq!(request["properties"]["documentInfo"], document);
    assert_eq!(request["properties"]["signerInfo"]["maxItems"], json!(SIGNERS_MAX));
    let content = &schema::<EsignRequest>("SourceDocument")["properties"]["content"];
    assert_eq!((&content["maxLength"], &content["contentEncoding"]), (&json!(FILE_CHARS_MAX), &json!("base64")));
}

#[test]
fn a_request_has_no_other_fields_and_an_answer_may_have_more() {
    assert_eq!(schema::<InitRequest>("InitRequest")["additionalProperties"], json!(false));
    let waits = schema::<OvseResult>("OvsePendingData");
    assert_eq!(
        (&waits["properties"]["pending"]["type"], &waits["additionalProperties"]),
        (&json!("boolean"), &json!(true))
    );
    assert!(schema::<OvseResult>("OvseOutcome").get("additionalProperties").is_none());
}

#[test]
fn patterns_say_which_texts_are_read() {
    let name = &schema::<CreateEventRequest>("CreateEventRequest")["properties"]["name"];
    assert_eq!(
        name["pattern"],
        r"^[^\u0000-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]*[^\s\u0000-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb][^\u0000-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]*$"
    );
}

#[test]
fn a_list_that_a_request_may_leave_out_is_always_there_in_an_answer() {
    let request = schema::<ExportedClient>("ExportedClient");
    assert_eq!((&request["required"], &request["properties"]["apps"]["type"]), (&json!(["client"]), &json!("array")));
    let answer = schema::<WealthConsentChange>("WealthConsentChange");
    assert_eq!(answer["properties"]["accounts"]["type"], json!("array"));
    assert!(answer["required"].as_array().unwrap().contains(&json!("accounts")));
}

#[test]
fn a_report_is_described_as_its_webhook_with_the_app_and_what_may_be_null_may_be_left_out() {
    let kinds = schema::<FlowReport>("FlowReport");
    assert_eq!(kinds["anyOf"].as_array().unwrap().len(), ReportKind::ALL.len());
    let report = schema::<FlowReport>("ReportedDocLockerOutcome");
    assert_eq!(report["required"], json!(["success", "statusCode", "message", "data", "app_id"]));
    assert_eq!(report["additionalProperties"], json!(false));
    assert_eq!(schema::<FlowReport>("LockerDocument")["required"], json!(["docType", "status"]));
    let webhook = schema::<DocLockerOutcome>("DocLockerOutcome");
    assert_eq!(webhook["required"], json!(["success", "statusCode", "message", "request_id", "data"]));
}
