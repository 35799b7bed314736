//! Keys on a PKCS#11 token, which signs intents and unwraps the encryption key. Neither key is in a file of the node.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_authority::intent::IntentKey;
use sakshi_kit::backend::Backend;
use sakshi_kit::node::{TestNode, intent_key};
use sakshi_kit::process::Process;
use sakshi_kit::soft_token::SoftToken;
use sakshi_kit::waiting::eventually;
use serde_json::json;

/// Longer than the service takes to notice that a token was removed or put back.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(60);

async fn balance(backend: &Backend) -> u64 {
    backend.get("/api/v1/credits").await.ok()["balance"].as_u64().unwrap()
}

fn init_body() -> serde_json::Value {
    json!({ "claims": ["name"], "channel": "web" })
}

/// Prepares a node whose intent key is on a token.
fn prepare_node_with_token(settings: &[(&str, &str)]) -> (TestNode, SoftToken) {
    let mut node = TestNode::unlaunched(settings);
    let token = SoftToken::create(node.directory.path());
    token.configure(&mut node);
    node.set("AUTHORITY__INTENT_KEY", &token.uri("intent"));
    (node, token)
}

#[tokio::test]
async fn intents_are_signed_on_the_token_and_its_public_key_is_published() {
    let (mut node, _token) = prepare_node_with_token(&[]);
    std::fs::remove_file(node.directory.path().join("intent.pem")).unwrap();
    node.launch().await;
    let published = node.get("/.well-known/jwks.json").await.ok();
    let expected = IntentKey::from_pem(intent_key()).unwrap().public_jwk();
    assert_eq!((&published["keys"][0]["n"], &published["keys"][0]["e"]), (&expected["n"], &expected["e"]));
    let (backend, body) = (node.backend_with_credits(40).await, init_body());
    let opened = futures_util::future::join_all((0..32).map(|_| backend.init(&body))).await;
    for opened in opened {
        let intent = opened.ok()["intentJwt"].as_str().unwrap().to_owned();
        sakshi_authority::intent::verify(&intent, &published["keys"][0]).unwrap();
    }
    assert_eq!(balance(&backend).await, 8);
}

#[tokio::test]
async fn a_node_without_its_token_is_not_ready_and_charges_nothing() {
    let (mut node, token) = prepare_node_with_token(&[]);
    node.launch().await;
    let backend = node.backend_with_credits(5).await;
    backend.init(&init_body()).await.ok();
    token.remove();
    let refused = eventually("a refusal", TOKEN_TIMEOUT, async || {
        let answer = backend.init(&init_body()).await;
        (answer.status == 503).then_some(answer)
    })
    .await;
    assert_eq!(refused.refusal(503), "signer_unavailable");
    let charged = 5 - balance(&backend).await;
    eventually("unready", TOKEN_TIMEOUT, async || node.operator().get("/readyz").await.status.eq(&503).then_some(()))
        .await;
    for _ in 0..3 {
        assert_eq!(backend.init(&init_body()).await.refusal(503), "signer_unavailable");
    }
    assert_eq!(5 - balance(&backend).await, charged, "a refused init is not charged");
    token.put_back();
    eventually("ready", TOKEN_TIMEOUT, async || node.operator().get("/readyz").await.status.eq(&200).then_some(()))
        .await;
    backend.init(&init_body()).await.ok();
    assert_eq!(5 - balance(&backend).await, charged + 1);
}

#[tokio::test]
async fn an_idle_node_notices_a_removed_token() {
    let (mut node, token) = prepare_node_with_token(&[]);
    node.launch().await;
    token.remove();
    eventually("unready", TOKEN_TIMEOUT, async || node.operator().get("/readyz").await.status.eq(&503).then_some(()))
        .await;
}

