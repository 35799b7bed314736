//! Every rule by which a credential is refused, over HTTP: the answer is 400, the transaction stays
//! pending, and the operator can see which rule it was.

use serde_json::{Value, json};

use sakshi_kit::backend::Opened;
use sakshi_kit::forge::{Draft, Forge, digest_of, disclosure, encode, now, with_disclosures};
use sakshi_kit::universe::Universe;

/// The good credential with one thing changed before it is signed.
fn changed(forge: &Forge, change: impl FnOnce(&mut Draft)) -> String {
    let mut draft = forge.good();
    change(&mut draft);
    forge.sign(&draft)
}

/// The good credential with one more disclosure, whose digest is signed.
fn with_disclosure(forge: &Forge, content: &Value) -> String {
    changed(forge, |draft| add(draft, encode(content.to_string())))
}

fn add(draft: &mut Draft, text: String) {
    draft.payload["_sd"].as_array_mut().expect("digests").push(digest_of(&text).into());
    draft.disclosures.push(text);
}

fn envelopes(forge: &Forge) -> Vec<(&'static str, String)> {
    let good = forge.sign(&forge.good());
    let jws = good.split('~').next().expect("a JWS").to_owned();
    let [header, payload, signature] = [0, 1, 2].map(|part| jws.split('.').nth(part).expect("a segment").to_owned());
    let many: Vec<(String, Value)> = (0..257).map(|n| (format!("claim{n}"), json!(n))).collect();
    let many: Vec<(&str, Value)> = many.iter().map(|(name, value)| (&**name, value.clone())).collect();
    let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
    vec![
        ("not_an_sd_jwt", jws.clone()),
        ("not_an_sd_jwt", "garbage".to_owned()),
        ("not_an_sd_jwt", good.replacen('~', "~~", 1)),
        ("segment_count", format!("{header}.{payload}~")),
        ("segment_count", format!("{jws}.{signature}~")),
        ("empty_segment", format!("{header}.{payload}.~")),
        ("not_base64url", format!("{header}=.{payload}.{signature}~")),
        ("not_base64url", format!("{header}.{payload}.+/{signature}~")),
        ("not_base64url", format!("{good}a+b~")),
        ("not_json", format!("{}.{payload}.{signature}~", encode("[]"))),
        ("too_many_disclosures", forge.sign(&forge.draft(&many))),
        ("too_deep", forge.sign(&forge.draft(&[("residentName", deep)]))),
    ]
}

fn headers(forge: &Forge) -> Vec<(&'static str, String)> {
    let header = |name: &str, value: Value| changed(forge, |draft| draft.header[name] = value);
    let good = forge.sign(&forge.good());
    let [head, rest] = good.split_once('.').map(<[&str; 2]>::from).expect("a JWS");
    let [body, tail] = rest.split_once('.').map(<[&str; 2]>::from).expect("a JWS");
    let other = Forge::generate();
    let mut payload = forge.good().payload;
    payload["exp"] = json!(now() + 999_999);
    let hmac = {
        let head = encode(json!({"alg": "HS256", "typ": "vc+sd-jwt", "kid": "issuer-key-1"}).to_string());
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, forge.jwks().to_string().as_bytes());
        let tag = aws_lc_rs::hmac::sign(&key, format!("{head}.{body}").as_bytes());
        with_disclosures(&format!("{head}.{body}.{}", encode(tag.as_ref())), &[])
    };
    vec![
        ("algorithm_not_allowed", header("alg", json!("none"))),
        ("algorithm_not_allowed", header("alg", json!("ES384"))),
        ("algorithm_not_allowed", header("alg", json!("es256"))),
        ("algorithm_not_allowed", hmac),
        ("critical_header", header("crit", json!(["exp"]))),
        ("type_not_allowed", header("typ", json!("JWT"))),
        ("type_not_allowed", header("typ", Value::Null)),
        ("key_in_token", header("jwk", other.issuer.public_jwk())),
        ("key_in_token", header("x5c", json!(["MIIB"]))),
        ("key_in_token", header("jku", json!("https://issuer.example/keys"))),
        ("key_id_missing", header("kid", json!(7))),
        ("key_id_missing", changed(forge, |draft| drop(draft.header.as_object_mut().expect("an object").remove("kid")))),
        ("key_id_unknown", header("kid", json!("another-key"))),
        ("signature_invalid", other.sign(&forge.good())),
        ("signature_invalid", format!("{head}.{}.{tail}", encode(payload.to_string()))),
    ]
}

