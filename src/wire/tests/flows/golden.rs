//! Serialised payloads, compared with golden files made from the specification's tables.

use std::fmt::Debug;

use sakshi_domain::checks::{Check, CheckQuery, CheckStatus, DetailValue};
use sakshi_domain::flow::report::Report;
use sakshi_domain::flow::text::Text;
use sakshi_wire::Body;
use sakshi_wire::checks::CheckAnswer;
use sakshi_wire::doclocker::{DocLockerDetails, DocLockerOutcome};
use sakshi_wire::esign::{EsignOutcome, EsignStatus};
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::read_report;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use serde::Serialize;
use serde_json::{Value, json};

use crate::fixtures::*;

/// Checks that a payload serialises as its golden file.
fn assert_same(name: &str, golden: &str, payload: &impl Serialize) {
    assert_eq!(serde_json::to_value(payload).unwrap().to_string(), canonical(golden), "{name}");
}

/// Returns the names of all members in an indented JSON text, in their order.
fn member_names(json: &str) -> Vec<String> {
    let lines = json.lines().filter(|line| line.trim_start().starts_with('"'));
    lines.map(|line| line.trim_start().split('"').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn every_payload_is_sent_as_specified_and_without_the_app() {
    for golden in [ESIGN_COMPLETED, ESIGN_REJECTED, ESIGN_EXPIRED] {
        let sent = new_esign_flow()
            .admit(read_report::<Report<EsignOutcome>>(&connector_body(golden, unchanged)).unwrap())
            .unwrap();
        assert_same("esign", golden, &sent);
    }
    for golden in [DOCLOCKER_FETCHED, DOCLOCKER_FAILED] {
        assert_same(
            "doclocker",
            golden,
            &new_locker_flow()
                .admit(read_report::<Report<DocLockerOutcome>>(&connector_body(golden, unchanged)).unwrap())
                .unwrap(),
        );
    }
    for golden in [ESTAMP_COMPLETED, ESTAMP_REJECTED] {
        assert_same(
            "estamp",
            golden,
            &new_estamp_flow()
                .admit(read_report::<Report<EStampOutcome>>(&connector_body(golden, unchanged)).unwrap())
                .unwrap(),
        );
    }
    for golden in [CONSENT_ACCEPTED, CONSENT_EXPIRING_SOON, CONSENT_REJECTED] {
        assert_same(
            "wealth-consent",
            golden,
            &requested_consent()
                .admit(read_report::<Report<WealthConsentChange>>(&connector_body(golden, unchanged)).unwrap())
                .unwrap(),
        );
    }
    for golden in [DATA_RAW, DATA_ANALYSED, DATA_FAILED] {
        assert_same(
            "wealth-data",
            golden,
            &requested_consent()
                .admit(read_report::<Report<WealthDataNotice>>(&connector_body(golden, unchanged)).unwrap())
                .unwrap(),
        );
    }
    let sent = requested_consent()
        .admit(read_report::<Report<WealthHistoricalNotice>>(&connector_body(HISTORICAL, unchanged)).unwrap())
        .unwrap();
    assert_same("wealth-historical", HISTORICAL, &sent);
}

#[test]
fn members_are_in_the_order_of_the_specification() {
    let sent = new_esign_flow()
        .admit(read_report::<Report<EsignOutcome>>(&connector_body(ESIGN_COMPLETED, unchanged)).unwrap())
        .unwrap();
    assert_eq!(member_names(&serde_json::to_string_pretty(&sent).unwrap()), member_names(ESIGN_COMPLETED));
    let sent = new_locker_flow()
        .admit(
            read_report::<Report<DocLockerOutcome>>(&connector_body(DOCLOCKER_FETCHED, |body| {
                body["data"]["docs"][0]["details"] = json!({"dob": "1990-02-14", "name": "Asha Rao"});
            }))
            .unwrap(),
        )
        .unwrap();
    let (mut sent, mut golden) =
        (member_names(&serde_json::to_string_pretty(&sent).unwrap()), member_names(DOCLOCKER_FETCHED));
    // The members inside `details` belong to the issuer and have no order.
    for list in [&mut sent, &mut golden] {
        list.retain(|name| !["dob", "name"].contains(&name.as_str()));
    }
    assert_eq!(sent, golden);
}

#[test]
fn fields_that_an_upstream_leaves_out_are_filled_in_from_the_flow() {
    let bare = connector_body(DOCLOCKER_FETCHED, |body| {
        body.as_object_mut().unwrap().remove("request_id");
        body["data"]["docs"][1] = json!({"docType": "class_x_marksheet", "status": "Failed"});
    });
    assert_same(
        "doclocker",
        DOCLOCKER_FETCHED,
        &new_locker_flow().admit(read_report::<Report<DocLockerOutcome>>(&bare).unwrap()).unwrap(),
    );
    let bare = connector_body(ESIGN_REJECTED, |body| {
        let body = body.as_object_mut().unwrap();
        body.remove("documentReferenceId");
        body.remove("content");
        body["signerInfo"][0].as_object_mut().unwrap().remove("signerRefId");
        body["signerInfo"][1]["signerRefId"] = Value::Null;
    });
    assert_same(
        "esign",
        ESIGN_REJECTED,
        &new_esign_flow().admit(read_report::<Report<EsignOutcome>>(&bare).unwrap()).unwrap(),
    );
}

#[test]
fn timestamps_with_an_offset_are_sent_in_utc() {
    let moved = connector_body(ESIGN_COMPLETED, |body| {
        body["signerInfo"][0]["invitationExpireTimeStamp"] = json!("2026-02-07T15:00:00+05:30");
    });
    assert_same(
        "esign",
        ESIGN_COMPLETED,
        &new_esign_flow().admit(read_report::<Report<EsignOutcome>>(&moved).unwrap()).unwrap(),
    );
}

#[test]
fn a_poll_returns_the_webhook_body_once_the_flow_has_ended() {
    let half_signed = read_report::<EsignOutcome>(&edited(ESIGN_COMPLETED, half_signed)).unwrap();
    assert_same("esign", include_str!("../golden/esign_poll_pending.json"), &EsignStatus::from(half_signed));
    let ended = read_report::<EsignOutcome>(ESIGN_COMPLETED.as_bytes()).unwrap();
    assert_same("esign", ESIGN_COMPLETED, &EsignStatus::from(ended));

    let id = FLOW_ID.parse().unwrap();
    assert_same("doclocker", include_str!("../golden/doclocker_poll_pending.json"), &DocLockerDetails::new(id, None));
    let ended = read_report::<DocLockerOutcome>(DOCLOCKER_FETCHED.as_bytes()).unwrap();
    assert_same("doclocker", DOCLOCKER_FETCHED, &DocLockerDetails::new(id, Some(ended)));
    let waiting = edited(DOCLOCKER_FETCHED, |body| body["data"]["docs"][1]["status"] = json!("Pending"));
    let waiting = read_report::<DocLockerOutcome>(&waiting).unwrap();
    let poll = serde_json::to_value(DocLockerDetails::new(id, Some(waiting))).unwrap();
    assert_eq!((&poll["pending"], &poll["data"]["pending"]), (&json!(true), &json!(true)));
    assert_eq!(poll["data"]["docs"][0]["status"], "Fetched");
    assert_eq!(poll["data"]["docs"].as_array().map(Vec::len), Some(2));
    assert_eq!(poll.get("statusCode"), None::<&Value>);
}

#[test]
fn a_pan_response_matches_its_golden_file() {
    let check = Check::named("pan").unwrap();
    let text = |text| Some(DetailValue::Text(Text::parse(text).unwrap()));
    let query = CheckQuery {
        check,
        numbers: vec![check.numbers[0].parse("ABCPE1234F").unwrap()],
        consent: None,
        compared: vec![None, None],
    };
    let mut result = query.with_status(CheckStatus::Valid);
    result.details = vec![text("individual"), Some(DetailValue::Match(true)), None, text("y")];
    assert_same("pan", include_str!("../golden/pan_valid.json"), &CheckAnswer::new(flow_header().request_id, result));
}

#[test]
fn payloads_survive_writing_and_reading() {
    fn survives<P: Body + Serialize + PartialEq + Debug>(goldens: &[&str]) {
        for golden in goldens {
            let payload: P = read_report(golden.as_bytes()).unwrap();
            assert_eq!(read_report(&serde_json::to_vec(&payload).unwrap()), Ok(payload));
        }
    }
    survives::<EsignOutcome>(&[ESIGN_COMPLETED, ESIGN_REJECTED, ESIGN_EXPIRED]);
    survives::<DocLockerOutcome>(&[DOCLOCKER_FETCHED, DOCLOCKER_FAILED]);
    survives::<EStampOutcome>(&[ESTAMP_COMPLETED, ESTAMP_REJECTED]);
    survives::<WealthConsentChange>(&[CONSENT_ACCEPTED, CONSENT_EXPIRING_SOON, CONSENT_REJECTED]);
    survives::<WealthDataNotice>(&[DATA_RAW, DATA_ANALYSED, DATA_FAILED]);
    survives::<WealthHistoricalNotice>(&[HISTORICAL]);
}
