//! Rules 3 to 6: hash algorithm, disclosures, digests.

use serde_json::{Value, json};

use super::fixture::valid_disclosures;
use super::{Fixture, digest_of, disclosure};
use crate::encoding::base64url;
use crate::sdjwt::CredentialRefusal;

/// Returns the refusal of a credential with a changed payload.
fn refusal_with_payload(change: impl FnOnce(&mut Value)) -> CredentialRefusal {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let mut payload = fixture.payload(&disclosures);
    change(&mut payload);
    fixture.refusal(&fixture.issue_payload(&payload, &disclosures))
}

/// Returns the refusal of a credential that references and presents this disclosure.
fn refusal_with_disclosure(text: String) -> CredentialRefusal {
    let fixture = Fixture::new();
    let disclosures = [valid_disclosures(), vec![text]].concat();
    fixture.refusal(&fixture.issue_payload(&fixture.payload(&disclosures), &disclosures))
}

/// Returns the refusal of a credential with a disclosure of this content.
fn refusal_with_disclosed_content(content: &Value) -> CredentialRefusal {
    refusal_with_disclosure(disclosure(content))
}

#[test]
fn another_hash_algorithm_is_refused() {
    for algorithm in
        [json!("sha-512"), json!("Sha-256"), json!("SHA256"), json!(""), json!(null), json!(256), json!(["sha-256"])]
    {
        assert_eq!(
            refusal_with_payload(|payload| payload["_sd_alg"] = algorithm),
            CredentialRefusal::HashAlgorithmNotAllowed
        );
    }
}

#[test]
fn a_hash_algorithm_nested_or_disclosed_is_refused() {
    assert_eq!(
        refusal_with_payload(|payload| payload["cnf"]["_sd_alg"] = json!("sha-256")),
        CredentialRefusal::HashAlgorithmMisplaced
    );
    assert_eq!(
        refusal_with_payload(|payload| payload["x"] = json!([{"_sd_alg": "sha-256"}])),
        CredentialRefusal::HashAlgorithmMisplaced
    );
    assert_eq!(
        refusal_with_disclosed_content(&json!(["s", "_sd_alg", "sha-256"])),
        CredentialRefusal::HashAlgorithmMisplaced
    );
    assert_eq!(
        refusal_with_disclosed_content(&json!(["s", "x", {"_sd_alg": "sha-256"}])),
        CredentialRefusal::HashAlgorithmMisplaced
    );
}

#[test]
fn a_disclosure_must_be_an_array_of_two_or_three_elements() {
    for content in [json!({}), json!("text"), json!([]), json!(["s"]), json!(["s", "n", "v", "more"]), json!(null)] {
        assert_eq!(refusal_with_disclosed_content(&content), CredentialRefusal::DisclosureMalformed);
    }
    assert_eq!(refusal_with_disclosure(base64url(b"[\"s\",\"n\"")), CredentialRefusal::DisclosureMalformed);
    assert_eq!(refusal_with_disclosure(base64url(b"[\"s\",\"n\",\"\xff\"]")), CredentialRefusal::DisclosureMalformed);
    assert_eq!(refusal_with_disclosure(base64url(b"[\"s\",\"n\",{\"a\":1,\"a\":2}]")), CredentialRefusal::RepeatedName);
}

#[test]
fn a_disclosure_must_fit_the_place_of_its_digest() {
    assert_eq!(refusal_with_disclosed_content(&json!(["s", "element"])), CredentialRefusal::DisclosureMisplaced);
    let fixture = Fixture::new();
    let member = disclosure(&json!(["s", "name", "value"]));
    let mut payload = fixture.payload(&[]);
    payload["list"] = json!([{"...": digest_of(&member)}]);
    assert_eq!(fixture.refusal(&fixture.issue_payload(&payload, &[member])), CredentialRefusal::DisclosureMisplaced);
}

#[test]
fn salts_and_names_must_be_strings() {
    for content in [json!([1, "n", "v"]), json!([null, "n", "v"]), json!([["s"], "v"])] {
        assert_eq!(refusal_with_disclosed_content(&content), CredentialRefusal::SaltNotAString);
    }
    for content in [json!(["s", 1, "v"]), json!(["s", null, "v"]), json!(["s", {}, "v"])] {
        assert_eq!(refusal_with_disclosed_content(&content), CredentialRefusal::NameNotAString);
    }
}

