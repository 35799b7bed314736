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
fn a_schema_has_the_limits_and_the_required_fields() {
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
fn parts_of_a_body_are_named_schemas() {
    let request = schema::<EsignRequest>("EsignRequest");
    let document = json!({"$ref": "#/components/schemas/SourceDocument", "description": "The document.", "x-order": 0});
    assert_eq!(request["properties"]["documentInfo"], document);
    assert_eq!(request["properties"]["signerInfo"]["maxItems"], json!(SIGNERS_MAX));
    let content = &schema::<EsignRequest>("SourceDocument")["properties"]["content"];
    assert_eq!((&content["maxLength"], &content["contentEncoding"]), (&json!(FILE_CHARS_MAX), &json!("base64")));
}

#[test]
fn only_requests_forbid_further_fields() {
    assert_eq!(schema::<InitRequest>("InitRequest")["additionalProperties"], json!(false));
    let pending = schema::<OvseResult>("OvsePendingData");
    assert_eq!(
        (&pending["properties"]["pending"]["type"], &pending["additionalProperties"]),
        (&json!("boolean"), &json!(true))
    );
    assert!(schema::<OvseResult>("OvseOutcome").get("additionalProperties").is_none());
}

#[test]
fn a_pattern_states_which_texts_are_accepted() {
    let name = &schema::<CreateEventRequest>("CreateEventRequest")["properties"]["name"];
    assert_eq!(
        name["pattern"],
        r"^[^\u0000-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]*[^\s\u0000-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb][^\u0000-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]*$"
    );
}

#[test]
fn an_optional_list_is_always_present_in_a_response() {
    let request = schema::<ExportedClient>("ExportedClient");
    assert_eq!((&request["required"], &request["properties"]["apps"]["type"]), (&json!(["client"]), &json!("array")));
    let response = schema::<WealthConsentChange>("WealthConsentChange");
    assert_eq!(response["properties"]["accounts"]["type"], json!("array"));
    assert!(response["required"].as_array().unwrap().contains(&json!("accounts")));
}

#[test]
fn a_report_schema_adds_the_app_and_makes_nullable_fields_optional() {
    let kinds = schema::<FlowReport>("FlowReport");
    assert_eq!(kinds["anyOf"].as_array().unwrap().len(), ReportKind::ALL.len());
    let report = schema::<FlowReport>("ReportedDocLockerOutcome");
    assert_eq!(report["required"], json!(["success", "statusCode", "message", "data", "app_id"]));
    assert_eq!(report["additionalProperties"], json!(false));
    assert_eq!(schema::<FlowReport>("LockerDocument")["required"], json!(["docType", "status"]));
    let webhook = schema::<DocLockerOutcome>("DocLockerOutcome");
    assert_eq!(webhook["required"], json!(["success", "statusCode", "message", "request_id", "data"]));
}
