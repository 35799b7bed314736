//! What is accepted, and what is kept of it.

use sakshi_domain::claims::Claim;
use sakshi_domain::transaction::Answer;
use serde_json::json;

use super::world::good_disclosures;
use super::{World, digest_of, disclosure};

#[test]
fn a_credential_in_the_profile_is_accepted_and_normalised() {
    let world = World::new();
    let verified = world.verify(&world.good()).unwrap();
    let expected = json!({"residentName": "Asha Rao", "dob": "1990-02-28", "gender": "F"});
    assert_eq!(json!(verified.claims.as_map()), expected);
    assert!(verified.missing.is_empty() && !verified.holder_bound);
    assert!(!format!("{verified:?}").contains("Asha"));
}

#[test]
fn the_other_type_and_the_other_spellings_of_the_hash_algorithm_are_accepted() {
    let world = World::new();
    let disclosures = good_disclosures();
    for (typ, algorithm) in [("vc+sd-jwt", Some("sha-256")), ("dc+sd-jwt", Some("SHA-256")), ("dc+sd-jwt", None)] {
        let (mut header, mut payload) = (world.header(), world.payload(&disclosures));
        header["typ"] = typ.into();
        match algorithm {
            Some(name) => payload["_sd_alg"] = name.into(),
            None => drop(payload.as_object_mut().unwrap().remove("_sd_alg")),
        }
        assert!(world.verify(&world.issue(&header, &payload, &disclosures)).is_ok());
    }
}

#[test]
fn a_requested_claim_that_is_not_disclosed_is_missing_and_no_refusal() {
    let world = World::new();
    let disclosures = good_disclosures();
    let credential = world.issue_payload(&world.payload(&disclosures), &disclosures[..1]);
    let verified = world.verify(&credential).unwrap();
    assert_eq!(verified.missing, [Claim::Dob, Claim::Gender].into_iter().collect());
    let Answer::Credential { claims, missing, .. } = verified.into_answer() else { panic!("a credential") };
    assert_eq!((claims.as_map().len(), missing.iter().count()), (1, 2));
}

#[test]
fn what_was_not_asked_for_is_not_kept() {
    let mut world = World::new();
    world.requested = [Claim::Gender].into_iter().collect();
    let disclosures = [good_disclosures(), vec![disclosure(&json!(["s", "UID", "999941057058"]))]].concat();
    let verified = world.verify(&world.issue_payload(&world.payload(&disclosures), &disclosures)).unwrap();
    assert_eq!(json!(verified.claims.as_map()), json!({"gender": "F"}));
}

#[test]
fn disclosures_may_come_in_any_order_and_nest() {
    let mut world = World::new();
    world.requested = [Claim::Address, Claim::Name].into_iter().collect();
    let house = disclosure(&json!(["s1", "house", "7"]));
    let floor = disclosure(&json!(["s2", "ground"]));
    let address = json!({"_sd": [digest_of(&house)], "floors": [{"...": digest_of(&floor)}, {"...": digest_of("decoy-2")}, 2]});
    let address = disclosure(&json!(["s3", "address", address]));
    let payload = world.payload(std::slice::from_ref(&address));
    for order in [[&house, &floor, &address], [&address, &house, &floor], [&floor, &address, &house]] {
        let verified = world.verify(&world.issue_payload(&payload, &order.map(Clone::clone))).unwrap();
        assert_eq!(verified.claims.as_map()["address"], json!({"house": "7", "floors": ["ground", 2]}));
    }
}

#[test]
fn claims_in_the_clear_count_like_disclosed_ones() {
    let world = World::new();
    let mut payload = world.payload(&[]);
    payload["ResidentName"] = "Asha".into();
    payload["dob"] = "1990".into();
    payload["gender"] = "m".into();
    let verified = world.verify(&world.issue_payload(&payload, &[])).unwrap();
    assert_eq!(json!(verified.claims.as_map()), json!({"residentName": "Asha", "dob": "1990", "gender": "M"}));
}

#[test]
fn the_same_answer_is_recognised_whatever_its_key_binding_and_a_different_presentation_is_another_answer() {
    let world = World::new();
    let disclosures = good_disclosures();
    let payload = world.payload(&disclosures);
    let presented = world.issue_payload(&payload, &disclosures);
    let digest = |credential: &str| world.verify(credential).unwrap().digest;
    let bound = || world.bind(&presented, &world.binding_header(), &world.binding_payload(&presented));
    assert_ne!(bound(), bound());
    assert_eq!(digest(&bound()), digest(&presented));
    assert_eq!(digest(&bound()), digest(&bound()));
    let fewer = presented.strip_suffix(&format!("{}~", disclosures[2])).unwrap();
    assert_ne!(digest(fewer), digest(&presented));
    assert_ne!(digest(&world.good()), digest(&presented));
}
