//! Validation of reports: each golden file is broken at every field.

use sakshi_domain::flow::report::Report;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{ACCOUNTS_MAX, REPORT_BYTES_MAX, REPORT_PROBLEMS_MAX, REPORT_VALUES_MAX, SIGNERS_MAX};
use sakshi_wire::doclocker::DocLockerOutcome;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::read_report;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use serde_json::{Value, json};

use crate::fixtures::*;

/// Reads a connector's body of one kind, and returns its problems; `None` if it is valid.
type Validate = fn(&[u8]) -> Option<Invalid>;

fn validate_esign(bytes: &[u8]) -> Option<Invalid> {
    read_report::<Report<EsignOutcome>>(bytes).err()
}

fn validate_doclocker(bytes: &[u8]) -> Option<Invalid> {
    read_report::<Report<DocLockerOutcome>>(bytes).err()
}

fn validate_estamp(bytes: &[u8]) -> Option<Invalid> {
    read_report::<Report<EStampOutcome>>(bytes).err()
}

fn validate_consent(bytes: &[u8]) -> Option<Invalid> {
    read_report::<Report<WealthConsentChange>>(bytes).err()
}

fn validate_data(bytes: &[u8]) -> Option<Invalid> {
    read_report::<Report<WealthDataNotice>>(bytes).err()
}

fn validate_historical(bytes: &[u8]) -> Option<Invalid> {
    read_report::<Report<WealthHistoricalNotice>>(bytes).err()
}

/// Each kind of report: its validation, its golden file, and the members that may be absent or null.
const REPORT_KINDS: [(Validate, &str, &[&str]); 8] = [
    (validate_esign, ESIGN_COMPLETED, &["documentReferenceId", "signerRefId", "rejectReason"]),
    (
        validate_doclocker,
        DOCLOCKER_FETCHED,
        &[
            "request_id",
            "data.docs[1].fetchedAt",
            "data.docs[1].dataPdf",
            "data.docs[1].issued",
            "data.docs[1].details",
        ],
    ),
    (validate_estamp, ESTAMP_COMPLETED, &["remarks"]),
    (validate_consent, CONSENT_ACCEPTED, &["userSessionId"]),
    (validate_data, DATA_RAW, &["desc", "errMsg", "errStage", "fiRequestTrigger"]),
    (validate_data, DATA_ANALYSED, &["desc", "errMsg", "errStage", "fiRequestTrigger"]),
    (
        validate_data,
        DATA_FAILED,
        &["sessionId", "accountId", "fiType", "fipId", "desc", "fiRequestTrigger", "maskedAccountNumber"],
    ),
    (validate_historical, HISTORICAL, &[]),
];

/// Collects every member of a document, by its path in errors and its JSON pointer: `docs[0].status`, `/docs/0/status`.
fn collect_members(value: &Value, path: &str, pointer: &str, members: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let pointer = format!("{pointer}/{name}");
                collect_members(value, &path, &pointer, members);
                members.push((path, pointer));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_members(item, &format!("{path}[{index}]"), &format!("{pointer}/{index}"), members);
            }
        }
        _ => {}
    }
}

/// Returns every member of a report except those inside `details`, which belong to the issuer.
fn members_of(report: &Value) -> Vec<(String, String)> {
    let mut members = Vec::new();
    collect_members(report, "", "", &mut members);
    members.retain(|(path, _)| !path.contains(".details."));
    assert!(members.len() > 8, "every golden file has more members");
    members
}

/// Replaces a member of a report, or removes it.
fn with_member(report: &Value, pointer: &str, value: Option<Value>) -> Vec<u8> {
    let mut report = report.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = report.pointer_mut(parent).unwrap();
    match (parent, value) {
        (Value::Object(object), Some(value)) => drop(object.insert(name.to_owned(), value)),
        (Value::Object(object), None) => drop(object.remove(name)),
        (other, _) => panic!("{other}"),
    }
    serde_json::to_vec(&report).unwrap()
}

/// Returns true if a problem of the field at this path was reported.
fn names_field(invalid: Option<Invalid>, path: &str) -> bool {
    invalid.is_some_and(|invalid| invalid.fields().iter().any(|problem| problem.field == path))
}

