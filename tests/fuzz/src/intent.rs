//! Intents and QR values: those of the service are readable, and reading those of strangers is bounded.

use futures_util::FutureExt as _;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_authority::callback_address::CallbackAddresses;
use sakshi_authority::intent::{IntentKey, IntentSettings, IntentSigner, decode_unverified, verify};
use sakshi_authority::launch::AppLinks;
use sakshi_authority::qr::{decode_qr_payload, qr_digits, qr_payload};
use sakshi_domain::channel::{AndroidApp, Channel};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::limits::INTENT_BYTES_MAX;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{OptionalTerms, Pending, Terms};

use crate::CANARY;

/// Returns the signer of all intents, made at the first call.
fn signer() -> &'static IntentSigner {
    static SIGNER: OnceLock<IntentSigner> = OnceLock::new();
    SIGNER.get_or_init(|| {
        let settings = IntentSettings {
            kid: "key-1".into(),
            typ: "credential-req+jwt".into(),
            issuer: "verifier.example".into(),
            lifetime: Duration::from_secs(300),
            client_id: "client-7".into(),
            registration: "reg-9".into(),
            scope_length: 64,
            ..IntentSettings::default()
        };
        IntentSigner::new(IntentKey::generate_es256().unwrap().0, settings)
    })
}

/// Target: an intent of a stranger, as lines of header, payload and signature, or as text.
pub(crate) fn read(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let text = match input.split('\n').collect::<Vec<_>>()[..] {
        [header, payload, signature] => format!("{}.{}.{}", part(header), part(payload), part(signature)),
        _ => input.to_owned(),
    };
    match decode_unverified(&text) {
        Ok(claims) => {
            assert!(text.len() <= INTENT_BYTES_MAX);
            assert!(!format!("{:?}", claims.ht).is_empty() && claims.requested().iter().count() <= 30);
            let name_hint = claims.ht.as_deref().filter(|hint| hint.contains(CANARY));
            assert!(name_hint.is_none_or(|hint| !format!("{claims:?}").contains(hint)), "the debug text shows a name");
        }
        Err(error) => assert!(!format!("{error} {error:?}").contains(CANARY)),
    }
    let public = &signer().public_jwks()[0];
    assert!(verify(&text, public).is_err(), "the intent is not signed");
}

/// Target: a transaction, whose signed intent must read as requested.
pub(crate) fn signed(data: &[u8]) {
    let Some((bits, rest)) = data.split_first_chunk::<4>() else { return };
    let Some((&[channel, language, face], rest)) = rest.split_first_chunk::<3>() else { return };
    let text = String::from_utf8_lossy(rest);
    let (app, hint) = text.split_once('\n').unwrap_or((&text, ""));
    let languages: Vec<Language> = Language::all().collect();
    let shortened = |text: &str| text.chars().take(100).collect::<String>();
    let channel = match channel % 4 {
        0 => Channel::Web,
        1 => Channel::Qr,
        2 => Channel::Ios,
        _ => {
            Channel::Android(Box::new(AndroidApp { app_id: shortened(app), app_signature: "c2lnbmF0dXJl".to_owned() }))
        }
    };
    let client: ClientId = "cl_5f0c1d2e3b4a49788695a4b3c2d1e0f9".parse().unwrap();
    let opened_at = Timestamp::from_millis(1_800_000_000_000);
    let name_hint = Some(shortened(hint)).filter(|hint| !hint.is_empty());
    let terms = Terms {
        claims: ClaimSet::from_bits(u32::from_le_bytes(*bits) & 0x3fff_ffff),
        channel,
        language: languages[usize::from(language) % languages.len()],
        face_auth: face & 1 == 1,
        webhook_url: None,
        request_id: RequestId::parse("r").unwrap(),
        extras: Some(Box::new(OptionalTerms { name_hint: name_hint.clone(), ..OptionalTerms::default() })),
    };
    let (id, app) = (TxnId::from_bytes([0x40; 16]), "app_0c1d2e3b4a5f49788695a4b3c2d1e0f9".parse::<AppId>().unwrap());
    let pending =
        Pending { id, client, app, event: None, opened_at, expires_at: opened_at + Duration::from_secs(900), terms };
    let callback = CallbackAddresses::new("https://verify.example/base", &[[3; 32]]).unwrap().for_txn(id);
    let jwt = signer()
        .sign(&pending, &callback, opened_at)
        .now_or_never()
        .expect("at once")
        .expect("an intent is signed")
        .jwt;
    let claims = verify(&jwt, &signer().public_jwks()[0]).expect("a signed intent is readable");
    assert_eq!((claims.requested(), claims.txn, claims.ht), (pending.terms.claims, id.to_string(), name_hint));
    assert_eq!(
        (claims.cb, claims.lang, claims.m),
        (callback.url, pending.terms.language.code().to_string(), u8::from(pending.terms.face_auth))
    );
    assert_eq!(claims.aid.is_some(), matches!(pending.terms.channel, Channel::Android(_)));
    assert_eq!(decode_qr_payload(&qr_payload("https://qr.example", &jwt)).as_ref(), Ok(&jwt));
    let links = AppLinks {
        android_web_action: "org.example.WEB".into(),
        android_app_action: "org.example.APP".into(),
        ios_scheme: "idapp".into(),
        ios_host: "verify".into(),
        ..AppLinks::default()
    };
    let native = links.android_native(&format!("{jwt}{hint}"));
    assert!(native.matches(';').count() == 3 && native.matches('#').count() == 1, "a text ends its value early");
}

/// Target: a QR value or a small gzip of a stranger (`#`), or a QR value made from a text (`=`).
pub(crate) fn qr(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let text = match first {
        b'#' => rest.iter().fold(String::new(), |text, byte| text + &byte.to_string()),
        b'=' => {
            // Repetition makes a long text of a short input.
            let jwt: String = rest.iter().map(|byte| char::from(byte & 0x7f)).collect();
            let times = rest.first().map_or(1, |byte| usize::from(*byte) * 8 + 1);
            let jwt = if jwt.len() < 16 { jwt.repeat(times) } else { jwt };
            let digits = qr_digits(&jwt);
            match decode_qr_payload(&digits) {
                Ok(read) => assert_eq!(read, jwt),
                Err(_) => assert!(jwt.len() > INTENT_BYTES_MAX || digits.len() > 8_192),
            }
            return;
        }
        _ => String::from_utf8_lossy(data).into_owned(),
    };
    if let Ok(read) = decode_qr_payload(&text) {
        assert!(read.chars().count() <= INTENT_BYTES_MAX, "the text is longer than an intent");
        let digits = qr_digits(&read);
        assert!(
            digits.len() > 8_192 || decode_qr_payload(&digits) == Ok(read),
            "a text differs after writing and reading"
        );
    }
}
