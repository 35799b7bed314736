//! Every rule by which a credential is refused: the response is 400, the transaction stays pending, and a metric names
//! the rule.

use serde_json::{Value, json};

use sakshi_kit::backend::Opened;
use sakshi_kit::issuer::{CredentialDraft, TestIssuer, digest_of, disclosure, encode, now, with_disclosures};
use sakshi_kit::node::TestNode;

/// The reason with which a credential must be refused, and the credential.
type RefusedCredential = (&'static str, String);

/// Returns the valid credential with one change before signing.
fn changed_credential(issuer: &TestIssuer, change: impl FnOnce(&mut CredentialDraft)) -> String {
    let mut draft = issuer.valid_draft();
    change(&mut draft);
    issuer.sign(&draft)
}

/// Returns the valid credential with one more disclosure, whose digest is signed.
fn with_disclosure(issuer: &TestIssuer, content: &Value) -> String {
    changed_credential(issuer, |draft| add_disclosure(draft, encode(content.to_string())))
}

/// Adds a disclosure and its digest.
fn add_disclosure(draft: &mut CredentialDraft, text: String) {
    draft.payload["_sd"].as_array_mut().expect("digests").push(digest_of(&text).into());
    draft.disclosures.push(text);
}

/// Returns credentials whose JWS or list of disclosures cannot be read.
fn malformed_envelopes(issuer: &TestIssuer) -> Vec<RefusedCredential> {
    let good = issuer.sign(&issuer.valid_draft());
    let jws = good.split('~').next().expect("a JWS").to_owned();
    let [header, payload, signature] = [0, 1, 2].map(|part| jws.split('.').nth(part).expect("a segment").to_owned());
    // One disclosure more than the maximum.
    let claims: Vec<(String, Value)> = (0..257).map(|number| (format!("claim{number}"), json!(number))).collect();
    let claims: Vec<(&str, Value)> = claims.iter().map(|(name, value)| (&**name, value.clone())).collect();
    let nested_value = (0..20).fold(json!(1), |inner, _| json!([inner]));
    vec![
        ("not_an_sd_jwt", jws.clone()),
        ("not_an_sd_jwt", "garbage".to_owned()),
        ("not_an_sd_jwt", good.replacen('~', "~~", 1)),
        ("segment_count", format!("{header}.{payload}~")),
        ("segment_count", format!("{jws}.{signature}~")),
        ("empty_segment", format!("{header}.{payload}.~")),
        ("base64_padding", format!("{header}=.{payload}.{signature}~")),
        ("base64_alphabet", format!("{header}.{payload}.+/{signature}~")),
        ("base64_alphabet", format!("{good}a+b~")),
        ("base64_line_end", format!("{good}ab\n~")),
        ("not_base64url", format!("{good}a*b~")),
        ("not_json", format!("{}.{payload}.{signature}~", encode("[]"))),
        ("too_many_disclosures", issuer.sign(&issuer.draft(&claims))),
        ("too_deep", issuer.sign(&issuer.draft(&[("residentName", nested_value)]))),
    ]
}

/// Returns credentials with a wrong header or signature.
fn bad_headers(issuer: &TestIssuer) -> Vec<RefusedCredential> {
    let header = |name: &str, value: Value| changed_credential(issuer, |draft| draft.header[name] = value);
    let good = issuer.sign(&issuer.valid_draft());
    let [header_part, after_header] = good.split_once('.').map(<[&str; 2]>::from).expect("a JWS");
    let [payload_part, signature_part] = after_header.split_once('.').map(<[&str; 2]>::from).expect("a JWS");
    let other_issuer = TestIssuer::generate();
    let mut later_expiry = issuer.valid_draft().payload;
    later_expiry["exp"] = json!(now() + 999_999);
    let signed_with_hmac = {
        let header_part = encode(json!({"alg": "HS256", "typ": "vc+sd-jwt", "kid": "issuer-key-1"}).to_string());
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, issuer.jwks().to_string().as_bytes());
        let tag = aws_lc_rs::hmac::sign(&key, format!("{header_part}.{payload_part}").as_bytes());
        with_disclosures(&format!("{header_part}.{payload_part}.{}", encode(tag.as_ref())), &[])
    };
    vec![
        ("algorithm_not_allowed", header("alg", json!("none"))),
        ("algorithm_not_allowed", header("alg", json!("ES384"))),
        ("algorithm_not_allowed", header("alg", json!("es256"))),
        ("algorithm_not_allowed", signed_with_hmac),
        ("critical_header", header("crit", json!(["exp"]))),
        ("type_not_allowed", header("typ", json!("JWT"))),
        ("type_not_allowed", header("typ", Value::Null)),
        ("key_in_token", header("jwk", other_issuer.issuer.public_jwk())),
        ("key_in_token", header("x5c", json!(["MIIB"]))),
        ("key_in_token", header("jku", json!("https://issuer.example/keys"))),
        ("key_id_missing", header("kid", json!(7))),
        (
            "key_id_missing",
            changed_credential(issuer, |draft| drop(draft.header.as_object_mut().expect("an object").remove("kid"))),
        ),
        ("key_id_unknown", header("kid", json!("another-key"))),
        ("signature_invalid", other_issuer.sign(&issuer.valid_draft())),
        ("signature_invalid", format!("{header_part}.{}.{signature_part}", encode(later_expiry.to_string()))),
    ]
}

