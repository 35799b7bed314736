//! Requests: spellings of fields, and all problems at once, by their paths.

#![allow(unreachable_pub, reason = "body! declares structs that others use")]

use sakshi_domain::channel::Channel;
use sakshi_domain::checks::{CHECKS, Check};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::event::EventPatch;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time_zone::TimeZone;
use serde_json::json;

use super::*;
use crate::checks::CheckRequest;
use crate::events::{CreateEventRequest, PatchEventRequest};
use crate::json::Json;
use crate::operator::credits::MoveCreditsRequest;
use crate::operator::keys::{IssueKeyRequest, RotateKeyRequest};
use crate::operator::tenancy::{CreateClientRequest, PatchAppRequest};
use crate::ovse::{InitRequest, QrIntentRequest};
use crate::webhook_urls::RegisterWebhookRequest;
use crate::{UnreadableBody, body::body};

body! { request
    /// A request for tests.
    pub struct SampleRequest {
        /// A flag.
        face_auth: bool,
        /// A number.
        max_guests: Option<crate::Whole<1, 9>>,
        /// A text.
        time_zone: crate::Change<crate::Words<3>>,
        /// A part.
        host_info as "hostInfo": Option<Guest>,
        /// Parts.
        guest_info as "guestInfo": Option<crate::List<Guest, 0, 99>>,
        /// A list.
        list_of: Option<crate::List<String, 0, 99>>,
    }
    check(fields) {
        fields.refuse("list_of[2].part", "is wrong");
    }
}

body! { request
    /// A guest.
    #[derive(PartialEq)]
    pub struct Guest {
        /// The name.
        guest_name as "guestName": String,
        /// The reference.
        guest_ref_id as "guestRefId": Option<String>,
    }
}

#[test]
fn problems_are_reported_as_spelled_and_in_the_order_of_declaration() {
    for (body, expected) in [
        (
            r#"{"x": {}, "maxGuests": 0, "faceAuth": 1, "time_zone": "long", "y": 1}"#,
            vec![
                ("faceAuth", "must be true or false"),
                ("maxGuests", "must be a whole number from 1 to 9"),
                ("time_zone", "must be 1 to 3 characters without control characters"),
                ("list_of[2].part", "is wrong"),
                ("x", "is not a field of this request"),
                ("y", "is not a field of this request"),
            ],
        ),
        (
            r#"{"face_auth": null, "max_guests": 2.5, "timeZone": null, "listOf": []}"#,
            vec![
                ("face_auth", "is required"),
                ("max_guests", "must be a whole number from 1 to 9"),
                ("timeZone", "must not be null; leave it out to keep what is set"),
                ("listOf[2].part", "is wrong"),
            ],
        ),
        (
            r#"{"faceAuth": true, "face_auth": 7, "max_guests": 2, "max_guests": 3}"#,
            vec![
                ("faceAuth", "is given as face_auth too; give one of them"),
                ("max_guests", "is given more than once"),
                ("list_of[2].part", "is wrong"),
            ],
        ),
        (
            r#"{"face_auth": true, "host_info": {"guest_name": "A", "guestName": "A", "foo.bar": 1},
                "guestInfo": [{"guestName": "B"}, {"guest_name": 7, "foo": {}}, 7, {}],
                "list_of": [1, "x", null], "foo": []}"#,
            vec![
                ("host_info.guest_name", "is given as guestName too; give one of them"),
                ("host_info.foo.bar", "is not a field of this request"),
                ("guestInfo[1].guest_name", "must be a string"),
                ("guestInfo[1].foo", "is not a field of this request"),
                ("guestInfo[2]", "must be an object"),
                ("guestInfo[3].guestName", "is required"),
                ("list_of[0]", "must be a string"),
                ("list_of[2]", "must be a string"),
                ("foo", "is not a field of this request"),
            ],
        ),
        (
            r#"{"face_auth": true, "hostInfo": [], "guest_info": {}, "listOf": "x"}"#,
            vec![("hostInfo", "must be an object"), ("guest_info", "must be an array"), ("listOf", "must be an array")],
        ),
    ] {
        let expected: Vec<_> =
            expected.into_iter().map(|(field, sentence)| (field.to_owned(), sentence.to_owned())).collect();
        assert_eq!(problems::<SampleRequest>(body), expected, "{body}");
    }
    let long = "n".repeat(1_000);
    let unknown = format!(r#"{{"guestName": "A", "{long}": 1}}"#);
    assert_eq!(invalid_fields::<Guest>(&unknown), ["n".repeat(128)]);
}