#[test]
fn every_member_that_is_not_nullable_is_required() {
    for (validate, golden, nullable) in REPORT_KINDS {
        let valid: Value = serde_json::from_slice(&connector_body(golden, unchanged)).unwrap();
        for (path, pointer) in members_of(&valid) {
            let is_nullable = nullable.iter().any(|name| path == *name || path.rsplit('.').next() == Some(name));
            for value in [None, Some(Value::Null)] {
                let invalid = validate(&with_member(&valid, &pointer, value));
                assert_eq!(names_field(invalid.clone(), &path), !is_nullable, "{path}: {invalid:?}");
            }
        }
    }
}

#[test]
fn a_member_of_another_type_is_refused_by_its_path() {
    for (validate, golden, _) in REPORT_KINDS {
        let valid: Value = serde_json::from_slice(&connector_body(golden, unchanged)).unwrap();
        for (path, pointer) in members_of(&valid) {
            let wrong_value =
                if valid.pointer(&pointer).unwrap().is_object() { json!("text") } else { json!({"an": "object"}) };
            let invalid = if path.ends_with("details") || path.ends_with("issued") || path.ends_with("AuditInfo") {
                validate(&with_member(&valid, &pointer, Some(json!("text"))))
            } else {
                validate(&with_member(&valid, &pointer, Some(wrong_value)))
            };
            assert!(names_field(invalid.clone(), &path), "{path}: {invalid:?}");
        }
    }
}

#[test]
fn values_are_not_converted_to_the_type_of_a_member() {
    for (validate, golden, field, wrong) in [
        (validate_esign as Validate, ESIGN_COMPLETED, "/signerInfo/0/nationalIdAuditInfo/yearOfBirth", json!(1990)),
        (validate_doclocker, DOCLOCKER_FETCHED, "/data/docs/0/issued/size", json!(48_211)),
        (validate_doclocker, DOCLOCKER_FETCHED, "/success", json!("true")),
        (validate_doclocker, DOCLOCKER_FETCHED, "/statusCode", json!("200")),
        (validate_doclocker, DOCLOCKER_FETCHED, "/statusCode", json!(200.5)),
        (validate_estamp, ESTAMP_COMPLETED, "/statusCode", json!(600)),
        (validate_historical, HISTORICAL, "/fromDate", json!("2020-04-01T00:00:00Z")),
        (validate_consent, CONSENT_ACCEPTED, "/consentStartDate", json!("2026-01-31T09:30:00Z")),
        (validate_esign, ESIGN_COMPLETED, "/content", json!("not Base64!")),
        (
            validate_esign,
            ESIGN_COMPLETED,
            "/signerInfo/0/invitationExpireTimeStamp",
            json!("9999-12-31T23:59:59-00:01"),
        ),
        (validate_esign, ESIGN_COMPLETED, "/signerInfo/0/invitationExpireTimeStamp", json!("2026-02-07T09:30:00")),
    ] {
        let valid = serde_json::from_slice(&connector_body(golden, unchanged)).unwrap();
        let invalid = validate(&with_member(&valid, field, Some(wrong)));
        assert!(invalid.is_some_and(|invalid| !invalid.to_string().contains("Base64!")), "{field}");
    }
}

#[test]
fn an_unknown_member_is_refused_at_every_level() {
    for (validate, golden, _) in REPORT_KINDS {
        let valid: Value = serde_json::from_slice(&connector_body(golden, unchanged)).unwrap();
        let mut objects = vec![(String::new(), String::new())];
        objects.extend(
            members_of(&valid)
                .into_iter()
                .filter(|(path, pointer)| valid.pointer(pointer).unwrap().is_object() && !path.ends_with("details")),
        );
        for (path, pointer) in objects {
            let expected = if path.is_empty() { "shoe_size".to_owned() } else { format!("{path}.shoe_size") };
            let invalid = validate(&with_member(&valid, &format!("{pointer}/shoe_size"), Some(json!(42))));
            assert!(names_field(invalid.clone(), &expected), "{expected}: {invalid:?}");
        }
    }
}