#[test]
fn a_token_without_the_key_or_with_another_pin_is_refused_at_startup() {
    let directory = tempfile::tempdir().unwrap();
    let token = SoftToken::create(directory.path());
    std::fs::write(directory.path().join("jwks.json"), sakshi_kit::issuer::TestIssuer::generate().jwks().to_string())
        .unwrap();
    let run = |command: &str, uri: &str| {
        let mut environment = sakshi_kit::node::environment(directory.path(), &[("AUTHORITY__INTENT_KEY", uri)]);
        environment.insert("SOFTHSM2_CONF".to_owned(), token.configuration().display().to_string());
        Process::run(&[command], &environment, directory.path())
    };
    let good = token.uri("intent");
    assert_eq!(run("check-config", &good).status.code(), Some(0));
    for (uri, message) in [
        (token.uri("other"), "the token has no such private key, or more than one"),
        (good.replace("Bank%20HSM", "Another"), "there is no such token, or more than one"),
        (good.replace("libsofthsm2.so", "libnothing.so"), "cannot be used"),
        (good.replace("/pin", "/no-pin"), "the PIN cannot be read"),
    ] {
        for command in ["check-config", "serve"] {
            let output = run(command, &uri);
            assert_eq!(output.status.code(), Some(1), "{uri}");
            assert!(format!("{}{}", output.out, output.err).contains(message), "{}{}", output.out, output.err);
        }
    }
    token.set_pin("9999");
    let refused = run("check-config", &good);
    assert!(refused.out.contains("authority.intent_key: the token refuses the PIN, or is locked"), "{}", refused.out);
    assert!(!refused.out.contains("9999"));
}

/// Encrypts a key with RSA-OAEP for the token's wrapping key.
pub(crate) fn wrap_key(directory: &std::path::Path, key: &[u8]) -> String {
    let pem = directory.join("wrapping.pem");
    std::fs::write(&pem, intent_key()).unwrap();
    let mut child = Command::new("openssl")
        .args(["pkeyutl", "-encrypt", "-inkey", &pem.display().to_string(), "-pkeyopt", "rsa_padding_mode:oaep"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(key).unwrap();
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(pem).unwrap();
    assert!(output.status.success());
    STANDARD.encode(output.stdout)
}

#[tokio::test]
async fn the_encryption_key_is_unwrapped_by_the_token_and_only_by_the_right_key() {
    let (mut node, token) = prepare_node_with_token(&[]);
    token.import("wrapping", "02");
    let [wrapped_key, other_wrapped_key] = [[7; 32], [9; 32]].map(|mut key: [u8; 32]| {
        // A key of one repeated byte is refused.
        key[0] = 1;
        wrap_key(node.directory.path(), &key)
    });
    node.set("STORE__ENCRYPTION_KEY", "");
    node.set("STORE__ENCRYPTION_KEY_WRAPPED", &wrapped_key);
    node.set("STORE__UNWRAPPING_KEY", &token.uri("wrapping"));
    node.launch().await;
    let backend = node.backend_with_credits(2).await;
    let opened = backend.init(&init_body()).await.ok();
    node.restart().await;
    let poll = backend.get(&format!("/api/v1/nationalid-ovse/result/{}", opened["txnId"].as_str().unwrap())).await;
    assert_eq!(poll.ok()["pending"], true);
    node.stop();
    for (wrapped, message) in
        [(other_wrapped_key.as_str(), "store.encryption_key"), ("AAAA", "must be 32 bytes, encrypted with RSA-OAEP")]
    {
        node.set("STORE__ENCRYPTION_KEY_WRAPPED", wrapped);
        let refused = node.run(&["check-config"]);
        assert!(refused.status.code() == Some(1) && refused.out.contains(message), "{}", refused.out);
    }
}

#[tokio::test]
async fn the_encryption_key_can_come_from_a_command() {
    let mut node = TestNode::unlaunched(&[]);
    node.set("STORE__ENCRYPTION_KEY", "");
    node.set("STORE__ENCRYPTION_KEY_COMMAND", "/bin/echo,q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=");
    node.launch().await;
    node.backend_with_credits(1).await.init(&init_body()).await.ok();
    node.stop();
    node.set("STORE__ENCRYPTION_KEY_COMMAND", "/bin/false");
    let refused = node.run(&["check-config"]);
    assert!(refused.out.contains("store.encryption_key_command: ended with exit status: 1"), "{}", refused.out);
}
