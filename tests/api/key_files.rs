//! Key files named by the settings: `check-config` refuses them with the same message and exit code as `serve`.

use std::path::Path;

use serde_json::json;

use sakshi_authority::intent::IntentKey;
use sakshi_kit::issuer::TestIssuer;
use sakshi_kit::node::{TestNode, environment, intent_key};
use sakshi_kit::process::{Process, ProcessOutput};

use crate::profiles::production_settings;

/// An RSA key of 1,024 bits.
const SMALL_KEY: &str = include_str!("golden/rsa_1024.pem");

/// Runs `check-config` and then `serve` with these settings.
fn check_and_serve(directory: &Path, settings: &[(&str, &str)]) -> (ProcessOutput, ProcessOutput) {
    let environment = environment(directory, settings);
    let checked = Process::run(&["check-config"], &environment, directory);
    assert!(!directory.join("store").exists(), "check-config writes nothing");
    (checked, Process::run(&["serve"], &environment, directory))
}

#[test]
fn check_config_and_serve_refuse_a_key_file_with_the_same_message() {
    let private_key_set = json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "a", "d": "AA"}]}).to_string();
    for (setting, key, content, message) in [
        ("AUTHORITY__INTENT_KEY", "authority.intent_key", Some(SMALL_KEY), "at least 2048 bits"),
        ("AUTHORITY__INTENT_KEY", "authority.intent_key", Some("root:x:0:0"), "not a PEM document"),
        ("AUTHORITY__INTENT_KEY", "authority.intent_key", Some(""), "not a PEM document"),
        ("AUTHORITY__INTENT_KEY", "authority.intent_key", None, "the file cannot be read"),
        ("AUTHORITY__JWKS_PATH", "authority.jwks_path", Some("{}"), "not a JSON object with an array of keys"),
        ("AUTHORITY__JWKS_PATH", "authority.jwks_path", Some("{\"keys\": []}"), "no P-256 signing key"),
        ("AUTHORITY__JWKS_PATH", "authority.jwks_path", Some(&private_key_set), "a private key"),
        ("AUTHORITY__JWKS_PATH", "authority.jwks_path", None, "the file cannot be read"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("jwks.json"), TestIssuer::generate().jwks().to_string()).unwrap();
        let path = directory.path().join("the-file");
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let path = path.display().to_string();
        let (check_output, serve_output) = check_and_serve(directory.path(), &[(setting, &path)]);
        assert_eq!((check_output.status.code(), serve_output.status.code()), (Some(1), Some(1)), "{message}");
        let problem = check_output.out.lines().find_map(|line| line.strip_prefix("problem: ")).expect("a problem");
        assert!(problem.starts_with(key) && problem.contains(message), "{problem}");
        assert!(serve_output.err.contains(problem), "{problem}\n{}", serve_output.err);
    }
}

#[test]
fn an_intent_key_other_than_rsa_is_refused_outside_the_sandbox() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("jwks.json"), TestIssuer::generate().jwks().to_string()).unwrap();
    let [rsa, p256] = ["intent.pem", "p256.pem"].map(|name| directory.path().join(name).display().to_string());
    std::fs::write(&p256, IntentKey::generate_es256().unwrap().1).unwrap();
    let check_config = |profile: &str, intent_key_path: &str, further_keys: &str| {
        let mut settings = production_settings(intent_key_path);
        settings.extend([("PROFILE", profile.to_owned()), ("AUTHORITY__FURTHER_INTENT_KEYS", further_keys.to_owned())]);
        let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
        Process::run(&["check-config"], &environment(directory.path(), &settings), directory.path())
    };
    for profile in ["stage", "production"] {
        for (intent_key_path, further_keys, key) in [
            (&p256, String::new(), "authority.intent_key"),
            (&rsa, format!("next {p256}"), "authority.further_intent_keys"),
        ] {
            std::fs::write(&rsa, intent_key()).unwrap();
            let checked = check_config(profile, intent_key_path, &further_keys);
            let problem = format!(
                "problem: {key}: must be an RSA key outside the sandbox profile: the authority reads RS256 only"
            );
            assert!(checked.status.code() == Some(1) && checked.out.contains(&problem), "{}", checked.out);
        }
        assert_eq!(check_config(profile, &rsa, "").status.code(), Some(0));
    }
}

#[tokio::test]
async fn a_lost_or_replaced_sandbox_key_is_refused_and_not_regenerated() {
    let mut node = TestNode::start().await;
    if node.redis.is_some() {
        // Nodes on Redis get their key from the settings and create none.
        return;
    }
    node.stop();
    let key_path = node.store().join("sandbox-keys/encryption.key");
    let original_key = std::fs::read(&key_path).unwrap();
    let run = |command: &str| node.run(&[command]);
    assert_eq!(run("check-config").status.code(), Some(0));

    std::fs::remove_file(&key_path).unwrap();
    for output in [run("check-config"), run("serve")] {
        let text = format!("{}{}", output.out, output.err);
        assert!(output.status.code() == Some(1) && text.contains("store.encryption_key"), "{text}");
        assert!(!key_path.exists());
    }

    std::fs::write(&key_path, [7; 32]).unwrap();
    let output = run("serve");
    assert!(output.status.code() == Some(1) && output.err.contains("store.encryption_key"), "{}", output.err);

    std::fs::write(&key_path, original_key).unwrap();
    node.launch().await;
}

#[tokio::test]
async fn a_store_is_not_opened_with_a_foreign_key() {
    let (own_key, foreign_key) =
        ("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=");
    let mut node = TestNode::start_with(&[("STORE__ENCRYPTION_KEY", own_key)]).await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    node.stop();
    node.set("STORE__ENCRYPTION_KEY", foreign_key);
    let refused = node.run(&["serve"]);
    assert!(refused.status.code() == Some(1) && refused.err.contains("store.encryption_key"), "{}", refused.err);
    let checked = node.run(&["check-config"]);
    let problem = refused.err.lines().find_map(|line| line.strip_prefix("error: ")).unwrap();
    assert!(
        checked.status.code() == Some(1) && checked.out.contains(&format!("problem: {problem}")),
        "{}",
        checked.out
    );
    node.set("STORE__PREVIOUS_ENCRYPTION_KEYS", own_key);
    node.launch().await;
    assert_eq!(identity_app.fail(&opened, "301", "User Reject").await.status, 200);
}