fn disclosures(forge: &Forge) -> Vec<(&'static str, String)> {
    let payload = |name: &str, value: Value| changed(forge, |draft| draft.payload[name] = value);
    let element = encode(json!(["salt-of-an-element", "7"]).to_string());
    let unreferenced = disclosure("email", &json!("x@mail.example"));
    vec![
        ("hash_algorithm_not_allowed", payload("_sd_alg", json!("SHA-512"))),
        ("hash_algorithm_not_allowed", payload("_sd_alg", json!("Sha-256"))),
        ("hash_algorithm_not_allowed", payload("_sd_alg", json!(256))),
        ("hash_algorithm_misplaced", payload("nested", json!({"_sd_alg": "sha-256"}))),
        ("hash_algorithm_misplaced", with_disclosure(forge, &json!(["salt", "_sd_alg", "sha-256"]))),
        ("disclosure_malformed", with_disclosure(forge, &json!(["salt", "name", "value", "more"]))),
        ("disclosure_malformed", with_disclosure(forge, &json!(["salt"]))),
        ("disclosure_malformed", with_disclosure(forge, &json!({"salt": "name"}))),
        ("disclosure_misplaced", with_disclosure(forge, &json!(["salt", "an array's element"]))),
        ("salt_not_a_string", with_disclosure(forge, &json!([7, "name", "value"]))),
        ("name_not_a_string", with_disclosure(forge, &json!(["salt", 7, "value"]))),
        ("name_reserved", with_disclosure(forge, &json!(["salt", "_sd", []]))),
        ("name_reserved", with_disclosure(forge, &json!(["salt", "...", "value"]))),
        ("name_taken", with_disclosure(forge, &json!(["salt", "iss", "https://other.example"]))),
        ("name_taken", with_disclosure(forge, &json!(["salt", "residentName", "Another Person"]))),
        ("digests_malformed", payload("_sd", json!("digest"))),
        ("digests_malformed", changed(forge, |draft| draft.payload["_sd"].as_array_mut().expect("digests").push(json!(7)))),
        (
            "array_digest_malformed",
            changed(forge, |draft| {
                draft.payload["list"] = json!([{"...": digest_of(&element), "more": 1}]);
                draft.disclosures.push(element.clone());
            }),
        ),
        (
            "digest_repeated",
            changed(forge, |draft| {
                let first = draft.payload["_sd"][0].clone();
                draft.payload["_sd"].as_array_mut().expect("digests").push(first);
            }),
        ),
        ("digest_repeated", payload("nested", json!({"_sd": [digest_of("decoy"), digest_of("decoy")]}))),
        (
            "disclosure_repeated",
            changed(forge, |draft| {
                let first = draft.disclosures[0].clone();
                draft.disclosures.push(first);
            }),
        ),
        ("disclosure_unreferenced", changed(forge, |draft| draft.disclosures.push(unreferenced.clone()))),
    ]
}

fn validity(forge: &Forge) -> Vec<(&'static str, String)> {
    let payload = |name: &str, value: Value| changed(forge, |draft| draft.payload[name] = value);
    let without = |name: &str| changed(forge, |draft| drop(draft.payload.as_object_mut().expect("an object").remove(name)));
    vec![
        ("issuer_not_trusted", payload("iss", json!("https://other.example"))),
        ("issuer_not_trusted", payload("iss", json!("https://issuer.example/"))),
        ("issuer_not_trusted", without("iss")),
        ("claim_repeated", with_disclosure(forge, &json!(["salt", "ResidentName", "Another Person"]))),
        ("too_many_values", payload("more", json!(vec![0; 9_000]))),
        ("expiry_missing", without("exp")),
        ("time_not_a_number", payload("exp", json!("tomorrow"))),
        ("time_not_a_number", payload("iat", json!("now"))),
        ("expired", payload("exp", json!(now() - 61))),
        ("not_yet_valid", payload("nbf", json!(now() + 300))),
        ("issued_in_future", payload("iat", json!(now() + 300))),
    ]
}

