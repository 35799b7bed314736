//! Credentials, key bindings and key sets. A fixed issuer and holder sign the input, so that the fuzzer passes the
//! signatures.
//!
//! An input is a few lines. The first character names the content: `h` the header, `p` the payload, `d` a presented
//! disclosure, `x` a withheld disclosure, `b` and `k` header and payload of a key binding. In a line `#0` to `#9` stand
//! for the digests of earlier disclosures, `#c` for the holder's key, `#n` for the nonce and `#s` for the digest of the
//! presentation.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::OnceLock;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_authority::claims::credential_name;
use sakshi_authority::sdjwt::{
    Expectation, Jwks, KeyBinding, TrustedIssuer, VerifiedCredential, Verifier, credential_digest,
};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::JWKS_BYTES_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_wire::json::{JsonError, JsonRefusal, ValuesLeft, read};
use serde_json::{Value, json};

use crate::CANARY;

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://verify.example";
const HEADER: &str = r#"{"alg":"ES256","typ":"vc+sd-jwt","kid":"key-1"}"#;

/// The issuer, the holder, and verifiers for optional and required key bindings.
struct Parties {
    issuer: EcdsaKeyPair,
    holder: EcdsaKeyPair,
    optional: Verifier,
    required: Verifier,
}

/// Returns the parties of all inputs, made at the first call.
fn parties() -> &'static Parties {
    static PARTIES: OnceLock<Parties> = OnceLock::new();
    PARTIES.get_or_init(|| {
        let key = || EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let (issuer, holder) = (key(), key());
        let mut public = jwk(&issuer);
        public["kid"] = "key-1".into();
        let jwks = Jwks::parse(json!({ "keys": [public] }).to_string().as_bytes()).unwrap();
        let trusted = || vec![TrustedIssuer { issuer: ISSUER.to_owned(), jwks: jwks.clone() }];
        let optional = Verifier::new(trusted(), KeyBinding::WhenPresent);
        Parties { issuer, holder, optional, required: Verifier::new(trusted(), KeyBinding::Required) }
    })
}

