//! Valid tokens, and tokens with one fault each, signed with generated keys.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeySize, PublicKeyComponents};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use super::*;
use crate::encoding::base64url;

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://login.example";

/// An identity provider with an RSA key (`kid` "r") and a P-256 key (`kid` "e").
struct Provider {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
}

impl Provider {
    fn new() -> Self {
        Self {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
            p256: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
        }
    }

    fn jwks(&self) -> Value {
        let public: PublicKeyComponents<Vec<u8>> = self.rsa.public_key().into();
        let point = self.p256.public_key().as_ref();
        json!({"keys": [
            {"kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "n": base64url(&public.n),
                "e": base64url(&public.e)},
            {"kty": "EC", "crv": "P-256", "kid": "e", "x": base64url(&point[1..33]), "y": base64url(&point[33..])},
            {"kty": "RSA", "kid": "other", "use": "enc", "n": "AQAB", "e": "AQAB"},
            "nonsense",
        ]})
    }

    fn keys(&self) -> ProviderKeys {
        ProviderKeys::parse(self.jwks().to_string().as_bytes()).unwrap()
    }

    fn sign(&self, header: &Value, payload: &Value) -> String {
        let signed_text =
            format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(payload.to_string().as_bytes()));
        let random = SystemRandom::new();
        let signature = if header["alg"] == "RS256" {
            let mut signature = vec![0; self.rsa.public_modulus_len()];
            self.rsa.sign(&RSA_PKCS1_SHA256, &random, signed_text.as_bytes(), &mut signature).unwrap();
            signature
        } else {
            self.p256.sign(&random, signed_text.as_bytes()).unwrap().as_ref().to_vec()
        };
        format!("{signed_text}.{}", base64url(&signature))
    }
}

/// Returns the payload of a valid ID token.
fn payload() -> Value {
    json!({"iss": ISSUER, "aud": "sakshi", "sub": "asha", "nonce": "n-1", "iat": NOW, "exp": NOW + 300,
        "groups": ["owners", 7, "staff"]})
}

fn payload_with(name: &str, value: Value) -> Value {
    let mut payload = payload();
    payload[name] = value;
    payload
}

fn payload_without(name: &str) -> Value {
    let mut payload = payload();
    payload.as_object_mut().unwrap().remove(name);
    payload
}

fn expected() -> Expected<'static> {
    Expected { issuer: ISSUER, client_id: "sakshi", now: Timestamp::from_millis(NOW * 1_000) }
}

#[test]
fn a_valid_token_is_accepted_with_either_algorithm() {
    let provider = Provider::new();
    for header in [
        json!({"alg": "RS256", "kid": "r"}),
        json!({"alg": "ES256", "kid": "e", "typ": "JWT"}),
        json!({"alg": "RS256"}),
    ] {
        let claims = provider.keys().verify_id_token(&provider.sign(&header, &payload()), expected(), "n-1").unwrap();
        assert_eq!((claims.text("sub"), claims.texts("groups")), (Some("asha"), vec!["owners", "staff"]));
        assert!(!format!("{claims:?}").contains("asha"));
    }
}

