//! The content of an intent, the choice of its key, and texts that are not intents.

use std::sync::OnceLock;
use std::time::Duration;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use sakshi_domain::channel::{AndroidApp, Channel};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::limits::INTENT_BYTES_MAX;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{OptionalTerms, Pending, Terms};
use serde_json::Value;

use super::*;
use crate::callback_address::{CallbackAddress, CallbackAddresses};
use crate::encoding::{base64url, from_base64url};

const OPENED: i64 = 1_800_000_000_000;

fn pending(channel: Channel) -> Pending {
    let client = ClientId::generate();
    let opened_at = Timestamp::from_millis(OPENED);
    let claims: ClaimSet = [Claim::Name, Claim::Dob, Claim::Gender].into_iter().collect();
    let terms = Terms {
        claims,
        channel,
        language: Language::ENGLISH,
        face_auth: true,
        webhook_url: None,
        request_id: RequestId::mint(),
        extras: None,
    };
    let id = TxnId::generate(client.partition(), 0);
    Pending {
        id,
        client,
        app: AppId::generate(),
        event: None,
        opened_at,
        expires_at: opened_at + Duration::from_secs(900),
        terms,
    }
}

fn settings() -> IntentSettings {
    IntentSettings {
        kid: "key-1".into(),
        typ: "credential-req+jwt".into(),
        issuer: "verifier.example".into(),
        lifetime: Duration::from_secs(300),
        client_id: "client-7".into(),
        registration: "reg-9".into(),
        scope_length: 64,
        ..IntentSettings::default()
    }
}

fn callback(pending: &Pending) -> CallbackAddress {
    CallbackAddresses::new("https://verify.example/base", &[[3; 32]]).unwrap().for_txn(pending.id)
}

fn now() -> Timestamp {
    Timestamp::from_millis(OPENED + 1_500)
}

fn signer() -> IntentSigner {
    IntentSigner::new(IntentKey::generate_es256().unwrap().0, settings())
}

/// Positions of the segments of a JWT.
const HEADER: usize = 0;
const PAYLOAD: usize = 1;

/// Decodes a segment of a JWT.
fn segment(jwt: &str, position: usize) -> Value {
    serde_json::from_slice(&from_base64url(jwt.split('.').nth(position).unwrap()).unwrap()).unwrap()
}

fn rsa_pem() -> &'static str {
    static PEM: OnceLock<String> = OnceLock::new();
    PEM.get_or_init(|| IntentKey::generate_rs256().unwrap().1)
}

/// Signs the intent with a key in this process.
fn sign(signer: &IntentSigner, pending: &Pending, callback: &CallbackAddress, now: Timestamp) -> String {
    signer.sign(pending, callback, now).now_or_never().expect("at once").unwrap().jwt
}

#[test]
fn a_chosen_key_signs_regardless_of_the_times() {
    let further = |kid: &str, not_before| FurtherIntentKey {
        kid: kid.into(),
        key: IntentKey::generate_es256().unwrap().0,
        not_before,
    };
    let began = Some(now() - Duration::from_secs(1));
    let signer = signer().with_further(vec![further("current", began), further("published", None)]);
    let pending = pending(Channel::Web);
    let kid = || segment(&sign(&signer, &pending, &callback(&pending), now()), HEADER)["kid"].clone();
    let signing_kids = || signer.keys(now()).into_iter().filter(|key| key.signs).map(|key| key.kid).collect::<Vec<_>>();
    assert_eq!((kid(), signing_kids()), ("current".into(), vec!["current".to_owned()]));
    for chosen in ["published", "key-1", "current"] {
        assert!(signer.choose(Some(chosen)) && signer.has_key(chosen));
        assert_eq!((kid(), signing_kids()), (chosen.into(), vec![chosen.to_owned()]));
    }
    signer.choose(Some("key-1"));
    assert!(!signer.choose(Some("unknown")) && !signer.has_key("unknown"), "the settings decide then");
    assert_eq!(kid(), "current");
    signer.choose(Some("key-1"));
    assert!(signer.choose(None));
    assert_eq!(kid(), "current");
    let times: Vec<_> = signer.keys(now()).into_iter().map(|key| (key.is_first, key.signs_from)).collect();
    assert_eq!(times, [(true, None), (false, began), (false, None)]);
}

