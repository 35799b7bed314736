//! Digests of traits that distinguish a person, so that an event recognises one who registers twice.

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::claims::Claim;
use sakshi_domain::event::Trait;
use sakshi_domain::transaction::VerifiedClaims;
use serde_json::{Map, Value};

use crate::claims::credential_name;

/// The public members of a JWK that make the key (RFC 7638 §3.2).
const KEY_MEMBERS: [&str; 6] = ["crv", "e", "kty", "n", "x", "y"];

/// Returns the traits of a payload: the credential's id, which is unique for its issuer, and the holder's key.
pub(super) fn of_payload(payload: &Map<String, Value>, issuer: &str) -> Vec<Trait> {
    let id = payload.get("id").and_then(Value::as_str).map(|id| made("id", &[issuer, id]));
    let key = payload.get("cnf").and_then(|cnf| cnf.get("jwk")).map(|jwk| {
        let members = KEY_MEMBERS.map(|member| jwk.get(member).and_then(Value::as_str).unwrap_or_default());
        made("key", &members)
    });
    id.into_iter().chain(key).collect()
}

/// Returns the trait of the name with the date of birth, if both were shared. Case and spaces do not count.
pub(super) fn of_claims(claims: &VerifiedClaims) -> Option<Trait> {
    let text = |claim| claims.as_map().get(credential_name(claim)).and_then(Value::as_str);
    let name = text(Claim::Name)?.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ");
    Some(made("person", &[&name, text(Claim::Dob)?.trim()]))
}

/// Computes the digest of a kind and its parts, none of which can run into the next.
fn made(kind: &str, parts: &[&str]) -> Trait {
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
    fn the_same_credential_or_key_has_the_same_traits_and_another_has_others() {
        let payload = |id: &str, x: &str| {
            map(json!({"id": id, "cnf": {"jwk": {"kty": "EC", "crv": "P-256", "x": x, "y": "b", "use": "sig"}}}))
        };
        let one = of_payload(&payload("1", "a"), "issuer");
        assert_eq!(one, of_payload(&payload("1", "a"), "issuer"));
        let (other_id, other_key) =
            (of_payload(&payload("2", "a"), "issuer"), of_payload(&payload("1", "c"), "issuer"));
        assert!(one[0] != other_id[0] && one[1] == other_id[1] && one[0] == other_key[0] && one[1] != other_key[1]);
        assert_ne!(one[0], of_payload(&payload("1", "a"), "other issuer")[0]);
        assert_eq!(of_payload(&map(json!({"id": 7, "cnf": {}})), "issuer"), []);
    }

    #[test]
    fn a_person_needs_name_and_date_of_birth_whatever_case_and_spaces() {
        let person = |value| of_claims(&VerifiedClaims::new(map(value)));
        let asha = person(json!({"residentName": "Asha  RAO", "dob": "1990-01-01"}));
        assert!(asha.is_some());
        assert_eq!(asha, person(json!({"residentName": " asha rao ", "dob": "1990-01-01"})));
        assert_ne!(asha, person(json!({"residentName": "asha rao", "dob": "1990-01-02"})));
        assert_ne!(asha, person(json!({"residentName": "ash arao", "dob": "1990-01-01"})));
        assert_eq!(person(json!({"residentName": "Asha Rao"})), None);
        assert_eq!(person(json!({"residentName": 1, "dob": "1990-01-01"})), None);
    }
}
