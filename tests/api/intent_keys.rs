//! `GET /.well-known/jwks.json`: the keys that intents can be verified with.

use sakshi_authority::intent::{IntentKey, IntentReadError, verify};
use sakshi_kit::node::TestNode;
use serde_json::{Value, json};

/// The key that the header of an intent names, in a set.
fn key_of<'a>(set: &'a Value, jwt: &str) -> &'a Value {
    use base64::Engine as _;
    let header = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(jwt.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let mut keys = set["keys"].as_array().unwrap().iter().filter(|key| key["kid"] == header["kid"] && key["alg"] == header["alg"]);
    let key = keys.next().expect("the key of the intent");
    assert!(keys.next().is_none(), "a kid names one key");
    key
}

#[tokio::test]
async fn anybody_can_verify_an_intent_with_the_key_that_it_names() {
    let mut node = TestNode::start().await;
    let elliptic = node.directory.path().join("elliptic.pem");
    std::fs::write(&elliptic, IntentKey::generate_es256().unwrap().1).unwrap();
    for kind in ["RSA", "EC"] {
        let answer = node.get("/.well-known/jwks.json").await;
        assert_eq!(
            (answer.header("content-type"), answer.header("cache-control")),
            (Some("application/json"), Some("public, max-age=300"))
        );
        let set = answer.ok();
        let opened = node.backend(1).await.open(&["name"]).await;
        let jwt = opened.answer["intentJwt"].as_str().unwrap();
        let key = key_of(&set, jwt);
        assert_eq!((&key["kty"], &key["use"]), (&json!(kind), &json!("sig")));
        assert_eq!(verify(jwt, key).unwrap().txn, opened.txn);
        for private in ["d", "p", "q", "dp", "dq", "qi", "k"] {
            assert!(key.get(private).is_none(), "{private} is not for the public");
        }
        let (signed, signature) = jwt.rsplit_once('.').unwrap();
        let forged = format!("{signed}.{}{}", if signature.starts_with('A') { "B" } else { "A" }, &signature[1..]);
        assert_eq!(verify(&forged, key).unwrap_err(), IntentReadError::Signature);

        node.set("AUTHORITY__INTENT_KEY_PATH", elliptic.to_str().unwrap());
        node.restart().await;
    }
}