#[test]
fn an_intent_is_rebuilt_while_its_key_signs_and_it_has_not_expired() {
    let pending = pending(Channel::Web);
    let address = callback(&pending);
    for key in [IntentKey::from_pem(rsa_pem()).unwrap(), IntentKey::generate_es256().unwrap().0] {
        let further =
            FurtherIntentKey { kid: "next".into(), key: IntentKey::generate_es256().unwrap().0, not_before: None };
        let signer = IntentSigner::new(key, settings()).with_further(vec![further]);
        let signed = signer.sign(&pending, &address, now()).now_or_never().expect("at once").unwrap();
        let stored = signed.stored.unwrap();
        let rebuild_after =
            |seconds: u64| signer.rebuild(&pending, &address, &stored, now() + Duration::from_secs(seconds));
        assert_eq!(rebuild_after(0).as_ref(), Some(&signed.jwt));
        let quarter = settings().lifetime.as_secs() / 4;
        assert_eq!(
            (rebuild_after(quarter - 1), rebuild_after(quarter)),
            (Some(signed.jwt), None),
            "an intent that expires before its transaction is reused for a quarter of its lifetime"
        );

        let other = Pending { id: TxnId::generate(pending.client.partition(), 0), ..pending.clone() };
        assert_eq!(signer.rebuild(&other, &callback(&other), &stored, now()), None);
        let renamed = IntentSettings { client_id: "another".into(), ..settings() };
        let other_signer = IntentSigner::new(IntentKey::from_pem(rsa_pem()).unwrap(), renamed);
        assert_eq!(other_signer.rebuild(&pending, &address, &stored, now()), None, "the settings differ");
        assert_eq!(signer.rebuild(&pending, &address, &stored[..stored.len() - 1], now()), None);
        signer.choose(Some("next"));
        assert_eq!(rebuild_after(0), None, "another key signs");
    }
    let as_long_as_transaction = IntentSettings { lifetime: Duration::from_secs(900), ..settings() };
    let signer = IntentSigner::new(IntentKey::generate_es256().unwrap().0, as_long_as_transaction);
    let signed = signer.sign(&pending, &address, pending.opened_at).now_or_never().expect("at once").unwrap();
    let rebuild_at = |time| signer.rebuild(&pending, &address, signed.stored.as_deref().unwrap(), time);
    let end = pending.expires_at;
    assert_eq!(
        (rebuild_at(end - Duration::from_millis(1)), rebuild_at(end)),
        (Some(signed.jwt.clone()), None),
        "the intent expires with its transaction"
    );
}

#[test]
fn the_payload_has_exactly_the_members_of_the_protocol() {
    let pending = pending(Channel::Web);
    let address = callback(&pending);
    let payload = segment(&sign(&signer(), &pending, &address, now()), PAYLOAD);
    let mut expected = serde_json::json!({
        "txn": pending.id, "i": "credential", "lang": "23", "sc": format!("0000010000011000{}", "0".repeat(48)),
        "pop": 1,
        "ch": "web", "m": 1, "ac": "client-7", "sa": "reg-9", "cb": address.url, "aud": "https://verify.example",
        "iss": "verifier.example", "iat": 1_799_999_991, "exp": 1_800_000_301,
    });
    expected["jti"] = payload["jti"].clone();
    assert_eq!(payload, expected);
    assert!(uuid::Uuid::try_parse(payload["jti"].as_str().unwrap()).is_ok());
}

#[test]
fn the_header_names_algorithm_type_and_key() {
    let pending = pending(Channel::Web);
    for (key, algorithm) in
        [(IntentKey::from_pem(rsa_pem()).unwrap(), "RS256"), (IntentKey::generate_es256().unwrap().0, "ES256")]
    {
        let jwt = sign(&IntentSigner::new(key, settings()), &pending, &callback(&pending), now());
        assert_eq!(
            segment(&jwt, HEADER),
            serde_json::json!({"alg": algorithm, "typ": "credential-req+jwt", "kid": "key-1"})
        );
    }
}

