//! A production node as docs/operating.md describes it for a bank: keys on a token, TLS on the listeners, client
//! certificates for the operator, and webhooks through a forward proxy to a receiver with certificates of the bank's
//! own authority.

use std::path::Path;
use std::time::Duration;

use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::node::TestNode;
use sakshi_kit::process::{Process, ProcessOutput};
use sakshi_kit::soft_token::SoftToken;
use sakshi_kit::tls::{Authority, Identity, forward_proxy, receiver};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};

use crate::profiles::production_settings;
use crate::tokens::wrap_key;

const DOCUMENT: &str = include_str!("../../docs/operating.md");

/// Returns the settings of the document's block, with the files in this directory.
fn documented_settings(directory: &Path) -> Vec<(String, String)> {
    let block =
        DOCUMENT.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of settings");
    let block = block.replace("/etc/sakshi", &directory.display().to_string());
    let table: toml::Table = block.parse().expect("TOML");
    let section_settings = |(section, keys): (String, toml::Value)| {
        let keys = keys.as_table().expect("a section").clone();
        keys.into_iter().map(move |(key, value)| {
            let value = value.as_str().expect("a text").to_owned();
            (format!("{}__{}", section.to_uppercase(), key.to_uppercase()), value)
        })
    };
    table.into_iter().flat_map(section_settings).collect()
}

fn write_file(directory: &Path, name: &str, text: &str) {
    std::fs::write(directory.join(name), text).unwrap();
}

/// Returns an HTTP client that trusts the authority, with or without a client certificate.
fn https_client(authority: &Authority, identity: Option<&Identity>) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(authority.pem.as_bytes()).unwrap();
    let builder = reqwest::Client::builder().no_proxy().tls_certs_only([root]).timeout(Duration::from_secs(60));
    // A request must not use a connection at the moment when the node closes it because it was idle.
    let builder = builder.pool_max_idle_per_host(0);
    let builder = match identity {
        Some(Identity { certificate, key }) => {
            builder.identity(reqwest::Identity::from_pem(format!("{certificate}{key}").as_bytes()).unwrap())
        }
        None => builder,
    };
    builder.build().unwrap()
}

/// Prepares a node with the document's settings: keys on a token, certificates of the bank's authority, and a proxy.
fn prepare_node(bank: &Authority, proxy_port: u16) -> TestNode {
    // The document names the intent key: it is on the token.
    let required = production_settings("");
    let required: Vec<(&str, &str)> = required.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let mut node = TestNode::unlaunched(&required);
    let directory = node.directory.path().to_owned();
    let token = SoftToken::create(&directory);
    token.import("wrapping", "02");
    token.configure(&mut node);
    let operator = bank.issue(&["operator"]);
    let listener = bank.issue(&["127.0.0.1", "verify.bank.example"]);
    for (name, Identity { certificate, key }) in
        [("public", &listener), ("internal", &listener), ("sakshi", &bank.issue(&["sakshi"]))]
    {
        write_file(&directory, &format!("{name}.pem"), certificate);
        write_file(&directory, &format!("{name}.key"), key);
    }
    write_file(&directory, "bank-ca.pem", &bank.pem);
    write_file(&directory, "operator.pem", &operator.certificate);
    write_file(&directory, "operator.key", &operator.key);
    write_file(&directory, "encryption.wrapped", &wrap_key(&directory, b"0123456789abcdef0123456789abcdef"));
    node.set("STORE__ENCRYPTION_KEY", "");
    for (key, value) in documented_settings(&directory) {
        if !key.ends_with("_ADDR") {
            node.set(&key, &value);
        }
    }
    node.set("OUTBOUND__PROXY", &format!("http://sakshi:secret@127.0.0.1:{proxy_port}"));
    node.http = https_client(bank, Some(&operator));
    node
}

/// Checks that the internal listener refuses everything but probes without a client certificate.
async fn assert_certificate_required(node: &TestNode, bank: &Authority) {
    let stranger = https_client(bank, None);
    assert_eq!(stranger.get(node.addresses.internal("/readyz")).send().await.unwrap().status(), 200);
    let refused = stranger.get(node.addresses.internal("/admin/v1/clients")).send().await.unwrap();
    assert!(refused.status() == 403 && refused.text().await.unwrap().contains("client_certificate_required"));
}

/// Posts a good credential to the callback, with the certificate of the node's authority.
async fn approve(node: &TestNode, opened: &Opened) {
    let credential = node.issuer.bind(&node.issuer.sign(&node.issuer.valid_draft()), opened, |_, _| {});
    let callback =
        node.http.post(node.addresses.public(&opened.callback_path())).header("content-type", "application/json");
    let answer = callback.body(CallbackFormat::Json.success(&opened.txn, &credential)).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
}