#[test]
fn an_unknown_status_is_refused_with_the_accepted_ones() {
    let cases: [(Validate, &str, &str, &str); 9] = [
        (
            validate_esign,
            ESIGN_COMPLETED,
            "/documentStatus",
            "documentStatus: must be one of Completed, Rejected, Expired, Pending",
        ),
        (
            validate_esign,
            ESIGN_COMPLETED,
            "/signerInfo/1/signerStatus",
            "signerInfo[1].signerStatus: must be one of Completed, Rejected, Expired, Pending",
        ),
        (
            validate_doclocker,
            DOCLOCKER_FETCHED,
            "/data/docs/0/status",
            "data.docs[0].status: must be one of Fetched, Pending, Failed",
        ),
        (
            validate_estamp,
            ESTAMP_COMPLETED,
            "/data/workflowStatus",
            "data.workflowStatus: must be one of Completed, Rejected, Expired, Pending",
        ),
        (
            validate_estamp,
            ESTAMP_COMPLETED,
            "/data/signatoriesInfo/0/status",
            "data.signatoriesInfo[0].status: must be one of Completed, Rejected, Expired, Pending",
        ),
        (
            validate_consent,
            CONSENT_ACCEPTED,
            "/status",
            "status: must be one of Accepted, Rejected, Revoked, Expiring Soon, Expired",
        ),
        (validate_data, DATA_RAW, "/fiDataStatus", "fiDataStatus: must be one of SUCCESS, FAILED"),
        (validate_data, DATA_RAW, "/dataType", "dataType: must be one of RAW, ANALYSED"),
        (
            validate_historical,
            HISTORICAL,
            "/status",
            "status: must be one of HISTORICAL_DATA_FETCH_SUCCESS, HISTORICAL_DATA_FETCH_PARTIAL_SUCCESS, \
                HISTORICAL_DATA_FETCH_FAILED",
        ),
    ];
    for (validate, golden, pointer, expected) in cases {
        let valid = serde_json::from_slice(&connector_body(golden, unchanged)).unwrap();
        let invalid = validate(&with_member(&valid, pointer, Some(json!("Bogus")))).unwrap();
        assert_eq!(invalid.to_string(), expected);
    }
}

#[test]
fn members_that_contradict_each_other_are_refused() {
    let cases: [(Validate, &str, &str, Value, &str); 8] = [
        (validate_esign, ESIGN_COMPLETED, "/signerInfo/1/signerStatus", json!("Pending"), "documentStatus"),
        (validate_esign, ESIGN_REJECTED, "/documentStatus", json!("Completed"), "documentStatus"),
        (validate_esign, ESIGN_REJECTED, "/content", json!("QUJD"), "content"),
        (validate_esign, ESIGN_COMPLETED, "/signerInfo/1/signerId", json!("signer-1"), "signerInfo"),
        (validate_doclocker, DOCLOCKER_FETCHED, "/success", json!(false), "success"),
        (validate_estamp, ESTAMP_REJECTED, "/success", json!(true), "success"),
        (validate_consent, CONSENT_ACCEPTED, "/consentEndDate", json!("2026-01-31 09:29:59"), "consentEndDate"),
        (validate_historical, HISTORICAL, "/toDate", json!("2020-03-31"), "toDate"),
    ];
    for (validate, golden, pointer, value, expected) in cases {
        let valid = serde_json::from_slice(&connector_body(golden, unchanged)).unwrap();
        let invalid = validate(&with_member(&valid, pointer, Some(value)));
        assert!(names_field(invalid.clone(), expected), "{pointer}: {invalid:?}");
    }
}

#[test]
fn all_problems_are_reported_together() {
    let invalid = validate_consent(
        br#"{"status": "Bogus", "accounts": [{"accountId": 7}], "x": 1, "x": 2, "consentId": "c", "consentId": "d"}"#,
    );
    let invalid_fields: Vec<String> = invalid.unwrap().fields().iter().map(|problem| problem.field.clone()).collect();
    for field in [
        "app_id",
        "uniqueIdentifier",
        "consentHandle",
        "status",
        "accounts[0].accountId",
        "accounts[0].fiType",
        "x",
        "consentId",
    ] {
        assert!(invalid_fields.iter().any(|invalid| invalid == field), "{field} in {invalid_fields:?}");
    }
}

