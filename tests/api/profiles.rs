//! Settings: the requirements of each profile, and the features that production does not have.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use sakshi_kit::issuer::{ISSUER, TestIssuer};
use sakshi_kit::node::{TestNode, environment, on_redis, write_intent_key};
use sakshi_kit::operator::ADMIN_TOKEN;
use sakshi_kit::process::{Process, ProcessOutput};
use sakshi_kit::redis::{DURABLE, RedisServer};

const ENCRYPTION_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OPERATOR_TOKEN: &str = "an-operators-own-token-of-enough-length";

/// Returns all settings that production requires, with the intent key of this file or token.
pub(crate) fn production_settings(intent_key: &str) -> Vec<(&'static str, String)> {
    let text = |text: &str| text.to_owned();
    vec![
        ("PROFILE", text("production")),
        ("SERVER__PUBLIC_BASE_URL", text("https://verify.example")),
        ("STORE__ENCRYPTION_KEY", text(ENCRYPTION_KEY)),
        ("ADMIN__TOKEN", text(OPERATOR_TOKEN)),
        ("ADMIN__CONNECTOR_TOKEN", text("a-connectors-own-token-of-enough-length")),
        ("UPSTREAMS__TOKEN", text("an-upstreams-own-token-of-enough-length")),
        ("AUTHORITY__INTENT_KEY", text(intent_key)),
        ("AUTHORITY__QR_HOST", text("https://id-authority.example")),
        ("AUTHORITY__CLIENT_ID", text("verifier")),
        ("AUTHORITY__REGISTRATION", text("0001")),
        ("AUTHORITY__ANDROID_WEB_ACTION", text("example.WEB")),
        ("AUTHORITY__ANDROID_APP_ACTION", text("example.APP")),
        ("AUTHORITY__IOS_SCHEME", text("idauthority")),
        ("AUTHORITY__IOS_HOST", text("verify")),
        ("LIMITS__CALLBACKS_PER_SECOND_PER_ADDRESS", text("0")),
    ]
}

/// Runs a command in an empty directory, with these settings.
fn run_with_settings(arguments: &[&str], settings: &[(&str, &str)]) -> ProcessOutput {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("jwks.json"), TestIssuer::generate().jwks().to_string()).unwrap();
    Process::run(arguments, &environment(directory.path(), settings), directory.path())
}