/// Runs a command that reads the address and the certificate of the internal listener from the settings.
fn run_command(node: &TestNode, words: &[&str]) -> ProcessOutput {
    let port = node.addresses.internal_base().port().unwrap().to_string();
    let mut environment = node.environment().clone();
    environment.insert("SAKSHI__SERVER__INTERNAL_ADDR".to_owned(), format!("127.0.0.1:{port}"));
    Process::run(words, &environment, node.directory.path())
}

/// Runs `sakshi admin` with the certificate of the operator.
fn run_admin_command(node: &TestNode, words: &[&str]) -> ProcessOutput {
    let [certificate, key] =
        ["operator.pem", "operator.key"].map(|name| node.directory.path().join(name).display().to_string());
    run_command(node, &[&["admin", "--client-cert", &certificate, "--client-key", &key], words].concat())
}

/// Checks the commands for health and support.
fn assert_commands_work(node: &TestNode, opened: &Opened) {
    assert_eq!(run_command(node, &["healthcheck"]).out, "ready");
    let output = run_admin_command(node, &["transaction", &opened.txn]);
    assert!(output.status.success() && output.out.contains("answered     verified"), "{}{}", output.out, output.err);
    let refused = run_command(node, &["admin", "transaction", &opened.txn]);
    assert!(!refused.status.success() && refused.err.contains("requires a client certificate"), "{}", refused.err);
}

/// Checks the files for an auditor: the evidence, which the token has sealed, and the register of consents.
async fn assert_auditable(node: &TestNode, backend: &Backend, opened: &Opened, published: &Value) {
    let evidence = backend.get(&format!("/api/v1/nationalid-ovse/result/{}/evidence", opened.txn)).await;
    evidence.ok();
    let directory = node.directory.path();
    write_file(directory, "evidence.json", &evidence.text);
    write_file(directory, "issuer-jwks.json", &node.issuer.jwks().to_string());
    write_file(directory, "jwks.json", &published.to_string());
    let checked = run_command(
        node,
        &["verify-evidence", "evidence.json", "--issuer-keys", "issuer-jwks.json", "--seal-keys", "jwks.json"],
    );
    assert!(checked.status.success() && checked.out.contains(&opened.txn), "{}{}", checked.out, checked.err);
    let register = run_admin_command(node, &["consents", &backend.client, "--format", "csv"]);
    assert!(register.status.success() && register.out.contains(&opened.txn), "{}{}", register.out, register.err);
}

#[tokio::test]
async fn a_verification_works_with_a_token_tls_and_a_proxy() {
    let bank = Authority::create();
    let (receiver_port, mut webhooks) = receiver(&bank, "receiver.bank.example").await;
    let (proxy_port, mut tunnel_requests) = forward_proxy(receiver_port).await;
    let mut node = prepare_node(&bank, proxy_port);
    node.launch().await;
    assert_certificate_required(&node, &bank).await;

    let backend = node.backend_with_credits(2).await;
    let hook = "https://receiver.bank.example/hook";
    let opened =
        backend.open_with(&json!({"claims": ["name"], "channel": "qr", "webhook_url": hook, "evidence": true})).await;
    let published = node.get("/.well-known/jwks.json").await.ok();
    sakshi_authority::intent::verify(opened.answer["intentJwt"].as_str().unwrap(), &published["keys"][0]).unwrap();
    approve(&node, &opened).await;

    let webhook = webhooks.recv().await.expect("a webhook");
    assert!(
        webhook.starts_with("POST /hook HTTP/1.1") && webhook.contains("\"verification_passed\":true"),
        "{webhook}"
    );
    let tunnel_request = tunnel_requests.recv().await.expect("a tunnel");
    assert!(
        tunnel_request.starts_with("CONNECT receiver.bank.example:443 ")
            && tunnel_request.contains("proxy-authorization: Basic "),
        "{tunnel_request}"
    );
    let attempt = eventually("the attempt", TIMEOUT, || async {
        let attempt = node.operator().delivery(&opened.txn).await["attempt"].clone();
        (!attempt.is_null()).then_some(attempt)
    })
    .await;
    assert_eq!((&attempt["outcome"], &attempt["reason"]), (&json!("delivered"), &json!(null)));

    assert_commands_work(&node, &opened);
    assert_auditable(&node, &backend, &opened, &published).await;

    // The kit's own audit has no certificate.
    let audit = run_admin_command(&node, &["credits", "audit"]);
    assert!(audit.status.success(), "{}{}", audit.out, audit.err);
    let process = node.take_process();
    process.signal("TERM");
    node.conclude(&process);
}