#[test]
fn reserved_names_cannot_be_disclosed() {
    for name in ["_sd", "..."] {
        assert_eq!(refusal_with_disclosed_content(&json!(["s", name, ["x"]])), CredentialRefusal::NameReserved);
    }
}

#[test]
fn a_name_that_is_already_present_cannot_be_disclosed() {
    for name in ["exp", "iss", "residentName"] {
        assert_eq!(
            refusal_with_disclosed_content(&json!(["other salt", name, 1])),
            CredentialRefusal::NameTaken,
            "{name}"
        );
    }
}

#[test]
fn digests_must_be_an_array_of_strings() {
    for digests in [json!("digest"), json!({}), json!(null), json!([1]), json!(["a", null]), json!([["a"]])] {
        assert_eq!(
            refusal_with_payload(|payload| payload["x"] = json!({ "_sd": digests })),
            CredentialRefusal::DigestsMalformed
        );
    }
}

#[test]
fn the_digest_of_an_array_element_must_be_a_string_and_the_only_member() {
    let digest = digest_of("x");
    for value in [
        json!([{"...": digest, "more": 1}]),
        json!([{"...": 1}]),
        json!([{"...": null}]),
        json!({"...": digest}),
        json!([[{"...": [digest]}]]),
    ] {
        assert_eq!(refusal_with_payload(|payload| payload["x"] = value), CredentialRefusal::ArrayDigestMalformed);
    }
    assert_eq!(
        refusal_with_disclosed_content(&json!(["s", "x", {"...": "d"}])),
        CredentialRefusal::ArrayDigestMalformed
    );
}

#[test]
fn every_digest_including_decoys_may_occur_only_once() {
    let decoy = digest_of("decoy");
    for digest in [decoy.clone(), digest_of(&valid_disclosures()[0])] {
        assert_eq!(
            refusal_with_payload(|payload| payload["x"] = json!({"_sd": [digest]})),
            CredentialRefusal::DigestRepeated
        );
        assert_eq!(
            refusal_with_disclosed_content(&json!(["s", "x", {"_sd": [digest]}])),
            CredentialRefusal::DigestRepeated
        );
    }
    assert_eq!(
        refusal_with_payload(|payload| payload["x"] = json!([{"...": decoy}])),
        CredentialRefusal::DigestRepeated
    );
    assert_eq!(
        refusal_with_payload(|payload| payload["x"] = json!([{"...": "new"}, [{"...": "new"}]])),
        CredentialRefusal::DigestRepeated
    );
    assert_eq!(
        refusal_with_payload(|payload| payload["x"] = json!({"_sd": ["new", "new"]})),
        CredentialRefusal::DigestRepeated
    );
}

#[test]
fn a_repeated_disclosure_is_refused() {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let with_repeated = [disclosures.clone(), vec![disclosures[1].clone()]].concat();
    assert_eq!(
        fixture.refusal(&fixture.issue_payload(&fixture.payload(&disclosures), &with_repeated)),
        CredentialRefusal::DisclosureRepeated
    );
}

#[test]
fn a_disclosure_that_no_digest_references_is_refused() {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let unreferenced = disclosure(&json!(["s", "email", "x@example.org"]));
    let with_unreferenced = [disclosures.clone(), vec![unreferenced]].concat();
    assert_eq!(
        fixture.refusal(&fixture.issue_payload(&fixture.payload(&disclosures), &with_unreferenced)),
        CredentialRefusal::DisclosureUnreferenced
    );
    let inner = disclosure(&json!(["s", "house", "7"]));
    let outer = disclosure(&json!(["s", "address", {"_sd": [digest_of(&inner)]}]));
    let payload = fixture.payload(std::slice::from_ref(&outer));
    assert_eq!(fixture.refusal(&fixture.issue_payload(&payload, &[inner])), CredentialRefusal::DisclosureUnreferenced);
}

#[test]
fn digests_cover_the_text_as_received() {
    let fixture = Fixture::new();
    let (plain, spaced) = (base64url(br#"["s","gender","F"]"#), base64url(br#"["s", "gender", "F"]"#));
    let payload = fixture.payload(std::slice::from_ref(&spaced));
    assert!(fixture.verify(&fixture.issue_payload(&payload, &[spaced])).is_ok());
    assert_eq!(fixture.refusal(&fixture.issue_payload(&payload, &[plain])), CredentialRefusal::DisclosureUnreferenced);
}