fn bindings(forge: &Forge, opened: &Opened) -> Vec<(&'static str, String)> {
    let good = forge.sign(&forge.good());
    let header = |name: &str, value: Value| forge.bind(&good, opened, |header, _| header[name] = value);
    let payload = |name: &str, value: Value| forge.bind(&good, opened, |_, payload| payload[name] = value);
    let unbound = |cnf: Value| forge.bind(&changed(forge, |draft| draft.payload["cnf"] = cnf), opened, |_, _| {});
    let mut thief = Forge::generate();
    thief.issuer = sakshi_sandbox::keys::SigningKey::generate().expect("a key");
    vec![
        ("key_binding_malformed", format!("{good}a.b.c")),
        ("key_binding_algorithm", header("alg", json!("none"))),
        ("key_binding_algorithm", header("alg", json!("HS256"))),
        ("key_binding_type", header("typ", json!("JWT"))),
        ("key_binding_critical", header("crit", json!(["b64"]))),
        ("holder_key_missing", unbound(json!({}))),
        ("holder_key_unusable", unbound(json!({"jwk": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}}))),
        ("key_binding_signature", thief.bind(&good, opened, |_, _| {})),
        ("key_binding_nonce", payload("nonce", json!(uuid::Uuid::new_v4()))),
        ("key_binding_audience", payload("aud", json!("https://other.example"))),
        ("key_binding_time", payload("iat", json!(now() - 400))),
        ("key_binding_time", payload("iat", json!(now() + 400))),
        ("key_binding_hash", payload("sd_hash", json!(digest_of("other")))),
    ]
}

#[tokio::test]
async fn every_refusal_rule_answers_400_and_leaves_the_transaction_pending_and_uncharged() {
    let universe = Universe::start().await;
    let (backend, phone, operator) = (universe.backend(2).await, universe.phone(), universe.operator());
    let opened = backend.open(&["name", "dob", "gender"]).await;
    let forge = &universe.forge;
    let cases = [envelopes(forge), headers(forge), disclosures(forge), validity(forge), bindings(forge, &opened)].concat();
    let mut before = operator.probe("/metrics").await.text;
    for (number, (code, credential)) in cases.iter().enumerate() {
        let answer = phone.present(&opened, credential).await;
        assert_eq!(answer.status, 400, "case {number}, {code}: {}", answer.text);
        let after = operator.probe("/metrics").await.text;
        let counted: Vec<&str> = refusals(&after).filter(|line| !before.contains(*line)).collect();
        let expected = format!("reason=\"{code}\"");
        assert!(counted.len() == 1 && counted[0].contains(&expected), "case {number}: {code} expected, {counted:?} counted");
        before = after;
    }
    assert!(backend.is_pending(&opened.txn).await);
    assert_eq!(operator.balance(&backend.client).await, 1);

    let good = forge.bind(&forge.sign(&forge.good()), &opened, |_, _| {});
    assert_eq!(phone.present(&opened, &good).await.status, 200, "what all of them were made from is accepted");
    assert_eq!(backend.result(&opened.txn).await.ok()["success"], true);
}

fn refusals(metrics: &str) -> impl Iterator<Item = &str> {
    metrics.lines().filter(|line| line.starts_with("sakshi_credentials_refused_total"))
}

#[tokio::test]
async fn where_key_binding_is_required_a_bare_credential_is_refused() {
    let universe = Universe::with(&[("AUTHORITY__KEY_BINDING", "required")]).await;
    let (backend, phone) = (universe.backend(1).await, universe.phone());
    let opened = backend.open(&["name"]).await;
    let bare = universe.forge.sign(&universe.forge.good());
    assert_eq!(phone.present(&opened, &bare).await.status, 400);
    assert!(backend.is_pending(&opened.txn).await);
    let bound = universe.forge.bind(&bare, &opened, |_, _| {});
    assert_eq!(phone.present(&opened, &bound).await.status, 200);
}

#[tokio::test]
async fn where_key_binding_is_off_a_bound_credential_is_refused() {
    let universe = Universe::with(&[("AUTHORITY__KEY_BINDING", "off")]).await;
    let (backend, phone) = (universe.backend(1).await, universe.phone());
    let opened = backend.open(&["name"]).await;
    let bare = universe.forge.sign(&universe.forge.good());
    let bound = universe.forge.bind(&bare, &opened, |_, _| {});
    assert_eq!(phone.present(&opened, &bound).await.status, 400);
    assert!(backend.is_pending(&opened.txn).await);
    assert_eq!(phone.present(&opened, &bare).await.status, 200);
}