/// Returns credentials with wrong digests or disclosures.
fn bad_disclosures(issuer: &TestIssuer) -> Vec<RefusedCredential> {
    let payload = |name: &str, value: Value| changed_credential(issuer, |draft| draft.payload[name] = value);
    let element = encode(json!(["salt-of-an-element", "7"]).to_string());
    let unreferenced = disclosure("email", &json!("x@mail.example"));
    vec![
        ("hash_algorithm_not_allowed", payload("_sd_alg", json!("SHA-512"))),
        ("hash_algorithm_not_allowed", payload("_sd_alg", json!("Sha-256"))),
        ("hash_algorithm_not_allowed", payload("_sd_alg", json!(256))),
        ("hash_algorithm_misplaced", payload("nested", json!({"_sd_alg": "sha-256"}))),
        ("hash_algorithm_misplaced", with_disclosure(issuer, &json!(["salt", "_sd_alg", "sha-256"]))),
        ("disclosure_malformed", with_disclosure(issuer, &json!(["salt", "name", "value", "more"]))),
        ("disclosure_malformed", with_disclosure(issuer, &json!(["salt"]))),
        ("disclosure_malformed", with_disclosure(issuer, &json!({"salt": "name"}))),
        ("disclosure_misplaced", with_disclosure(issuer, &json!(["salt", "an array's element"]))),
        ("salt_not_a_string", with_disclosure(issuer, &json!([7, "name", "value"]))),
        ("name_not_a_string", with_disclosure(issuer, &json!(["salt", 7, "value"]))),
        ("name_reserved", with_disclosure(issuer, &json!(["salt", "_sd", []]))),
        ("name_reserved", with_disclosure(issuer, &json!(["salt", "...", "value"]))),
        ("name_taken", with_disclosure(issuer, &json!(["salt", "iss", "https://other.example"]))),
        ("name_taken", with_disclosure(issuer, &json!(["salt", "residentName", "Another Person"]))),
        ("digests_malformed", payload("_sd", json!("digest"))),
        (
            "digests_malformed",
            changed_credential(issuer, |draft| draft.payload["_sd"].as_array_mut().expect("digests").push(json!(7))),
        ),
        (
            "array_digest_malformed",
            changed_credential(issuer, |draft| {
                draft.payload["list"] = json!([{"...": digest_of(&element), "more": 1}]);
                draft.disclosures.push(element.clone());
            }),
        ),
        (
            "digest_repeated",
            changed_credential(issuer, |draft| {
                let first = draft.payload["_sd"][0].clone();
                draft.payload["_sd"].as_array_mut().expect("digests").push(first);
            }),
        ),
        ("digest_repeated", payload("nested", json!({"_sd": [digest_of("decoy"), digest_of("decoy")]}))),
        (
            "disclosure_repeated",
            changed_credential(issuer, |draft| {
                let first = draft.disclosures[0].clone();
                draft.disclosures.push(first);
            }),
        ),
        ("disclosure_unreferenced", changed_credential(issuer, |draft| draft.disclosures.push(unreferenced.clone()))),
    ]
}

