//! Accepted credentials, and the claims selected from them.

use sakshi_domain::claims::Claim;
use sakshi_domain::transaction::Answer;
use serde_json::json;

use super::fixture::valid_disclosures;
use super::{Fixture, digest_of, disclosure};
use crate::sdjwt::minimise;

#[test]
fn a_valid_credential_is_accepted_and_normalised() {
    let fixture = Fixture::new();
    let verified = fixture.verify(&fixture.credential()).unwrap();
    let expected = json!({"residentName": "Asha Rao", "dob": "1990-02-28", "gender": "F"});
    assert_eq!(json!(verified.claims.as_map()), expected);
    assert!(verified.missing.is_empty() && !verified.holder_bound);
    assert!(!format!("{verified:?}").contains("Asha"));
}

#[test]
fn both_types_and_both_spellings_of_the_hash_algorithm_are_accepted() {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    for (typ, algorithm) in [("vc+sd-jwt", Some("sha-256")), ("dc+sd-jwt", Some("SHA-256")), ("dc+sd-jwt", None)] {
        let (mut header, mut payload) = (fixture.header(), fixture.payload(&disclosures));
        header["typ"] = typ.into();
        match algorithm {
            Some(name) => payload["_sd_alg"] = name.into(),
            None => drop(payload.as_object_mut().unwrap().remove("_sd_alg")),
        }
        assert!(fixture.verify(&fixture.issue(&header, &payload, &disclosures)).is_ok());
    }
}

#[test]
fn an_undisclosed_requested_claim_is_missing_but_no_refusal() {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let credential = fixture.issue_payload(&fixture.payload(&disclosures), &disclosures[..1]);
    let verified = fixture.verify(&credential).unwrap();
    assert_eq!(verified.missing, [Claim::Dob, Claim::Gender].into_iter().collect());
    let Answer::Credential { claims, missing, .. } = verified.into_answer() else { panic!("a credential") };
    assert_eq!((claims.as_map().len(), missing.iter().count()), (1, 2));
}

#[test]
fn claims_that_were_not_requested_are_dropped() {
    let mut fixture = Fixture::new();
    fixture.requested = [Claim::Gender].into_iter().collect();
    let disclosures = [valid_disclosures(), vec![disclosure(&json!(["s", "UID", "999941057058"]))]].concat();
    let verified = fixture.verify(&fixture.issue_payload(&fixture.payload(&disclosures), &disclosures)).unwrap();
    assert_eq!(json!(verified.claims.as_map()), json!({"gender": "F"}));
}

#[test]
fn disclosures_may_be_nested_and_in_any_order() {
    let mut fixture = Fixture::new();
    fixture.requested = [Claim::Address, Claim::Name].into_iter().collect();
    let house = disclosure(&json!(["s1", "house", "7"]));
    let floor = disclosure(&json!(["s2", "ground"]));
    let address =
        json!({"_sd": [digest_of(&house)], "floors": [{"...": digest_of(&floor)}, {"...": digest_of("decoy-2")}, 2]});
    let address = disclosure(&json!(["s3", "address", address]));
    let payload = fixture.payload(std::slice::from_ref(&address));
    for order in [[&house, &floor, &address], [&address, &house, &floor], [&floor, &address, &house]] {
        let verified = fixture.verify(&fixture.issue_payload(&payload, &order.map(Clone::clone))).unwrap();
        assert_eq!(verified.claims.as_map()["address"], json!({"house": "7", "floors": ["ground", 2]}));
    }
}

#[test]
fn claims_in_plain_text_count_like_disclosed_ones() {
    let fixture = Fixture::new();
    let mut payload = fixture.payload(&[]);
    payload["ResidentName"] = "Asha".into();
    payload["dob"] = "1990".into();
    payload["gender"] = "m".into();
    let verified = fixture.verify(&fixture.issue_payload(&payload, &[])).unwrap();
    assert_eq!(json!(verified.claims.as_map()), json!({"residentName": "Asha", "dob": "1990", "gender": "M"}));
}

#[test]
fn the_digest_depends_on_the_presentation_but_not_on_the_key_binding() {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let payload = fixture.payload(&disclosures);
    let presented = fixture.issue_payload(&payload, &disclosures);
    let digest = |credential: &str| fixture.verify(credential).unwrap().digest;
    let bound = || fixture.bind(&presented, &fixture.binding_header(), &fixture.binding_payload(&presented));
    assert_ne!(bound(), bound());
    assert_eq!(digest(&bound()), digest(&presented));
    assert_eq!(digest(&bound()), digest(&bound()));
    let fewer = presented.strip_suffix(&format!("{}~", disclosures[2])).unwrap();
    assert_ne!(digest(fewer), digest(&presented));
    assert_ne!(digest(&fixture.credential()), digest(&presented));
}

#[test]
fn a_credential_with_an_unrequested_claim_in_plain_text_is_not_kept_as_evidence() {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let minimise_with = |plain_member: &str| {
        let mut payload = fixture.payload(&disclosures);
        payload[plain_member] = "planted".into();
        minimise(&fixture.issue_payload(&payload, &disclosures), fixture.requested)
    };
    assert!(minimise_with("version").is_some(), "not a claim");
    // The API has no names for the local parts of an address.
    for plain_member in ["email", "Mobile", "localStreet", "LocalVtc", "uid"] {
        assert_eq!(minimise_with(plain_member), None, "{plain_member}");
    }
}

#[test]
fn evidence_keeps_the_disclosures_within_a_requested_claim_except_id_numbers() {
    let mut fixture = Fixture::new();
    fixture.requested = [Claim::Address].into_iter().collect();
    let (house, uid) = (disclosure(&json!(["s1", "house", "7"])), disclosure(&json!(["s2", "uid", "999941057058"])));
    let (floor, name) = (disclosure(&json!(["s3", "ground"])), disclosure(&json!(["s4", "residentName", "Asha"])));
    let address = json!({"_sd": [digest_of(&house), digest_of(&uid)], "floors": [{"...": digest_of(&floor)}]});
    let address = disclosure(&json!(["s5", "address", address]));
    let payload = fixture.payload(&[address.clone(), name.clone()]);
    let presented = [name, floor, uid, address, house];
    let evidence = minimise(&fixture.issue_payload(&payload, &presented), fixture.requested).unwrap();
    let kept: Vec<&str> = evidence.split('~').skip(1).collect();
    assert_eq!(kept, [presented[1].as_str(), &presented[3], &presented[4], ""]);
    let verified = fixture.verify(&evidence).unwrap();
    assert_eq!(json!(verified.claims.as_map()), json!({"address": {"house": "7", "floors": ["ground"]}}));
}

#[test]
fn a_credential_with_an_id_number_inside_a_requested_claim_is_not_kept_as_evidence() {
    let mut fixture = Fixture::new();
    fixture.requested = [Claim::Address].into_iter().collect();
    for (address, is_kept) in [(json!({"house": "7"}), true), (json!({"house": "7", "UID": "999941057058"}), false)] {
        let disclosures = [disclosure(&json!(["s", "address", address]))];
        let credential = fixture.issue_payload(&fixture.payload(&disclosures), &disclosures);
        assert_eq!(json!(fixture.verify(&credential).unwrap().claims.as_map()), json!({"address": {"house": "7"}}));
        // Evidence without the address would be refused as incomplete.
        assert_eq!(minimise(&credential, fixture.requested).is_some(), is_kept);
    }
}