#[test]
fn each_fault_of_a_token_has_its_refusal() {
    let (provider, other) = (Provider::new(), Provider::new());
    let rs256 = json!({"alg": "RS256", "kid": "r"});
    let two_audiences = json!(["sakshi", "other"]);
    for (header, payload, refusal) in [
        (json!({"alg": "none", "kid": "r"}), payload(), TokenRefusal::Algorithm),
        (json!({"alg": "HS256", "kid": "r"}), payload(), TokenRefusal::Algorithm),
        (json!({"alg": "ES256", "kid": "r"}), payload(), TokenRefusal::Algorithm),
        (json!({"alg": "RS256", "kid": "gone"}), payload(), TokenRefusal::UnknownKey),
        (json!({"alg": "RS256", "kid": "other"}), payload(), TokenRefusal::UnknownKey),
        (json!({"alg": "RS256", "kid": "r", "crit": ["x"]}), payload(), TokenRefusal::Malformed),
        (rs256.clone(), payload_with("iss", json!("https://login.example/")), TokenRefusal::Issuer),
        (rs256.clone(), payload_with("aud", json!("other")), TokenRefusal::Audience),
        (rs256.clone(), payload_with("aud", two_audiences), TokenRefusal::Audience),
        (rs256.clone(), payload_with("azp", json!("other")), TokenRefusal::Audience),
        (rs256.clone(), payload_with("exp", json!(NOW - 60)), TokenRefusal::Time),
        (rs256.clone(), payload_without("exp"), TokenRefusal::Time),
        (rs256.clone(), payload_with("iat", json!(NOW + 61)), TokenRefusal::Time),
        (rs256.clone(), payload_with("nbf", json!(NOW + 61)), TokenRefusal::Time),
        (rs256.clone(), payload_with("nonce", json!("n-2")), TokenRefusal::Nonce),
        (rs256.clone(), payload_without("nonce"), TokenRefusal::Nonce),
        (rs256.clone(), payload_without("sub"), TokenRefusal::Subject),
    ] {
        let token = provider.sign(&header, &payload);
        assert_eq!(provider.keys().verify_id_token(&token, expected(), "n-1"), Err(refusal), "{header} {payload}");
    }
    let token = provider.sign(&rs256, &payload());
    assert_eq!(other.keys().verify_id_token(&token, expected(), "n-1"), Err(TokenRefusal::Signature));
    let [header, _, signature] = <[&str; 3]>::try_from(token.split('.').collect::<Vec<_>>()).unwrap();
    let forged =
        format!("{header}.{}.{signature}", base64url(payload_with("sub", json!("ravi")).to_string().as_bytes()));
    assert_eq!(provider.keys().verify_id_token(&forged, expected(), "n-1"), Err(TokenRefusal::Signature));
    for text in ["", "a.b", "a.b.c.d", "..", "e30.e30.!"] {
        assert_eq!(provider.keys().verify_id_token(text, expected(), "n-1"), Err(TokenRefusal::Malformed), "{text}");
    }
}

#[test]
fn id_tokens_and_logout_tokens_are_not_interchangeable() {
    let provider = Provider::new();
    let sign = |payload: &Value| provider.sign(&json!({"alg": "ES256", "kid": "e"}), payload);
    let logout =
        json!({"iss": ISSUER, "aud": "sakshi", "iat": NOW, "jti": "1", "sid": "s", "events": {LOGOUT_EVENT: {}}});
    let claims = provider.keys().verify_logout_token(&sign(&logout), expected()).unwrap();
    assert_eq!(claims.text("sid"), Some("s"));
    assert_eq!(provider.keys().verify_logout_token(&sign(&payload()), expected()), Err(TokenRefusal::Event));
    assert_eq!(provider.keys().verify_id_token(&sign(&logout), expected(), ""), Err(TokenRefusal::Time));
    let mut old = logout;
    old["iat"] = json!(NOW - 301);
    assert_eq!(provider.keys().verify_logout_token(&sign(&old), expected()), Err(TokenRefusal::Time));
}

#[test]
fn a_malformed_key_set_is_refused_and_an_empty_one_verifies_nothing() {
    for text in ["", "[]", "{}", r#"{"keys": 7}"#, r#"{"keys": [], "keys": []}"#] {
        assert!(ProviderKeys::parse(text.as_bytes()).is_none(), "{text}");
    }
    let empty = ProviderKeys::parse(br#"{"keys": []}"#).unwrap();
    let token = Provider::new().sign(&json!({"alg": "RS256"}), &payload());
    assert_eq!(empty.verify_id_token(&token, expected(), "n-1"), Err(TokenRefusal::UnknownKey));
}