#[test]
fn keys_survive_pem_and_their_jwk_verifies_their_signatures() {
    let pending = pending(Channel::Qr);
    let (ec, ec_pem) = IntentKey::generate_es256().unwrap();
    let reread = IntentKey::from_pem(&ec_pem).unwrap();
    assert_eq!(reread.public_jwk(), ec.public_jwk());
    for coordinate in ["x", "y"] {
        assert_eq!(from_base64url(ec.public_jwk()[coordinate].as_str().unwrap()).unwrap().len(), 32);
    }
    for key in [reread, IntentKey::from_pem(rsa_pem()).unwrap()] {
        let signer = IntentSigner::new(key, settings());
        let jwt = sign(&signer, &pending, &callback(&pending), now());
        assert_eq!(verify(&jwt, &signer.public_jwks()[0]).unwrap(), decode_unverified(&jwt).unwrap());
        assert_eq!(signer.public_jwks()[0]["kid"], "key-1");
        let other = IntentKey::generate_es256().unwrap().0.public_jwk();
        assert!(verify(&jwt, &other).is_err());
        let (signed_text, _) = jwt.rsplit_once('.').unwrap();
        assert!(verify(&format!("{signed_text}.{}", base64url(&[0; 64])), &signer.public_jwks()[0]).is_err());
    }
}

#[test]
fn a_pkcs1_key_is_read() {
    let pkcs8 = pem::parse(rsa_pem()).unwrap();
    // In PKCS#8 a fixed frame precedes the PKCS#1 document of an RSA key (RFC 5958, RFC 8017).
    const FRAME_BYTES: usize = 26;
    let pkcs1 = pem::encode(&pem::Pem::new("RSA PRIVATE KEY", &pkcs8.contents()[FRAME_BYTES..]));
    let (from_pkcs1, from_pkcs8) = (IntentKey::from_pem(&pkcs1).unwrap(), IntentKey::from_pem(rsa_pem()).unwrap());
    assert_eq!(from_pkcs1.public_jwk(), from_pkcs8.public_jwk());
}

#[test]
fn each_kind_of_unusable_key_has_its_refusal() {
    let refusal = |text: &str| IntentKey::from_pem(text).unwrap_err();
    assert_eq!(refusal("not a key"), IntentKeyError::NotPem);
    assert_eq!(refusal(&pem::encode(&pem::Pem::new("CERTIFICATE", vec![1]))), IntentKeyError::OtherKind);
    assert_eq!(refusal(&pem::encode(&pem::Pem::new("EC PRIVATE KEY", vec![1]))), IntentKeyError::OtherKind);
    assert_eq!(refusal(&pem::encode(&pem::Pem::new("PRIVATE KEY", vec![1, 2, 3]))), IntentKeyError::Unusable);
    assert!(!format!("{:?}", IntentKey::from_pem(rsa_pem()).unwrap()).contains("PRIVATE"));
}

#[test]
fn only_a_native_android_app_is_in_the_intent() {
    let android =
        Channel::Android(Box::new(AndroidApp { app_id: "com.example.app".into(), app_signature: "c2ln".into() }));
    for (channel, name, has_app) in
        [(android, "app", true), (Channel::Ios, "app", false), (Channel::Qr, "qr", false), (Channel::Web, "web", false)]
    {
        let pending = pending(channel);
        let intent = decode_unverified(&sign(&signer(), &pending, &callback(&pending), now())).unwrap();
        assert_eq!(intent.ch, name);
        assert_eq!(intent.aid.is_some() && intent.asig.is_some(), has_app);
        assert_eq!(intent.aid.is_none() && intent.asig.is_none(), !has_app);
        assert_eq!(intent.requested(), pending.terms.claims);
    }
}

#[test]
fn language_face_scan_and_name_hint_follow_the_request() {
    let mut pending = pending(Channel::Web);
    pending.terms.language = Language::from_code(6).unwrap();
    pending.terms.face_auth = false;
    pending.terms.extras =
        Some(Box::new(OptionalTerms { name_hint: Some("Asha \"R\"".into()), ..OptionalTerms::default() }));
    let intent = decode_unverified(&sign(&signer(), &pending, &callback(&pending), now())).unwrap();
    assert_eq!((intent.lang.as_str(), intent.m, intent.ht.as_deref()), ("6", 0, Some("Asha \"R\"")));
    assert!(!format!("{intent:?}").contains("Asha"));
}

