//! Rules 1 and 2: the text, the header and the signature.

use sakshi_domain::limits::{CREDENTIAL_BYTES_MAX, JOSE_HEADER_CHARS_MAX, JOSE_SIGNATURE_CHARS_MAX};
use serde_json::{Value, json};

use super::fixture::{KID, jwk, sign, valid_disclosures, with_disclosures};
use super::{Fixture, digest_of, disclosure};
use crate::encoding::base64url;
use crate::sdjwt::CredentialRefusal;

/// Returns the refusal of a credential with a changed header.
fn refusal_with_header(change: impl FnOnce(&mut Value)) -> CredentialRefusal {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let mut header = fixture.header();
    change(&mut header);
    fixture.refusal(&fixture.issue(&header, &fixture.payload(&disclosures), &disclosures))
}

fn remove_member(header: &mut Value, name: &str) {
    header.as_object_mut().unwrap().remove(name);
}

#[test]
fn a_text_that_is_not_a_jws_with_disclosures_is_refused() {
    let fixture = Fixture::new();
    let good = fixture.credential();
    let jws = good.split('~').next().unwrap().to_owned();
    for text in [
        "",
        "~",
        "~~",
        &jws,
        &good[jws.len()..],
        &format!("{jws}~~"),
        &good.replacen('~', "~~", 1),
        &format!("{good}~"),
    ] {
        assert_eq!(fixture.refusal(text), CredentialRefusal::NotAnSdJwt, "{text}");
    }
}

#[test]
fn a_jws_must_have_three_segments_that_are_not_empty() {
    let fixture = Fixture::new();
    for text in ["a~", "a.b~", "a.b.c.d~"] {
        assert_eq!(fixture.refusal(text), CredentialRefusal::SegmentCount, "{text}");
    }
    for text in ["a.b.~", ".b.c~", "a..c~", "..~"] {
        assert_eq!(fixture.refusal(text), CredentialRefusal::EmptySegment, "{text}");
    }
}

#[test]
fn padding_other_alphabets_and_stray_bits_are_refused() {
    let fixture = Fixture::new();
    let good = fixture.credential();
    let (jws, rest) = good.split_once('~').unwrap();
    let (signed_text, _) = jws.rsplit_once('.').unwrap();
    for (bad, reason) in [
        (format!("{jws}=~{rest}"), CredentialRefusal::Base64Padding),
        (format!("{good}WyJz=~"), CredentialRefusal::Base64Padding),
        (format!("{good}=WyJz~"), CredentialRefusal::NotBase64url),
        (format!("{signed_text}.+/+/~{rest}"), CredentialRefusal::Base64Alphabet),
        (format!("{good}Wy/z=~"), CredentialRefusal::Base64Alphabet),
        (format!("{good}WyJz\r\nWyJz~"), CredentialRefusal::Base64LineEnd),
        (format!(" {good}"), CredentialRefusal::Base64LineEnd),
        (format!("{signed_text}.AB~{rest}"), CredentialRefusal::NotBase64url),
        (format!("é{good}"), CredentialRefusal::NotBase64url),
    ] {
        assert_eq!(fixture.refusal(&bad), reason, "{bad}");
    }
}

#[test]
fn an_oversized_credential_is_refused_before_parsing() {
    let fixture = Fixture::new();
    assert_eq!(fixture.refusal(&"~".repeat(CREDENTIAL_BYTES_MAX)), CredentialRefusal::NotAnSdJwt);
    assert_eq!(fixture.refusal(&"~".repeat(CREDENTIAL_BYTES_MAX + 1)), CredentialRefusal::TooLarge);
}

#[test]
fn header_and_signature_have_a_maximum_length() {
    let fixture = Fixture::new();
    let with_header_bytes = |bytes: usize| {
        let mut header = fixture.header();
        header["pad"] = "".into();
        header["pad"] = "x".repeat(bytes - header.to_string().len()).into();
        fixture.verify(&fixture.issue(&header, &fixture.payload(&[]), &[])).err()
    };
    // Three bytes are four characters.
    assert_eq!(with_header_bytes(JOSE_HEADER_CHARS_MAX / 4 * 3), None);
    assert_eq!(with_header_bytes(JOSE_HEADER_CHARS_MAX / 4 * 3 + 1), Some(CredentialRefusal::TooLarge));
    let good = fixture.issue_payload(&fixture.payload(&[]), &[]);
    let (signed_text, _) = good.rsplit_once('.').unwrap();
    let with_signature_bytes =
        |bytes: usize| fixture.refusal(&format!("{signed_text}.{}~", base64url(&vec![1; bytes])));
    assert_eq!(with_signature_bytes(JOSE_SIGNATURE_CHARS_MAX / 4 * 3), CredentialRefusal::SignatureInvalid);
    assert_eq!(with_signature_bytes(JOSE_SIGNATURE_CHARS_MAX / 4 * 3 + 1), CredentialRefusal::TooLarge);
}

