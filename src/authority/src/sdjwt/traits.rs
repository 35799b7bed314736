//! Digests of traits that distinguish a person, by which an event detects people who register twice.

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::claims::Claim;
use sakshi_domain::event::Trait;
use sakshi_domain::transaction::VerifiedClaims;
use serde_json::{Map, Value};

use crate::claims::credential_name;

/// The members of a JWK that define a public key (RFC 7638 §3.2).
const KEY_MEMBERS: [&str; 6] = ["crv", "e", "kty", "n", "x", "y"];

/// The members of a JWK that differ from key to key: of a point on a curve, and of an RSA key.
const DISTINGUISHING_MEMBERS: [&str; 2] = ["x", "n"];

/// Returns the traits in a payload: the credential's id, which is unique per issuer, and the holder's key. An empty id
/// and a JWK without a key would be the same for all persons.
pub(super) fn traits_of_payload(payload: &Map<String, Value>, issuer: &str) -> Vec<Trait> {
    let id = payload.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let id = id.map(|id| digest_parts("id", &[issuer, id]));
    let has_key =
        |jwk: &&Value| DISTINGUISHING_MEMBERS.iter().any(|member| jwk.get(*member).is_some_and(Value::is_string));
    let key = payload.get("cnf").and_then(|cnf| cnf.get("jwk")).filter(has_key).map(|jwk| {
        let members = KEY_MEMBERS.map(|member| jwk.get(member).and_then(Value::as_str).unwrap_or_default());
        digest_parts("key", &members)
    });
    id.into_iter().chain(key).collect()
}

/// Returns the trait of the name with the date of birth, if both were shared. Case and spaces are ignored.
pub(super) fn trait_of_claims(claims: &VerifiedClaims) -> Option<Trait> {
    let text = |claim| claims.as_map().get(credential_name(claim)).and_then(Value::as_str);
    let name = text(Claim::Name)?.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ");
    Some(digest_parts("person", &[&name, text(Claim::Dob)?.trim()]))
}

/// Computes the digest of a kind of trait and its parts, which NUL characters separate.
fn digest_parts(kind: &str, parts: &[&str]) -> Trait {
    let mut text = kind.to_owned();
    for part in parts {
        text.push('\0');
        text.push_str(&part.replace('\0', " "));
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    Trait(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        if let Value::Object(map) = value { map } else { Map::new() }
    }

    #[test]
    fn traits_depend_on_the_credential_the_issuer_and_the_key() {
        // The key is determined by its coordinate `x`.
        let payload = |id: &str, x: &str| {
            map(json!({"id": id, "cnf": {"jwk": {"kty": "EC", "crv": "P-256", "x": x, "y": "b", "use": "sig"}}}))
        };
        let traits = |id: &str, x: &str, issuer: &str| {
            let vector = traits_of_payload(&payload(id, x), issuer);
            <[Trait; 2]>::try_from(vector).unwrap()
        };
        let [id_trait, key_trait] = traits("1", "a", "issuer");
        assert_eq!(traits("1", "a", "issuer"), [id_trait, key_trait]);
        let [other_id_trait, same_key_trait] = traits("2", "a", "issuer");
        assert!(other_id_trait != id_trait && same_key_trait == key_trait);
        let [same_id_trait, other_key_trait] = traits("1", "c", "issuer");
        assert!(same_id_trait == id_trait && other_key_trait != key_trait);
        let [trait_of_other_issuer, _] = traits("1", "a", "other issuer");
        assert_ne!(trait_of_other_issuer, id_trait);
        assert_eq!(traits_of_payload(&map(json!({"id": 7, "cnf": {}})), "issuer"), []);
    }

    #[test]
    fn a_holder_key_that_is_no_jwk_is_no_trait() {
        for jwk in [json!(null), json!({}), json!("{\"x\":\"a\"}"), json!({"kty": "EC", "crv": "P-256", "x": 1})] {
            assert_eq!(traits_of_payload(&map(json!({"id": "", "cnf": {"jwk": jwk}})), "issuer"), [], "{jwk}");
        }
        let rsa = map(json!({"cnf": {"jwk": {"kty": "RSA", "n": "a", "e": "AQAB"}}}));
        assert_eq!(traits_of_payload(&rsa, "issuer").len(), 1);
    }

    #[test]
    fn the_trait_of_a_person_needs_name_and_date_of_birth() {
        let person = |value| trait_of_claims(&VerifiedClaims::new(map(value)));
        let asha = person(json!({"residentName": "Asha  RAO", "dob": "1990-01-01"}));
        assert!(asha.is_some());
        assert_eq!(asha, person(json!({"residentName": " asha rao ", "dob": "1990-01-01"})));
        assert_ne!(asha, person(json!({"residentName": "asha rao", "dob": "1990-01-02"})));
        assert_ne!(asha, person(json!({"residentName": "ash arao", "dob": "1990-01-01"})));
        assert_eq!(person(json!({"residentName": "Asha Rao"})), None);
        assert_eq!(person(json!({"residentName": 1, "dob": "1990-01-01"})), None);
    }
}