#[test]
fn mode_and_language_have_the_configured_form() {
    let mut pending = pending(Channel::Web);
    let signed_with = |pending: &Pending, change: fn(&mut IntentSettings)| {
        let mut settings = settings();
        change(&mut settings);
        let signer = IntentSigner::new(IntentKey::from_pem(rsa_pem()).unwrap(), settings);
        let jwt = sign(&signer, pending, &callback(pending), now());
        let payload = segment(&jwt, PAYLOAD);
        (payload["i"].clone(), payload["m"].clone(), payload["lang"].clone(), decode_unverified(&jwt).unwrap().m)
    };
    for (code, iso) in [(6, "hi"), (23, "en"), (15, "or"), (5, "en"), (12, "en")] {
        pending.terms.language = Language::from_code(code).unwrap();
        assert_eq!(signed_with(&pending, |_| {}), ("credential".into(), 1.into(), code.to_string().into(), 1));
        let changed = signed_with(&pending, |settings| {
            settings.item = "CREDENTIAL".into();
            settings.mode = ModeForm::Text;
            settings.language = LanguageForm::Iso;
        });
        assert_eq!(changed, ("CREDENTIAL".into(), "1".into(), iso.into(), 1));
    }
}

#[test]
fn an_intent_never_outlives_its_transaction() {
    let pending = pending(Channel::Web);
    let signer = IntentSigner::new(
        IntentKey::generate_es256().unwrap().0,
        IntentSettings { lifetime: Duration::from_secs(u64::MAX), ..settings() },
    );
    let intent = decode_unverified(&sign(&signer, &pending, &callback(&pending), now())).unwrap();
    assert_eq!(intent.exp, pending.expires_at.seconds());
}

#[test]
fn every_intent_has_its_own_id() {
    let pending = pending(Channel::Web);
    let signer = signer();
    let jti = || decode_unverified(&sign(&signer, &pending, &callback(&pending), now())).unwrap().jti;
    assert_ne!(jti(), jti());
}

#[test]
fn each_kind_of_malformed_intent_has_its_error() {
    assert_eq!(decode_unverified(&"a".repeat(INTENT_BYTES_MAX)), Err(IntentReadError::NotAJws));
    assert_eq!(decode_unverified(&"a".repeat(INTENT_BYTES_MAX + 1)), Err(IntentReadError::TooLong));
    for text in ["", "a", "a.b", "e30.e30", "e30.e30.e30.e30", "e30=.e30.e30", "bm8.e30.e30"] {
        assert_eq!(decode_unverified(text), Err(IntentReadError::NotAJws), "{text}");
    }
    assert_eq!(decode_unverified("e30.e30.e30"), Err(IntentReadError::Fields));
    assert_eq!(verify("e30.e30.e30", &Value::Null), Err(IntentReadError::Key));
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in ".{0,300}",
        dotted in "[A-Za-z0-9_-]{0,60}\\.[A-Za-z0-9_-]{0,60}\\.[A-Za-z0-9_-]{0,60}") {
        let jwk = serde_json::json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"});
        for text in [text, dotted] {
            let _ = decode_unverified(&text);
            let _ = verify(&text, &jwk);
        }
    }
}

#[test]
fn a_further_key_signs_from_its_time_and_all_keys_are_published() {
    let new_key = || IntentKey::generate_es256().unwrap().0;
    let after = |seconds| now() + Duration::from_secs(seconds);
    let further = |kid: &str, not_before| FurtherIntentKey { kid: kid.to_owned(), key: new_key(), not_before };
    let signer = IntentSigner::new(new_key(), settings()).with_further(vec![
        further("retired", None),
        further("after-next", Some(after(200))),
        further("next", Some(after(100))),
    ]);
    let pending = pending(Channel::Qr);
    let published = signer.public_jwks();
    assert_eq!(
        published.iter().map(|jwk| jwk["kid"].as_str().unwrap()).collect::<Vec<_>>(),
        ["key-1", "retired", "after-next", "next"]
    );
    for (seconds, kid) in
        [(0, "key-1"), (99, "key-1"), (100, "next"), (199, "next"), (200, "after-next"), (9_999, "after-next")]
    {
        let jwt = sign(&signer, &pending, &callback(&pending), after(seconds));
        assert_eq!(segment(&jwt, HEADER)["kid"], kid, "{seconds}");
        assert!(verify(&jwt, published.iter().find(|jwk| jwk["kid"] == kid).unwrap()).is_ok());
    }
}