#[tokio::test]
async fn production_neither_trusts_nor_serves_the_sandbox() {
    let keys = tempfile::tempdir().unwrap();
    let settings = production_settings(&write_intent_key(keys.path()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let node = TestNode::start_with(&settings).await;
    for path in [
        "/",
        "/sandbox/app",
        "/sandbox/residents",
        "/sandbox/app/app.css",
        "/sandbox/flows",
        "/sandbox/esign/x/y",
        "/sandbox/transactions/x/expire",
        "/sandbox/transactions/x/delivery",
        "/sandbox/flows/x/deliveries",
        "/sandbox/settings",
        "/sandbox/inboxes",
        "/sandbox/inboxes/x",
    ] {
        assert_eq!(node.get(path).await.refusal(404), "not_found", "{path}");
    }
    assert_eq!(node.operator().probe("/sandbox/upstreams/esign").await.refusal(404), "not_found");
    assert!(!node.store().join("sandbox-keys").exists());
    let log = node.log().join("\n");
    assert!(!log.contains("X-API-KEY"), "no client is created and no key is shown");
    let with_sandbox_token = node.http.get(node.addresses.internal("/admin/v1/clients")).bearer_auth(ADMIN_TOKEN);
    assert_eq!(sakshi_kit::answer::Answer::receive(with_sandbox_token).await.status, 401);

    let (backend, operator) = (node.backend_with_credits(2).await, node.operator());
    assert_eq!(operator.get("/admin/v1/clients").await.ok()["total"], 1);
    let http_webhook = json!({"claims": ["name"], "channel": "qr", "webhook_url": "http://client.example/"});
    assert_eq!(backend.init(&http_webhook).await.refused_fields(), ["webhook_url"]);
    for host in ["127.0.0.1", "169.254.169.254", "[::1]", "localhost"] {
        let internal_webhook =
            json!({"claims": ["name"], "channel": "qr", "webhook_url": format!("https://{host}/hook")});
        assert_eq!(backend.init(&internal_webhook).await.refused_fields(), ["webhook_url"], "{host}");
    }
    let opened = backend.open(&["name"]).await;
    assert_eq!(opened.answer["requestUrl"], format!("https://verify.example/v/{}", opened.txn));
    let identity_app = sakshi_kit::identity_app::IdentityApp::with_new_issuer(
        node.http.clone(),
        node.addresses.clone(),
        node.secrets.clone(),
    );
    assert_eq!(
        identity_app.present(&opened, &identity_app.credential(&opened, "asha")).await.status,
        400,
        "a credential of the sandbox issuer"
    );
    assert!(backend.is_pending(&opened.txn).await);
    let credential = node.issuer.bind(&node.issuer.sign(&node.issuer.valid_draft()), &opened, |_, _| {});
    assert_eq!(identity_app.present(&opened, &credential).await.status, 200, "a credential of the authority");
}

#[test]
fn check_config_lists_every_problem_at_once() {
    let output = run_with_settings(
        &["check-config"],
        &[
            ("SERVER__WORKERS", "many"),
            ("OVSE__WINDOW_S", "0"),
            ("AUTHORITY__KEY_BINDING", "maybe"),
            ("STORE__COLOUR", "red"),
            ("ADMIN__TOKEN", "short"),
        ],
    );
    assert_eq!(output.status.code(), Some(2));
    for key in ["server.workers", "ovse.window_s", "authority.key_binding", "store.colour", "admin.token"] {
        assert!(output.out.contains(key), "{key} is missing:\n{}", output.out);
    }
    assert!(output.out.contains("5 problems"), "{}", output.out);
}

#[test]
fn check_config_lists_and_serve_enforces_the_settings_of_production() {
    let bare = [
        ("PROFILE", "production"),
        ("AUTHORITY__ISSUER", ""),
        ("AUTHORITY__JWKS_PATH", ""),
        ("AUTHORITY__INTENT_KEY", ""),
    ];
    let keys = [
        "server.public_base_url",
        "store.encryption_key",
        "admin.token",
        "admin.connector_token",
        "authority.issuer",
        "authority.jwks_path",
        "authority.intent_key",
        "authority.qr_host",
        "authority.client_id",
        "authority.registration",
        "authority.android_web_action",
        "authority.android_app_action",
        "authority.ios_scheme",
        "authority.ios_host",
    ];
    let (checked, served) = (run_with_settings(&["check-config"], &bare), run_with_settings(&["serve"], &bare));
    assert_eq!((checked.status.code(), served.status.code()), (Some(2), Some(2)));
    for key in keys {
        assert!(checked.out.contains(key), "{key} is missing:\n{}", checked.out);
        assert!(served.err.contains(key), "{key} is missing:\n{}", served.err);
    }
    assert!(served.out.is_empty());
}

#[test]
fn production_refuses_the_sandboxs_tokens_and_issuer() {
    let keys = tempfile::tempdir().unwrap();
    let mut settings: BTreeMap<&str, String> =
        production_settings(&write_intent_key(keys.path())).into_iter().collect();
    for (key, value, setting) in [
        ("ADMIN__TOKEN", ADMIN_TOKEN, "admin.token"),
        ("ADMIN__CONNECTOR_TOKEN", "sandbox-connector-token-never-in-production", "admin.connector_token"),
        ("UPSTREAMS__TOKEN", "sandbox-upstream-token-never-in-production", "upstreams.token"),
        ("UPSTREAMS__ESIGN_URL", "http://upstream.example/esign", "upstreams.esign_url"),
        ("UPSTREAMS__PAN_URL", "no address", "upstreams.pan_url"),
        ("UPSTREAMS__VOTER_ID_URL", "no address", "upstreams.voter_id_url"),
        ("UPSTREAMS__TIMEOUT_MS", "0", "upstreams.timeout_ms"),
        ("FLOWS__RESULT_TTL_S", "0", "flows.result_ttl_s"),
        ("STORE__TAKE_OVER_FROM", "production", "store.take_over_from"),
        ("FLOWS__PENDING_TTL_DAYS", "0", "flows.pending_ttl_days"),
        ("AUTHORITY__ISSUER", "https://issuer.sandbox.invalid", "authority.issuer"),
        ("WEBHOOKS__ALLOW_HTTP", "true", "webhooks.allow_http"),
        ("WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true", "webhooks.allow_private_targets"),
        ("SERVER__PUBLIC_BASE_URL", "http://verify.example", "server.public_base_url"),
    ] {
        let good_value = settings.insert(key, value.to_owned());
        let pairs: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let output = run_with_settings(&["check-config"], &pairs);
        assert_eq!(output.status.code(), Some(2), "{key}");
        assert!(output.out.contains(setting) && output.out.contains("1 problem "), "{key}:\n{}", output.out);
        match good_value {
            Some(good_value) => settings.insert(key, good_value),
            None => settings.remove(key),
        };
    }
    let pairs: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let output = run_with_settings(&["check-config", "--show"], &pairs);
    assert_eq!(output.status.code(), Some(0), "{}", output.out);
    assert!(
        !output.out.contains(OPERATOR_TOKEN) && !output.out.contains("AAECAwQF"),
        "secrets are withheld:\n{}",
        output.out
    );
}

/// Checks that nodes with another profile or another issuer cannot open the store of this node.
fn assert_others_refused(environment: &BTreeMap<String, String>, directory: &Path) {
    for (key, value, message) in [
        ("SAKSHI__PROFILE", "stage", "but this node has profile stage"),
        ("SAKSHI__AUTHORITY__ISSUER", "https://other.example", "authority.issuer https://other.example;"),
    ] {
        let mut other_environment = environment.clone();
        other_environment.insert(key.to_owned(), value.to_owned());
        let (served, checked) = (
            Process::run(&["serve"], &other_environment, directory),
            Process::run(&["check-config"], &other_environment, directory),
        );
        assert_eq!(
            (served.status.code(), checked.status.code()),
            (Some(1), Some(1)),
            "{}\n{}",
            served.err,
            checked.out
        );
        let sentence = served.err.lines().find_map(|line| line.strip_prefix("error: ")).expect("a sentence");
        let owner = format!("the store belongs to profile production with authority.issuer {ISSUER}");
        assert!(
            sentence.starts_with(&owner) && sentence.contains(message) && sentence.contains("store.take_over_from"),
            "{sentence}"
        );
        assert!(checked.out.contains(&format!("problem: {sentence}")), "{}", checked.out);
    }
}

#[tokio::test]
async fn a_store_belongs_to_one_profile_and_authority_until_it_is_taken_over() {
    let keys = tempfile::tempdir().unwrap();
    let settings = production_settings(&write_intent_key(keys.path()));
    let mut settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    settings.extend([("STORE__KIND", "embedded"), ("STORE__REDIS_URL", "")]);
    let mut node = TestNode::start_with(&settings).await;
    let client = node.operator().create_client().await;
    node.operator().grant(&client, 3, "one").await;
    node.stop();
    let directory = node.directory.path().to_owned();
    assert_others_refused(node.environment(), &directory);
    node.launch().await;
    let check_output = Process::run(&["check-config"], node.environment(), &directory);
    assert_eq!(
        (check_output.status.code(), check_output.out.contains("note:")),
        (Some(0), false),
        "{}",
        check_output.out
    );
    node.stop();

    node.set("AUTHORITY__ISSUER", "https://renamed.example");
    node.set("STORE__TAKE_OVER_FROM", &format!("production {ISSUER}"));
    let takeover_check = Process::run(&["check-config"], node.environment(), &directory);
    assert!(
        takeover_check.status.success() && takeover_check.out.contains("warning: store.take_over_from"),
        "{}",
        takeover_check.out
    );
    node.launch().await;
    assert_eq!(node.operator().balance(&client).await, 3);
    node.stop();
    node.set("STORE__TAKE_OVER_FROM", "");
    node.launch().await;
}

#[tokio::test]
async fn stage_and_production_cannot_share_a_redis_even_with_one_encryption_key() {
    let (keys, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(DURABLE));
    let settings = production_settings(&write_intent_key(keys.path()))
        .into_iter()
        .chain(on_redis(&redis.url()))
        .collect::<Vec<_>>();
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let node = TestNode::start_with(&settings).await;
    assert_others_refused(node.environment(), node.directory.path());
    let mut peer = node.prepare_peer();
    peer.launch().await;
    drop((peer, node));

    let unreachable = [
        ("STORE__KIND", "redis"),
        ("STORE__REDIS_URL", "redis://127.0.0.1:1/"),
        ("STORE__ENCRYPTION_KEY", ENCRYPTION_KEY),
    ];
    let checked = run_with_settings(&["check-config"], &unreachable);
    assert_eq!(checked.status.code(), Some(0), "{}", checked.out);
    assert!(checked.out.contains("note: the store could not be checked: "), "{}", checked.out);
}

#[test]
fn an_unknown_command_line_argument_is_refused() {
    for arguments in [&["sevre"][..], &["serve", "--colour"], &[]] {
        let output = run_with_settings(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", output.err);
    }
}
