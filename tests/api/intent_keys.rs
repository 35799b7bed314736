//! `GET /.well-known/jwks.json`: the keys that verify intents.

use std::time::Duration;

use sakshi_authority::intent::{IntentKey, IntentReadError, verify};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};

/// Returns the published key that the header of an intent names.
fn key_of<'a>(jwks: &'a Value, jwt: &str) -> &'a Value {
    use base64::Engine as _;
    let header = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(jwt.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let mut keys = jwks["keys"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|key| key["kid"] == header["kid"] && key["alg"] == header["alg"]);
    let key = keys.next().expect("the key of the intent");
    assert!(keys.next().is_none(), "a kid names one key");
    key
}

#[tokio::test]
async fn the_next_key_is_published_before_it_signs_and_takes_over_at_its_time() {
    let mut node = TestNode::unlaunched(&[]);
    let path = |name: &str| node.directory.path().join(name).display().to_string();
    for name in ["next.pem", "later.pem"] {
        std::fs::write(path(name), IntentKey::generate_es256().unwrap().1).unwrap();
    }
    let takeover_time = SystemClock.now() + Duration::from_secs(2);
    let further_keys =
        format!("next {} {takeover_time}, later {} 2099-01-01T00:00:00Z", path("next.pem"), path("later.pem"));
    node.set("AUTHORITY__FURTHER_INTENT_KEYS", &further_keys);
    node.launch().await;
    let backend = node.backend_with_credits(1_000).await;
    let jwks = node.get("/.well-known/jwks.json").await.ok();
    let kids: Vec<&str> = jwks["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap()).collect();
    assert_eq!(kids, ["sakshi-1", "next", "later"]);
    eventually("an intent of the next key", TIMEOUT, || async {
        let opened = backend.open(&["name"]).await;
        let jwt = opened.answer["intentJwt"].as_str().unwrap();
        let key = key_of(&jwks, jwt);
        assert_eq!(verify(jwt, key).unwrap().txn, opened.txn, "the signing key was published");
        (key["kid"] == "next").then_some(())
    })
    .await;
    assert!(SystemClock.now() >= takeover_time);
}

#[tokio::test]
async fn an_operator_lists_the_keys_and_selects_the_signing_key() {
    let mut node = TestNode::unlaunched(&[]);
    let next = node.directory.path().join("next.pem").display().to_string();
    std::fs::write(&next, IntentKey::generate_es256().unwrap().1).unwrap();
    node.set("AUTHORITY__FURTHER_INTENT_KEYS", &format!("next {next} 2099-01-01T00:00:00Z"));
    node.launch().await;
    let url = node.addresses.internal("");
    let run_command = |words: &[&str]| {
        let words = [&["admin", "--url", &url, "intent-keys"], words].concat();
        node.run(&words)
    };
    let signing_keys = |words: &[&str]| {
        let output = run_command(words);
        assert!(output.status.success(), "{words:?}: {}", output.err);
        let is_signing = |kid: &&str| {
            let row = output.out.lines().find(|line| line.starts_with(&format!("{kid} "))).unwrap();
            row.contains("true")
        };
        ["sakshi-1", "next"].into_iter().filter(is_signing).collect::<Vec<_>>()
    };
    assert_eq!(signing_keys(&[]), ["sakshi-1"]);
    assert_eq!(signing_keys(&["use", "next"]), ["next"]);
    assert_eq!(signing_keys(&[]), ["next"]);
    let refused = run_command(&["use", "unknown"]);
    assert!(!refused.status.success() && refused.err.contains("kid"), "{}", refused.err);
    assert!(
        !run_command(&["use"]).status.success() && !run_command(&["use", "next", "--by-settings"]).status.success()
    );
    assert_eq!(signing_keys(&[]), ["next"]);
    assert_eq!(signing_keys(&["use", "--by-settings"]), ["sakshi-1"]);
    let log = node.operator().get("/admin/v1/audit-log?limit=100").await.ok();
    let is_request =
        |entry: &&Value| entry["entry"]["operation"] == "useIntentKey" && entry["entry"]["stage"] == "asked";
    let requests: Vec<&Value> =
        log["entries"].as_array().unwrap().iter().filter(is_request).map(|entry| &entry["entry"]["asked"]).collect();
    assert_eq!(requests, [&json!({ "kid": "next" }), &json!({ "kid": "unknown" }), &json!({})]);
}

#[tokio::test]
async fn an_intent_can_be_verified_with_the_published_key_it_names() {
    let mut node = TestNode::start().await;
    let es256_key = node.directory.path().join("elliptic.pem");
    std::fs::write(&es256_key, IntentKey::generate_es256().unwrap().1).unwrap();
    for kind in ["RSA", "EC"] {
        let answer = node.get("/.well-known/jwks.json").await;
        assert_eq!(
            (answer.header("content-type"), answer.header("cache-control")),
            (Some("application/json"), Some("public, max-age=300"))
        );
        let jwks = answer.ok();
        let opened = node.backend_with_credits(1).await.open(&["name"]).await;
        let jwt = opened.answer["intentJwt"].as_str().unwrap();
        let key = key_of(&jwks, jwt);
        assert_eq!((&key["kty"], &key["use"]), (&json!(kind), &json!("sig")));
        assert_eq!(verify(jwt, key).unwrap().txn, opened.txn);
        for member in ["d", "p", "q", "dp", "dq", "qi", "k"] {
            assert!(key.get(member).is_none(), "{member} is private");
        }
        let (signed, signature) = jwt.rsplit_once('.').unwrap();
        let forged = format!("{signed}.{}{}", if signature.starts_with('A') { "B" } else { "A" }, &signature[1..]);
        assert_eq!(verify(&forged, key).unwrap_err(), IntentReadError::Signature);

        node.set("AUTHORITY__INTENT_KEY", es256_key.to_str().unwrap());
        node.restart().await;
    }
}