/// Returns the public key as a JWK.
fn jwk(key: &EcdsaKeyPair) -> Value {
    let point = key.public_key().as_ref();
    json!({ "kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..]) })
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the SHA-256 of a text in Base64.
fn digest_of(text: &str) -> String {
    encode(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Returns the transaction whose id is the nonce of a key binding.
fn nonce() -> TxnId {
    TxnId::from_bytes([0x40; 16])
}

/// Returns what the verifier expects of a credential.
fn expectation() -> Expectation<'static> {
    Expectation { nonce: nonce(), audience: AUDIENCE, now: Timestamp::from_millis(NOW * 1_000), requested: requested() }
}

fn requested() -> ClaimSet {
    [Claim::Name, Claim::Dob, Claim::Gender, Claim::Address, Claim::AgeAbove18].into_iter().collect()
}

/// Signs a header and a payload.
fn jws(key: &EcdsaKeyPair, header: &str, payload: &str) -> String {
    let signed = format!("{}.{}", encode(header.as_bytes()), encode(payload.as_bytes()));
    let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
    format!("{signed}.{}", encode(signature.as_ref()))
}

/// A credential built from the lines of an input.
#[derive(Default)]
struct TestCredential {
    /// The issuer's payload.
    payload: String,
    /// Decoded presented disclosures, with their digests.
    disclosed: Vec<(String, String)>,
    /// Payload of the key binding.
    binding: Option<String>,
    /// The whole credential.
    text: String,
}

/// Replaces the placeholders in a line (see above).
fn fill_placeholders(line: &str, digests: &[String], presented: &str) -> String {
    let mut text = line.replace("#c", &jwk(&parties().holder).to_string()).replace("#n", &nonce().to_string());
    for (index, digest) in digests.iter().enumerate().take(10) {
        text = text.replace(&format!("#{index}"), digest);
    }
    text.replace("#s", &digest_of(presented))
}

/// Builds the credential that the lines of an input describe.
fn build_credential(input: &str) -> TestCredential {
    let (mut header, mut credential, mut digests) = (HEADER.to_owned(), TestCredential::default(), Vec::new());
    let (mut tail, mut binding_header, mut binding) =
        (String::new(), r#"{"alg":"ES256","typ":"kb+jwt"}"#.to_owned(), None);
    let mut payload = String::new();
    for line in input.lines() {
        let Some(kind) = line.chars().next() else { continue };
        let rest = &line[kind.len_utf8()..];
        match kind {
            'h' => header = rest.to_owned(),
            'p' => payload = rest.to_owned(),
            'b' => binding_header = rest.to_owned(),
            'k' => binding = Some(rest.to_owned()),
            'd' | 'x' => {
                let plain = fill_placeholders(rest, &digests, "");
                let text = encode(plain.as_bytes());
                digests.push(digest_of(&text));
                if kind == 'd' {
                    let _ = write!(tail, "{text}~");
                    credential.disclosed.push((plain, digest_of(&text)));
                }
            }
            _ => {}
        }
    }
    credential.payload = fill_placeholders(&payload, &digests, "");
    credential.text = format!("{}~{tail}", jws(&parties().issuer, &header, &credential.payload));
    if let Some(binding) = binding {
        let payload = fill_placeholders(&binding, &digests, &credential.text);
        credential.text += &jws(&parties().holder, &binding_header, &payload);
        credential.binding = Some(payload);
    }
    credential
}

/// Target: a credential signed by the issuer.
pub(crate) fn signed(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    check_credential(&build_credential(input), &parties().optional);
}

/// Target: the key binding of a credential that is otherwise valid.
pub(crate) fn bound(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let payload = format!(r##"p{{"iss":"{ISSUER}","exp":{},"_sd":["#0"],"cnf":{{"jwk":#c}}}}"##, NOW + 60);
    let valid = format!("d[\"salt\",\"residentName\",\"Asha\"]\n{payload}\n");
    let lines: String =
        input.lines().filter(|line| line.starts_with(['b', 'k'])).fold(valid, |text, line| text + line + "\n");
    check_credential(&build_credential(&lines), &parties().required);
}

/// Verifies a credential and checks the result.
fn check_credential(credential: &TestCredential, verifier: &Verifier) {
    match verifier.verify(&credential.text, &expectation()) {
        Ok(verified) => assert_sound(credential, &verified),
        Err(refusal) => assert!(!format!("{refusal} {refusal:?}").contains(CANARY), "a refusal echoes nothing"),
    }
}

/// Checks that an accepted credential is signed, current, bound as it says, and yields only requested claims.
fn assert_sound(credential: &TestCredential, verified: &VerifiedCredential) {
    let VerifiedCredential { claims, missing, malformed, digest, holder_bound, .. } = verified;
    let claims = claims.as_map();
    let payload: Value = serde_json::from_str(&credential.payload).expect("an accepted payload is JSON");
    assert_eq!(payload["iss"], ISSUER);
    assert!(payload["exp"].as_f64().is_some_and(|at| at >= NOW as f64));
    // Every requested claim is returned, missing or malformed; no other claim is returned.
    for claim in Claim::ALL {
        let states = [claims.contains_key(credential_name(claim)), missing.contains(claim), malformed.contains(claim)];
        assert_eq!(
            states.iter().filter(|state| **state).count(),
            usize::from(requested().contains(claim)),
            "{claim:?}"
        );
    }
    assert!(claims.len() <= requested().iter().count());
    // The signed payload or another disclosure has the digest of every disclosure.
    let texts = || std::iter::once(&credential.payload).chain(credential.disclosed.iter().map(|(plain, _)| plain));
    let digests: BTreeSet<String> = texts().flat_map(|text| leaves(&serde_json::from_str(text).unwrap())).collect();
    assert!(credential.disclosed.iter().all(|(_, digest)| digests.contains(digest)), "nothing references a disclosure");
    assert_eq!(
        credential.disclosed.iter().map(|(_, digest)| digest).collect::<BTreeSet<_>>().len(),
        credential.disclosed.len()
    );
    for (name, value) in claims {
        assert!(!has_id_number(value), "a claim has an id number");
        if name == "residentName" || name == "address" {
            assert!(leaves(value).iter().all(|leaf| digests.contains(leaf)), "a value is not signed");
        }
    }
    assert!(*digest == credential_digest(&credential.text));
    assert_eq!(*holder_bound, credential.binding.is_some());
    if let Some(binding) = &credential.binding {
        let binding: Value = serde_json::from_str(binding).expect("an accepted key binding is JSON");
        let presented = &credential.text[..=credential.text.rfind('~').unwrap()];
        assert_eq!((&binding["nonce"], &binding["aud"]), (&json!(nonce()), &json!(AUDIENCE)));
        assert_eq!(binding["sd_hash"], digest_of(presented));
        assert!(binding["iat"].as_i64().is_some_and(|at| at.abs_diff(NOW) <= 300));
    }
    // Another transaction refuses a bound credential, and a cut text is never accepted.
    let other = Expectation { nonce: TxnId::from_bytes([0x41; 16]), ..expectation() };
    assert!(credential.binding.is_none() || parties().optional.verify(&credential.text, &other).is_err());
    assert!(parties().optional.verify(&credential.text[1..], &expectation()).is_err());
}

/// Returns every string in a value.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(members) => members.values().flat_map(leaves).collect(),
        _ => Vec::new(),
    }
}

/// Returns true if a member at any depth has the name of an id number.
fn has_id_number(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_id_number),
        Value::Object(members) => {
            let named = |name: &str| ["uid", "vid", "maskeduid"].contains(&name.to_ascii_lowercase().as_str());
            members.iter().any(|(name, value)| named(name) || has_id_number(value))
        }
        _ => false,
    }
}

/// Target: a text that no issuer has signed.
pub(crate) fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let refusal = parties().optional.verify(text, &expectation()).expect_err("the text is not signed");
    assert!(!format!("{refusal} {refusal:?}").contains(CANARY));
    let _ = credential_digest(text);
}

/// Target: a set of keys.
pub(crate) fn jwks(data: &[u8]) {
    match Jwks::parse(data) {
        Ok(_) => {
            let read = read::<Value>(data, usize::MAX, &ValuesLeft::new(JWKS_BYTES_MAX));
            if let Err(JsonError { refusal: JsonRefusal::RepeatedName, .. }) = read {
                panic!("a set with a repeated name was accepted");
            }
            let set = read.expect("a set is JSON");
            let keys = set["keys"].as_array().expect("a set has keys");
            assert!(keys.iter().any(|key| key["kty"] == "EC" && key["crv"] == "P-256"));
            assert!(keys.iter().all(|key| key.get("d").is_none()), "a set has a private key");
        }
        Err(error) => assert!(!format!("{error} {error:?}").contains(CANARY)),
    }
}