#[test]
fn a_credential_has_at_most_256_disclosures() {
    let fixture = Fixture::new();
    let disclosures: Vec<String> =
        (0..257).map(|number| disclosure(&json!(["s", format!("x{number}"), number]))).collect();
    let payload = fixture.payload(&disclosures);
    assert!(fixture.verify(&fixture.issue_payload(&payload, &disclosures[..256])).is_ok());
    assert_eq!(fixture.refusal(&fixture.issue_payload(&payload, &disclosures)), CredentialRefusal::TooManyDisclosures);
}

#[test]
fn nesting_beyond_16_levels_is_refused_also_across_disclosures() {
    let fixture = Fixture::new();
    let arrays = |levels: usize, innermost: Value| (0..levels).fold(innermost, |inner, _| json!([inner]));
    let objects = |levels: usize, innermost: Value| (0..levels).fold(innermost, |inner, _| json!({"a": inner}));
    let nested = |levels: usize| arrays(levels, json!(1));
    let refusal =
        |payload: &Value, disclosures: &[String]| fixture.verify(&fixture.issue_payload(payload, disclosures)).err();
    for (levels, expected) in [(15, None), (16, Some(CredentialRefusal::TooDeep))] {
        let mut payload = fixture.payload(&[]);
        payload["x"] = nested(levels);
        assert_eq!(refusal(&payload, &[]), expected);
        let disclosed = vec![disclosure(&json!(["s", "x", nested(levels)]))];
        assert_eq!(refusal(&fixture.payload(&disclosed), &disclosed), expected);
    }
    // Levels of the outer disclosure above the inner one, and levels of the inner disclosure's value.
    for (outer_levels, inner_levels, expected) in
        [(6, 8, None), (7, 8, Some(CredentialRefusal::TooDeep)), (6, 9, Some(CredentialRefusal::TooDeep))]
    {
        let inner = |value| disclosure(&json!(["s", "y", value]));
        let kinds = [
            (inner(arrays(inner_levels, json!(1))), arrays as fn(usize, Value) -> Value),
            (inner(objects(inner_levels, json!(1))), objects),
        ];
        for (inner, wrap) in kinds {
            let outer = disclosure(&json!(["s", "x", wrap(outer_levels, json!({"_sd": [digest_of(&inner)]}))]));
            let payload = fixture.payload(std::slice::from_ref(&outer));
            assert_eq!(refusal(&payload, &[outer, inner]), expected, "{outer_levels} {inner_levels}");
        }
    }
}

