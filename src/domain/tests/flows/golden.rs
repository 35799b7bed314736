//! What is sent, compared with files written from the specification's tables.

use std::fmt::Debug;

use sakshi_domain::flow::report::Report;
use sakshi_domain::flow::wealth_data::DataFetch;
use sakshi_domain::flow::wealth_historical::HistoricalFetch;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::pan::{Pan, PanResult, PanStatus, SeedingStatus};
use sakshi_domain::payload::doclocker::DocLockerPayload;
use sakshi_domain::payload::envelope::Answer;
use sakshi_domain::payload::esign::EsignPayload;
use sakshi_domain::payload::estamp::EStampPayload;
use sakshi_domain::payload::poll::{DocLockerPoll, EsignPoll};
use sakshi_domain::payload::wealth_consent::WealthConsentPayload;
use sakshi_domain::payload::wealth_data::WealthDataPayload;
use sakshi_domain::payload::wealth_historical::WealthHistoricalPayload;
use serde::Serialize;
use serde_json::{Value, json};

use crate::fixtures::*;

fn same(name: &str, golden: &str, sent: &impl Serialize) {
    assert_eq!(serde_json::to_value(sent).unwrap().to_string(), canonical(golden), "{name}");
}

/// The names of an object's members, in the order of a file.
fn names(json: &str) -> Vec<String> {
    let lines = json.lines().filter(|line| line.trim_start().starts_with('"'));
    lines.map(|line| line.trim_start().split('"').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn every_kind_is_sent_as_the_specification_shows_it_and_without_the_app() {
    for golden in [ESIGN_COMPLETED, ESIGN_REJECTED, ESIGN_EXPIRED] {
        let sent = esign().admit(Report::parse(&report(golden, |_| ())).unwrap()).unwrap();
        same("esign", golden, &sent);
    }
    for golden in [DOCLOCKER_FETCHED, DOCLOCKER_FAILED] {
        same("doclocker", golden, &doclocker().admit(Report::parse(&report(golden, |_| ())).unwrap()).unwrap());
    }
    for golden in [ESTAMP_COMPLETED, ESTAMP_REJECTED] {
        same("estamp", golden, &estamp().admit(Report::parse(&report(golden, |_| ())).unwrap()).unwrap());
    }
    for golden in [CONSENT_ACCEPTED, CONSENT_EXPIRING_SOON, CONSENT_REJECTED] {
        same("wealth-consent", golden, &consent().admit(Report::parse(&report(golden, |_| ())).unwrap()).unwrap());
    }
    for golden in [DATA_RAW, DATA_ANALYSED, DATA_FAILED] {
        same("wealth-data", golden, &DataFetch::admit(&consent(), Report::parse(&report(golden, |_| ())).unwrap()).unwrap());
    }
    let sent = HistoricalFetch::admit(&consent(), Report::parse(&report(HISTORICAL, |_| ())).unwrap()).unwrap();
    same("wealth-historical", HISTORICAL, &sent);
}

#[test]
fn members_come_in_the_order_of_the_specification() {
    let sent = esign().admit(Report::parse(&report(ESIGN_COMPLETED, |_| ())).unwrap()).unwrap();
    assert_eq!(names(&serde_json::to_string_pretty(&sent).unwrap()), names(ESIGN_COMPLETED));
    let sent = doclocker()
        .admit(
            Report::parse(&report(DOCLOCKER_FETCHED, |body| {
                body["data"]["docs"][0]["details"] = json!({"dob": "1990-02-14", "name": "Asha Rao"});
            }))
            .unwrap(),
        )
        .unwrap();
    let (mut sent, mut golden) = (names(&serde_json::to_string_pretty(&sent).unwrap()), names(DOCLOCKER_FETCHED));
    // The members inside `details` are the issuer's and have no order.
    for list in [&mut sent, &mut golden] {
        list.retain(|name| !["dob", "name"].contains(&name.as_str()));
    }
    assert_eq!(sent, golden);
}

#[test]
fn what_an_upstream_leaves_out_is_filled_in_from_the_flow() {
    let bare = report(DOCLOCKER_FETCHED, |body| {
        body.as_object_mut().unwrap().remove("request_id");
        body["data"]["docs"][1] = json!({"docType": "class_x_marksheet", "status": "Failed"});
    });
    same("doclocker", DOCLOCKER_FETCHED, &doclocker().admit(Report::parse(&bare).unwrap()).unwrap());
    let bare = report(ESIGN_REJECTED, |body| {
        let body = body.as_object_mut().unwrap();
        body.remove("documentReferenceId");
        body.remove("content");
    });
    same("esign", ESIGN_REJECTED, &esign().admit(Report::parse(&bare).unwrap()).unwrap());
}

#[test]
fn timestamps_with_an_offset_are_sent_in_utc() {
    let moved = report(ESIGN_COMPLETED, |body| body["signerInfo"][0]["invitationExpireTimeStamp"] = json!("2026-02-07T15:00:00+05:30"));
    same("esign", ESIGN_COMPLETED, &esign().admit(Report::parse(&moved).unwrap()).unwrap());
}

#[test]
fn polls_of_pending_flows_are_stubs_with_what_is_known_and_of_ended_ones_the_webhook() {
    let half = EsignPayload::parse(&edited(ESIGN_COMPLETED, half_signed)).unwrap();
    same("esign", include_str!("../golden/esign_poll_pending.json"), &EsignPoll::of(&half));
    let ended = EsignPayload::parse(ESIGN_COMPLETED.as_bytes()).unwrap();
    same("esign", ESIGN_COMPLETED, &EsignPoll::of(&ended));

    let id = FLOW.parse().unwrap();
    same("doclocker", include_str!("../golden/doclocker_poll_pending.json"), &DocLockerPoll::of(id, None));
    let ended = DocLockerPayload::parse(DOCLOCKER_FETCHED.as_bytes()).unwrap();
    same("doclocker", DOCLOCKER_FETCHED, &DocLockerPoll::of(id, Some(&ended)));
    let waiting = edited(DOCLOCKER_FETCHED, |body| body["data"]["docs"][1]["status"] = json!("Pending"));
    let waiting = DocLockerPayload::parse(&waiting).unwrap();
    let poll = serde_json::to_value(DocLockerPoll::of(id, Some(&waiting))).unwrap();
    assert_eq!((&poll["pending"], &poll["data"]["pending"]), (&json!(true), &json!(true)));
    assert_eq!(poll["data"]["docs"][0]["status"], "Fetched");
    assert_eq!(poll["data"]["docs"].as_array().map(Vec::len), Some(2));
    assert_eq!(poll.get("statusCode"), None::<&Value>);
}

#[test]
fn a_pan_is_answered_in_the_form_of_the_webhooks() {
    let pan = Pan::parse("ABCPE1234F").unwrap();
    let result = PanResult {
        category: pan.category(),
        status: PanStatus::Valid,
        name_as_per_pan_match: Some(true),
        date_of_birth_match: None,
        nationalid_seeding_status: Some(SeedingStatus::Linked),
        pan,
    };
    let request_id = opened().request_id;
    same("pan", include_str!("../golden/pan_valid.json"), &Answer::ok("PAN verified", &request_id, result));
}

#[test]
fn what_was_written_is_read_back_the_same() {
    fn survives<P: Serialize + PartialEq + Debug>(read: fn(&[u8]) -> Result<P, Invalid>, goldens: &[&str]) {
        for golden in goldens {
            let payload = read(golden.as_bytes()).unwrap();
            assert_eq!(read(&serde_json::to_vec(&payload).unwrap()), Ok(payload));
        }
    }
    survives(EsignPayload::parse, &[ESIGN_COMPLETED, ESIGN_REJECTED, ESIGN_EXPIRED]);
    survives(DocLockerPayload::parse, &[DOCLOCKER_FETCHED, DOCLOCKER_FAILED]);
    survives(EStampPayload::parse, &[ESTAMP_COMPLETED, ESTAMP_REJECTED]);
    survives(WealthConsentPayload::parse, &[CONSENT_ACCEPTED, CONSENT_EXPIRING_SOON, CONSENT_REJECTED]);
    survives(WealthDataPayload::parse, &[DATA_RAW, DATA_ANALYSED, DATA_FAILED]);
    survives(WealthHistoricalPayload::parse, &[HISTORICAL]);
}