#[test]
fn parts_are_read_in_either_spelling() {
    for body in [r#"{"guestName": "A", "guestRefId": "7"}"#, r#"{"guest_name": "A", "guest_ref_id": "7"}"#] {
        assert_eq!(read::<Guest>(body), Guest { guest_name: "A".to_owned(), guest_ref_id: Some("7".to_owned()) });
    }
}

#[test]
fn at_most_a_hundred_problems_are_reported() {
    let many: Vec<String> = (0..1_000).map(|number| format!(r#""x{number}": 1"#)).collect();
    assert_eq!(problems::<Guest>(&format!("{{{}}}", many.join(","))).len(), 100);
}

#[test]
fn only_an_object_is_read_and_debug_output_hides_its_values() {
    for body in ["[]", "7", "null", "\"text\"", "[[1], 2]"] {
        assert_eq!(ReceivedObject::read(body.as_bytes()).unwrap_err(), UnreadableBody::NoObject, "{body}");
    }
    assert!(matches!(ReceivedObject::read(b"{"), Err(UnreadableBody::Json(_))));
    assert!(!format!("{:?}", ReceivedObject::read(br#"{"name": "Asha"}"#).unwrap()).contains("Asha"));
}

#[test]
fn a_large_text_is_moved_out_of_the_body_without_a_copy() {
    let text = "A".repeat(1_000_000);
    let received = ReceivedObject::read(format!(r#"{{"guestName": "{text}"}}"#).as_bytes()).unwrap();
    let Json::Text(content) = &received.0[0].1 else { panic!() };
    let before = content.as_ptr();
    assert_eq!(received.into_request::<Guest>(context()).unwrap().guest_name.as_ptr(), before);
}

#[test]
fn an_init_is_read_with_any_form_of_language_and_with_defaults() {
    for language in [r#""TAMIL""#, "20", r#""20""#] {
        let body = format!(r#"{{"claims":["name"],"channel":"qr","language":{language},"faceAuth":false}}"#);
        let terms = read::<InitRequest>(&body).terms(RequestId::mint(), false);
        assert_eq!((terms.language.name(), terms.face_auth), ("tamil", false));
    }
    for more in ["", r#","language":null,"face_auth":null,"webhook_url":null,"name_hint":null,"request_id":null"#] {
        let terms = read::<InitRequest>(&format!(r#"{{"claims":["name"],"channel":"qr"{more}}}"#))
            .terms(RequestId::mint(), false);
        assert_eq!(
            (terms.language.name(), terms.face_auth, terms.webhook_url, terms.extras),
            ("english", true, None, None)
        );
    }
}

#[test]
fn optional_fields_of_an_init_are_in_the_terms() {
    let body = r#"{"claims":["name"],"channel":"qr","name_hint":"Asha","client_reference_id":"order 7","redirect_url":"https://a.example/"}"#;
    let extras = *read::<InitRequest>(body).terms(RequestId::mint(), false).extras.unwrap();
    assert_eq!((extras.name_hint.as_deref(), extras.client_reference_id.as_deref()), (Some("Asha"), Some("order 7")));
    assert_eq!(extras.redirect_url.unwrap().as_str(), "https://a.example/");
}

#[test]
fn an_init_survives_writing_and_reading() {
    let signature = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    let android = json!({"claims": ["name", "dob"], "channel": "app", "app_id": "com.example.app",
        "app_signature": signature,
        "language": 20, "face_auth": false, "redirect_url": "https://a.example/", "name_hint": "Asha",
        "request_id": "req-1"});
    for body in [android, json!({"claims": ["name"], "channel": "web"})] {
        let request: InitRequest = read(&body.to_string());
        assert_eq!(json!(request), body, "absent fields are not written");
    }
    assert_eq!(read::<InitRequest>(r#"{"claims":["name"],"channel":"app"}"#).channel.0, Channel::Ios);
}

#[test]
fn every_problem_of_a_channel_is_reported_by_its_field() {
    for (body, expected) in [
        (r#"{"claims":["zz"],"channel":"fax","face_auth":"x"}"#, &["claims[0]", "channel", "face_auth"][..]),
        (r#"{"claims":["name"],"channel":"app","appId":"com.a.b"}"#, &["app_signature"]),
        (r#"{"claims":["name"],"channel":"app","appId":7,"app_signature":7}"#, &["appId", "app_signature"]),
        (r#"{"claims":[],"channel":"web","appId":"com.a.b"}"#, &["claims", "appId"]),
        (r#"{"claims":["name"],"channel":7}"#, &["channel"]),
        (r#"{"claims":["name"],"channel":"app","app_id":"","app_signature":"x"}"#, &["app_id", "app_signature"]),
    ] {
        assert_eq!(invalid_fields::<InitRequest>(body), expected, "{body}");
    }
}

#[test]
fn a_qr_intent_request_names_its_transaction() {
    let id = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
    for body in [json!({"txnId": id}), json!({"txn_id": id})] {
        assert_eq!(read::<QrIntentRequest>(&body.to_string()).txn_id.to_string(), id);
    }
    assert_eq!(invalid_fields::<QrIntentRequest>(r#"{"txnId": 7}"#), ["txnId"]);
}

#[test]
fn all_problems_of_an_event_are_reported_together() {
    let body = r#"{"name":"","claims":["shoe"],"language":"klingon","max_guests":0,"expires_at":"2020-01-01T00:00:00Z","webhook_url":"x"}"#;
    let expected = ["name", "claims[0]", "language", "max_guests", "expires_at", "webhook_url"];
    assert_eq!(invalid_fields::<CreateEventRequest>(body), expected);
    assert_eq!(invalid_fields::<CreateEventRequest>("{}"), ["name", "claims", "max_guests", "expires_at"]);
    let valid = json!({"name": "Fair", "claims": ["name"], "max_guests": 9, "expires_at": "2026-02-01T00:00:00.000Z"});
    let event: CreateEventRequest = read(&valid.to_string());
    assert_eq!(json!(event), valid);
    assert_eq!(event.terms(TimeZone::INDIA).claims, ClaimSet::parse(&["name"]).unwrap());
}

#[test]
fn in_a_change_absent_means_unchanged_and_null_removes() {
    assert_eq!(read::<PatchEventRequest>("{}").patch(), EventPatch::default());
    assert_eq!(json!(PatchEventRequest::default()), json!({}));
    let removal: PatchEventRequest = read(r#"{"webhook_url":null}"#);
    assert_eq!((json!(removal), removal.patch().webhook_url), (json!({"webhook_url": null}), Some(None)));
    let nulls = r#"{"name":null,"max_guests":null,"is_active":null,"expires_at":null}"#;
    assert_eq!(invalid_fields::<PatchEventRequest>(nulls), ["is_active", "max_guests", "expires_at", "name"]);
    let patch =
        read::<PatchEventRequest>(r#"{"maxGuests":12,"expiresAt":"2026-12-31T00:00:00Z","isActive":false}"#).patch();
    assert_eq!((patch.max_guests.unwrap().get(), patch.is_active), (12, Some(false)));
    assert_eq!(invalid_fields::<PatchEventRequest>(r#"{"cap":1}"#), ["cap"]);
}

#[test]
fn a_later_problem_is_reported_in_the_spelling_of_the_request() {
    let received = ReceivedObject::read(br#"{"maxGuests": 1, "name": "x"}"#).unwrap();
    let (_, spellings) = received.into_request_with_spellings::<PatchEventRequest>(context()).unwrap();
    let later = sakshi_domain::invalid::Invalid::one("max_guests", "is too low");
    assert_eq!(spellings.translate(&later).fields()[0].field, "maxGuests");
}

#[test]
fn a_webhook_url_is_registered_or_removed_in_either_spelling() {
    for (api, url) in [("apiType", "webhookUrl"), ("api_type", "webhook_url")] {
        let request: RegisterWebhookRequest =
            read(&json!({ api: "ESign", url: "https://client.example/hook" }).to_string());
        assert_eq!(
            (request.api_type, request.webhook_url.0.unwrap().as_str()),
            (ApiType::ESign, "https://client.example/hook")
        );
        let removal: RegisterWebhookRequest = read(&json!({ api: "DocLocker", url: null }).to_string());
        assert_eq!(json!(removal), json!({"apiType": "DocLocker", "webhookUrl": null}));
    }
    let (kinds, required) =
        ("must be one of ESign, DocLocker, RegistryEStamp, PhysicalEStamp", "is required; null removes the URL");
    for (body, expected) in [
        (json!({}), vec![("apiType", "is required"), ("webhookUrl", required)]),
        (
            json!({"apiType": "OVSE", "webhookUrl": "http://client.example/"}),
            vec![("apiType", kinds), ("webhookUrl", "must be an https URL")],
        ),
        (
            json!({"apiType": 1, "webhook_url": ""}),
            vec![("apiType", "must be a string"), ("webhook_url", "must be an absolute URL")],
        ),
        (json!({"apiType": "ESign", "webhookUrl": "https://127.0.0.1/"}), vec![("webhookUrl", "must not be internal")]),
        (json!({"apiType": "ESign", "webhookUrl": null, "url": null}), vec![("url", "is not a field of this request")]),
        (
            json!({"apiType": "ESign", "webhookUrl": null, "webhook_url": null}),
            vec![("webhookUrl", "is given as webhook_url too; give one of them")],
        ),
    ] {
        let expected: Vec<_> =
            expected.into_iter().map(|(field, sentence)| (field.to_owned(), sentence.to_owned())).collect();
        assert_eq!(problems::<RegisterWebhookRequest>(&body.to_string()), expected, "{body}");
    }
}

#[test]
fn a_malformed_number_is_reported_only_if_the_rest_is_valid() {
    let read = |check: &'static Check, body: &str| {
        CheckRequest::read(check, ReceivedObject::read(body.as_bytes()).unwrap(), context())
    };
    let invalid_fields = |check: &'static Check, body: &str| -> Vec<String> {
        read(check, body).unwrap_err().fields().iter().map(|problem| problem.field.to_string()).collect()
    };
    for check in CHECKS {
        let request = |number: &str, consent: &str| -> String {
            let mut body: serde_json::Map<_, _> =
                check.numbers.iter().map(|form| (form.field.into(), number.into())).collect();
            if check.needs_consent {
                body.extend([("consent".into(), consent.into()), ("consentText".into(), "I agree.".into())]);
            }
            json!(body).to_string()
        };
        for wrong in ["nonsense", ""] {
            assert_eq!(read(check, &request(wrong, "Y")).unwrap().query().unwrap_err(), &check.numbers[0]);
        }
        let mut missing: Vec<&str> = check.numbers.iter().map(|form| form.field).collect();
        if check.needs_consent {
            assert_eq!(invalid_fields(check, &request("nonsense", "N")), ["consent"]);
            missing.extend(["consent", "consent_text"]);
        }
        assert_eq!(invalid_fields(check, "{}"), missing);
        assert_eq!(invalid_fields(check, &request("nonsense", "Y").replacen('{', r#"{"colour":1,"#, 1)), ["colour"]);
        assert!(!format!("{:?}", read(check, &request("secret", "Y"))).contains("secret"));
    }
    let pan = &CHECKS[0];
    let with_birth = r#"{"pan":"abcpe1234f","consent":"Y","consentText":"I agree.","date_of_birth":"1990-01-31"}"#;
    let query = read(pan, with_birth).unwrap().query().unwrap();
    assert_eq!(
        (query.numbers[0].as_str(), query.compared[1].as_ref().map(|day| day.as_str())),
        ("ABCPE1234F", Some("1990-01-31"))
    );
    assert_eq!(
        invalid_fields(pan, r#"{"name_as_per_pan":" ","dateOfBirth":7}"#),
        ["pan", "consent", "consent_text", "name_as_per_pan", "dateOfBirth"]
    );
}

#[test]
fn every_problem_of_an_operators_request_is_reported_by_its_field() {
    assert_eq!(read::<CreateClientRequest>(r#"{"name": " Bank "}"#).name.0.0, "Bank");
    assert_eq!(invalid_fields::<CreateClientRequest>(r#"{"name": "  "}"#), ["name"]);
    let patch = read::<PatchAppRequest>(r#"{"payloadSpelling": "camelCase", "data_webhook_url": null}"#).patch();
    assert_eq!((patch.data_webhook_url, patch.consent_webhook_url), (Some(None), None));
    let spelling = problems::<PatchAppRequest>(r#"{"payload_spelling": 7}"#);
    assert_eq!(spelling[0].1, "must be snake_case or camelCase");
    let key = r#"{"label": "", "environments": ["stage", "moon", 7], "expires_at": "2025-12-31T00:00:00Z"}"#;
    assert_eq!(invalid_fields::<IssueKeyRequest>(key), ["label", "environments[1]", "environments[2]", "expires_at"]);
    assert_eq!(invalid_fields::<IssueKeyRequest>(r#"{"environments": []}"#), ["environments"]);
    assert_eq!(read::<IssueKeyRequest>(r#"{"environments": ["stage"]}"#).environments.unwrap().0.len(), 1);
    assert_eq!(invalid_fields::<RotateKeyRequest>(r#"{"overlap_s": -1}"#), ["overlap_s"]);
    for (body, expected) in [
        (json!({"amount": 5, "reference": "a"}), &[][..]),
        (json!({"kind": "adjust", "amount": -5, "reference": "a"}), &[]),
        (json!({"amount": -5, "reference": "a"}), &["amount"]),
        (json!({"kind": "debit", "amount": -5, "reference": ""}), &["kind", "amount", "reference"]),
        (json!({"kind": "adjust", "amount": 0, "reference": "a"}), &["amount"]),
        (json!({"kind": "adjust", "amount": 1_000_000_000_001_u64, "reference": "a"}), &["amount"]),
    ] {
        assert_eq!(invalid_fields::<MoveCreditsRequest>(&body.to_string()), expected, "{body}");
    }
}
