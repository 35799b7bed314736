//! No input makes the verifier panic, and no changed credential is accepted.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::fixture::{valid_disclosures, with_alternative_signature, with_disclosures};
use super::{Fixture, disclosure};

/// Generates JSON with many names that have a meaning in SD-JWTs.
fn hostile_json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["_sd", "...", "_sd_alg", "cnf", "jwk", "iss", "exp", "dob", "x"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
        Just(json!(super::digest_of(&valid_disclosures()[0]))),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..5).prop_map(|members| Value::Object(
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_makes_the_verifier_panic(text in ".{0,300}",
        tokens in "(~|\\.|[A-Za-z0-9_-]{1,12}|=|e30|W10|bnVsbA){0,40}") {
        let fixture = Fixture::new();
        prop_assert!(fixture.verify(&text).is_err());
        prop_assert!(fixture.verify(&tokens).is_err());
    }

    #[test]
    fn a_credential_with_a_changed_byte_is_refused(is_bound in any::<bool>(), position in any::<prop::sample::Index>(),
        new_byte in prop::sample::select(b"Aa0-_.~=\x00 ".to_vec())) {
        let fixture = Fixture::new();
        let good = if is_bound { fixture.bound_credential() } else { fixture.credential() };
        let mut bytes = good.clone().into_bytes();
        let position = position.index(bytes.len());
        bytes[position] = new_byte;
        let changed = String::from_utf8(bytes).unwrap();
        prop_assert_eq!(fixture.verify(&changed).is_ok(), changed == good);
    }

    #[test]
    fn a_cut_credential_is_accepted_only_as_a_shorter_presentation(is_bound in any::<bool>(),
        position in any::<prop::sample::Index>()) {
        let fixture = Fixture::new();
        let good = if is_bound { fixture.bound_credential() } else { fixture.credential() };
        let cut = &good[..position.index(good.len())];
        if fixture.verify(cut).is_ok() {
            prop_assert!(cut.ends_with('~'));
        }
    }

    #[test]
    fn reordered_and_repeated_segments_never_panic(is_bound in any::<bool>(), order in prop::collection::vec(0_usize..6,
        0..8)) {
        let fixture = Fixture::new();
        let good = if is_bound { fixture.bound_credential() } else { fixture.credential() };
        let parts: Vec<&str> = good.split('~').collect();
        let mixed: Vec<&str> = order.iter().map(|index| parts[index % parts.len()]).collect();
        let occurs_before = |index: usize, part: &&str| !part.is_empty() && mixed[..index].contains(part);
        let has_repeated = mixed.iter().enumerate().any(|(index, part)| occurs_before(index, part));
        let result = fixture.verify(&mixed.join("~"));
        prop_assert!(!(has_repeated && result.is_ok()));
    }

    #[test]
    fn all_presentations_of_a_credential_have_one_identity(
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(), disclosed_count in 0_usize..=3,
        has_other_signature in any::<bool>(), is_bound in any::<bool>(),
    ) {
        let fixture = Fixture::new();
        let disclosures = valid_disclosures();
        let good = fixture.issue_payload(&fixture.payload(&disclosures), &disclosures);
        let jws = good.split('~').next().unwrap();
        let jws = if has_other_signature { with_alternative_signature(jws) } else { jws.to_owned() };
        let disclosed: Vec<String> = order[..disclosed_count].iter().map(|index| disclosures[*index].clone()).collect();
        let mut presented = with_disclosures(&jws, &disclosed);
        if is_bound {
            presented = fixture.bind(&presented, &fixture.binding_header(), &fixture.binding_payload(&presented));
        }
        let (first, second) = (fixture.verify(&good).unwrap(), fixture.verify(&presented).unwrap());
        prop_assert_eq!(first.identity, second.identity);
        prop_assert_eq!(second.holder_bound, is_bound);
        prop_assert_eq!(first.digest == second.digest, !has_other_signature && disclosed == disclosures);
        let mut other = fixture.payload(&disclosures);
        other["id"] = "1c1b1f4e-6f3c-4f8e-9a53-6f2d6f1d8a10".into();
        prop_assert_ne!(fixture.verify(&fixture.issue_payload(&other, &disclosures)).unwrap().identity, first.identity);
    }

    #[test]
    fn no_payload_of_the_issuer_makes_the_verifier_panic(mut members in hostile_json(),
        disclosed in prop::collection::vec(hostile_json(), 0..4), presented_bits in any::<u8>()) {
        let fixture = Fixture::new();
        let mut disclosures = valid_disclosures();
        for (index, content) in disclosed.iter().enumerate() {
            disclosures.push(disclosure(content));
            disclosures.push(disclosure(&json!([format!("salt-{index}"), format!("name-{index}"), content])));
        }
        let mut payload = fixture.payload(&disclosures);
        if let Some(members) = members.as_object_mut() {
            payload.as_object_mut().unwrap().append(members);
        }
        let presented: Vec<String> = disclosures.into_iter().enumerate().filter(|(index,
            _)| presented_bits & (1 << (index % 8)) != 0).map(|(_, text)| text).collect();
        let _ = fixture.verify(&fixture.issue_payload(&payload, &presented));
        let _ = fixture.verify(&fixture.issue(&members, &payload, &presented));
    }
}