#[test]
fn header_and_payload_must_be_json_objects_without_repeated_names() {
    let fixture = Fixture::new();
    let header = fixture.header().to_string();
    let cases: [(&[u8], &[u8], CredentialRefusal); 5] = [
        (b"[]", b"{}", CredentialRefusal::NotJson),
        (header.as_bytes(), b"null", CredentialRefusal::NotJson),
        (b"\xff", b"{}", CredentialRefusal::NotJson),
        (br#"{"alg":"ES256","alg":"none"}"#, b"{}", CredentialRefusal::RepeatedName),
        (header.as_bytes(), br#"{"exp":1,"exp":9999999999}"#, CredentialRefusal::RepeatedName),
    ];
    for (header, payload, expected) in cases {
        assert_eq!(fixture.refusal(&format!("{}~", sign(&fixture.issuer, header, payload))), expected);
    }
}

#[test]
fn only_es256_is_accepted() {
    for algorithm in [
        json!("none"),
        json!("None"),
        json!("HS256"),
        json!("RS256"),
        json!("ES384"),
        json!("es256"),
        json!(null),
        json!(["ES256"]),
    ] {
        assert_eq!(refusal_with_header(|header| header["alg"] = algorithm), CredentialRefusal::AlgorithmNotAllowed);
    }
    assert_eq!(refusal_with_header(|header| remove_member(header, "alg")), CredentialRefusal::AlgorithmNotAllowed);
}

#[test]
fn a_mac_with_the_public_key_is_no_signature() {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    for algorithm in ["HS256", "ES256"] {
        let mut header = fixture.header();
        header["alg"] = algorithm.into();
        let signed_text = format!(
            "{}.{}",
            base64url(header.to_string().as_bytes()),
            base64url(fixture.payload(&disclosures).to_string().as_bytes())
        );
        let public = jwk(&fixture.issuer).to_string();
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, public.as_bytes());
        let mac = aws_lc_rs::hmac::sign(&key, signed_text.as_bytes());
        let credential = with_disclosures(&format!("{signed_text}.{}", base64url(mac.as_ref())), &disclosures);
        assert!(matches!(
            fixture.refusal(&credential),
            CredentialRefusal::AlgorithmNotAllowed | CredentialRefusal::SignatureInvalid
        ));
    }
}

#[test]
fn critical_headers_are_refused_even_when_empty() {
    for value in [json!(["b64"]), json!([]), json!(null)] {
        assert_eq!(refusal_with_header(|header| header["crit"] = value), CredentialRefusal::CriticalHeader);
    }
}

#[test]
fn an_unknown_or_missing_type_is_refused() {
    for typ in [json!("JWT"), json!("kb+jwt"), json!("VC+SD-JWT"), json!(1)] {
        assert_eq!(refusal_with_header(|header| header["typ"] = typ), CredentialRefusal::TypeNotAllowed);
    }
    assert_eq!(refusal_with_header(|header| remove_member(header, "typ")), CredentialRefusal::TypeNotAllowed);
}

#[test]
fn a_key_in_the_header_is_refused() {
    for name in ["jwk", "x5c", "jku", "x5u"] {
        assert_eq!(
            refusal_with_header(|header| header[name] = json!("https://evil.example")),
            CredentialRefusal::KeyInToken,
            "{name}"
        );
    }
}

#[test]
fn a_missing_and_an_unknown_key_id_have_different_refusals() {
    assert_eq!(refusal_with_header(|header| remove_member(header, "kid")), CredentialRefusal::KeyIdMissing);
    assert_eq!(refusal_with_header(|header| header["kid"] = json!(7)), CredentialRefusal::KeyIdMissing);
    assert_eq!(refusal_with_header(|header| header["kid"] = json!(format!("{KID} "))), CredentialRefusal::KeyIdUnknown);
}

#[test]
fn a_signature_of_another_key_or_over_other_content_is_refused() {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let (header, payload) = (fixture.header().to_string(), fixture.payload(&disclosures).to_string());
    let forged = with_disclosures(&sign(&fixture.holder, header.as_bytes(), payload.as_bytes()), &disclosures);
    assert_eq!(fixture.refusal(&forged), CredentialRefusal::SignatureInvalid);
    let (other, good) = (fixture.credential(), fixture.issue_payload(&fixture.payload(&[]), &[]));
    let (signed_text, _) = good.split_once('~').unwrap().0.rsplit_once('.').unwrap();
    let signature = other.split('~').next().unwrap().rsplit('.').next().unwrap();
    assert_eq!(fixture.refusal(&format!("{signed_text}.{signature}~")), CredentialRefusal::SignatureInvalid);
    for signature in [vec![0; 64], vec![0; 63], vec![1; 65], vec![0x30; 70]] {
        assert_eq!(
            fixture.refusal(&format!("{signed_text}.{}~", base64url(&signature))),
            CredentialRefusal::SignatureInvalid
        );
    }
}

#[test]
fn a_refusal_has_a_code_and_a_sentence() {
    let reasons = [CredentialRefusal::NotAnSdJwt, CredentialRefusal::KeyBindingHash, CredentialRefusal::Expired];
    let codes = reasons.map(CredentialRefusal::code);
    assert_eq!(codes, ["not_an_sd_jwt", "key_binding_hash", "expired"]);
    assert_eq!(CredentialRefusal::Expired.to_string(), "the credential has expired");
}