#[test]
fn missing_empty_and_repeated_members_have_different_errors() {
    let valid: Value = serde_json::from_slice(&connector_body(CONSENT_ACCEPTED, unchanged)).unwrap();
    let too_few = format!("must hold 1 to {ACCOUNTS_MAX} objects");
    for (accounts, sentence) in [(None, "is required"), (Some(Value::Null), "is required"), (Some(json!([])), &too_few)]
    {
        let invalid = validate_consent(&with_member(&valid, "/accounts", accounts)).unwrap();
        assert_eq!(invalid.to_string(), format!("accounts: {sentence}"));
    }
    let invalid = validate_consent(valid.to_string().replacen('{', r#"{"consentId": "c", "#, 1).as_bytes()).unwrap();
    assert_eq!(invalid.to_string(), "consentId: is given twice");
}

#[test]
fn an_error_for_a_malformed_or_too_large_body_does_not_repeat_it() {
    let many = format!("[{}0]", "0,".repeat(REPORT_VALUES_MAX));
    let signers: Vec<Value> = (0..=SIGNERS_MAX).map(|_| json!({})).collect();
    let accounts: Vec<Value> = (0..=ACCOUNTS_MAX).map(|_| json!({})).collect();
    for text in [
        "",
        "{",
        "[]",
        "null",
        "\"secret\"",
        "{} {}",
        "{\"a\": secret}",
        &"[".repeat(100_000),
        &many,
        &" ".repeat(REPORT_BYTES_MAX + 1),
    ] {
        let invalid = validate_esign(text.as_bytes()).unwrap();
        assert!(invalid.fields()[0].field == "body" && !invalid.to_string().contains("secret"), "{invalid}");
        assert_eq!(invalid.to_string().contains("bytes"), text.len() > REPORT_BYTES_MAX, "{invalid}");
    }
    let mut largest = connector_body(ESIGN_COMPLETED, unchanged);
    largest.resize(REPORT_BYTES_MAX, b' ');
    assert_eq!(validate_esign(&largest), None);
    assert!(names_field(
        validate_esign(&connector_body(ESIGN_COMPLETED, |body| body["signerInfo"] = signers.into())),
        "signerInfo"
    ));
    assert!(names_field(
        validate_consent(&connector_body(CONSENT_ACCEPTED, |body| body["accounts"] = accounts.into())),
        "accounts"
    ));
    let members: serde_json::Map<String, Value> = (0..500).map(|number| (format!("x{number}"), Value::Null)).collect();
    let invalid = validate_esign(&serde_json::to_vec(&members).unwrap()).unwrap();
    assert_eq!(invalid.fields().len(), REPORT_PROBLEMS_MAX);
}

#[test]
fn details_of_a_document_are_free_form_but_bounded_and_unambiguous() {
    let validate_details = |details: &str| {
        let text = String::from_utf8(connector_body(DOCLOCKER_FETCHED, |body| {
            body["data"]["docs"][0]["details"] = json!("HERE");
        }))
        .unwrap();
        validate_doclocker(text.replace("\"HERE\"", details).as_bytes())
    };
    assert_eq!(
        validate_details(r#"{"marks": [{"subject": "Maths", "score": 91.5, "passed": true, "note": null}]}"#),
        None
    );
    let deep = format!("{}1{}", "{\"a\":".repeat(9), "}".repeat(9));
    for details in [&*deep, r#"{"a": 1, "a": 2}"#, "[]", "7"] {
        assert!(names_field(validate_details(details), "data.docs[0].details"), "{details}");
    }
}

#[test]
fn debug_output_hides_personal_data() {
    let outputs = [
        format!(
            "{:?}",
            new_esign_flow()
                .admit(read_report::<Report<EsignOutcome>>(&connector_body(ESIGN_COMPLETED, unchanged)).unwrap())
        ),
        format!(
            "{:?}",
            new_locker_flow()
                .admit(read_report::<Report<DocLockerOutcome>>(&connector_body(DOCLOCKER_FETCHED, unchanged)).unwrap())
        ),
        format!(
            "{:?}",
            new_estamp_flow()
                .admit(read_report::<Report<EStampOutcome>>(&connector_body(ESTAMP_COMPLETED, unchanged)).unwrap())
        ),
        format!(
            "{:?}",
            requested_consent().admit(
                read_report::<Report<WealthConsentChange>>(&connector_body(CONSENT_ACCEPTED, unchanged)).unwrap()
            )
        ),
    ];
    for text in outputs {
        for personal in ["Asha", "asha@", "1990", "JVBER", "XX1234", "XX5678", "560000"] {
            assert!(!text.contains(personal), "{personal} in {text}");
        }
    }
}