/// Returns credentials with wrong claims: issuer, times, too many or repeated values.
fn bad_claims(issuer: &TestIssuer) -> Vec<RefusedCredential> {
    let payload = |name: &str, value: Value| changed_credential(issuer, |draft| draft.payload[name] = value);
    let without = |name: &str| {
        changed_credential(issuer, |draft| drop(draft.payload.as_object_mut().expect("an object").remove(name)))
    };
    vec![
        ("issuer_not_trusted", payload("iss", json!("https://other.example"))),
        ("issuer_not_trusted", payload("iss", json!("https://issuer.example/"))),
        ("issuer_not_trusted", without("iss")),
        ("claim_repeated", with_disclosure(issuer, &json!(["salt", "ResidentName", "Another Person"]))),
        ("too_many_values", payload("more", json!(vec![0; 9_000]))),
        ("expiry_missing", without("exp")),
        ("time_not_a_number", payload("exp", json!("tomorrow"))),
        ("time_not_a_number", payload("iat", json!("now"))),
        ("expired", payload("exp", json!(now() - 61))),
        ("not_yet_valid", payload("nbf", json!(now() + 300))),
        ("issued_in_future", payload("iat", json!(now() + 300))),
    ]
}

/// Returns credentials with a wrong key binding: the holder's signature over the transaction.
fn bad_bindings(issuer: &TestIssuer, opened: &Opened) -> Vec<RefusedCredential> {
    let good = issuer.sign(&issuer.valid_draft());
    let header = |name: &str, value: Value| issuer.bind(&good, opened, |header, _| header[name] = value);
    let payload = |name: &str, value: Value| issuer.bind(&good, opened, |_, payload| payload[name] = value);
    let unbound =
        |cnf: Value| issuer.bind(&changed_credential(issuer, |draft| draft.payload["cnf"] = cnf), opened, |_, _| {});
    let mut thief = TestIssuer::generate();
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
async fn every_refused_credential_gets_400_and_leaves_the_transaction_pending() {
    let node = TestNode::start().await;
    let (backend, identity_app, operator) = (node.backend_with_credits(2).await, node.identity_app(), node.operator());
    let opened = backend.open(&["name", "dob", "gender"]).await;
    let issuer = &node.issuer;
    let cases = [
        malformed_envelopes(issuer),
        bad_headers(issuer),
        bad_disclosures(issuer),
        bad_claims(issuer),
        bad_bindings(issuer, &opened),
    ]
    .concat();
    let mut before = operator.probe("/metrics").await.text;
    for (number, (code, credential)) in cases.iter().enumerate() {
        let answer = identity_app.present(&opened, credential).await;
        assert_eq!(answer.status, 400, "case {number}, {code}: {}", answer.text);
        let after = operator.probe("/metrics").await.text;
        let new_lines: Vec<&str> = refusal_lines(&after).filter(|line| !before.contains(*line)).collect();
        let expected = format!("reason=\"{code}\"");
        assert!(
            new_lines.len() == 1 && new_lines[0].contains(&expected),
            "case {number}: {code} expected, {new_lines:?} counted"
        );
        before = after;
    }
    assert!(backend.is_pending(&opened.txn).await);
    assert_eq!(operator.balance(&backend.client).await, 1);

    let good = issuer.bind(&issuer.sign(&issuer.valid_draft()), &opened, |_, _| {});
    assert_eq!(identity_app.present(&opened, &good).await.status, 200, "the unchanged credential is accepted");
    assert_eq!(backend.result(&opened.txn).await.ok()["success"], true);
}

/// Returns the lines of the counter of refused credentials.
fn refusal_lines(metrics: &str) -> impl Iterator<Item = &str> {
    metrics.lines().filter(|line| line.starts_with("sakshi_credentials_refused_total"))
}

#[tokio::test]
async fn a_bare_credential_is_refused_if_key_binding_is_required() {
    let node = TestNode::start_with(&[("AUTHORITY__KEY_BINDING", "required")]).await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let bare = node.issuer.sign(&node.issuer.valid_draft());
    assert_eq!(identity_app.present(&opened, &bare).await.status, 400);
    assert!(backend.is_pending(&opened.txn).await);
    let bound = node.issuer.bind(&bare, &opened, |_, _| {});
    assert_eq!(identity_app.present(&opened, &bound).await.status, 200);
}

#[tokio::test]
async fn a_bound_credential_is_refused_if_key_binding_is_off() {
    let node = TestNode::start_with(&[("AUTHORITY__KEY_BINDING", "off")]).await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let bare = node.issuer.sign(&node.issuer.valid_draft());
    let bound = node.issuer.bind(&bare, &opened, |_, _| {});
    assert_eq!(identity_app.present(&opened, &bound).await.status, 400);
    assert!(backend.is_pending(&opened.txn).await);
    assert_eq!(identity_app.present(&opened, &bare).await.status, 200);
}
