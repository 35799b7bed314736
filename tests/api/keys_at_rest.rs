//! The key that encrypts personal data, its rotation, and the resealing of records under the old key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sakshi_kit::backend::Opened;
use sakshi_kit::node::TestNode;
use sakshi_kit::process::ProcessOutput;
use serde_json::Value;

const OLD_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW_KEY: &str = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=";

async fn start_with_old_key() -> TestNode {
    TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("STORE__ENCRYPTION_KEY", OLD_KEY)])
        .await
}

/// Restarts the node with the new key; the old key can still open what it sealed.
async fn rotate_key(node: &mut TestNode) {
    node.stop();
    node.set("STORE__ENCRYPTION_KEY", NEW_KEY);
    node.set("STORE__PREVIOUS_ENCRYPTION_KEYS", OLD_KEY);
    node.launch().await;
}

#[tokio::test]
async fn results_and_pending_transactions_survive_a_rotation_of_the_encryption_key() {
    let mut node = start_with_old_key().await;
    let (backend, identity_app) = (node.backend_with_credits(3).await, node.identity_app());
    let (completed, pending) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    identity_app.approve(&completed, "asha").await;
    let before = backend.result(&completed.txn).await.text;
    rotate_key(&mut node).await;
    assert_eq!(backend.result(&completed.txn).await.text, before);
    assert!(backend.is_pending(&pending.txn).await);
    identity_app.approve(&pending, "asha").await;
    let fresh = backend.open(&["name"]).await;
    identity_app.approve(&fresh, "asha").await;
}

#[tokio::test]
async fn everything_is_resealed_under_load_and_the_old_key_can_be_removed() {
    let mut node = start_with_old_key().await;
    let (backend, identity_app) = (node.backend_with_credits(100_000).await, node.identity_app());
    let mut results = Vec::new();
    for _ in 0..40 {
        let opened = backend.open(&["name", "photo"]).await;
        identity_app.approve(&opened, "asha").await;
        results.push((opened.txn.clone(), backend.result(&opened.txn).await.text));
    }
    let pending: Vec<Opened> = futures_util::future::join_all((0..40).map(|_| backend.open(&["name"]))).await;
    rotate_key(&mut node).await;

    let is_loading = Arc::new(AtomicBool::new(true));
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (backend, identity_app, is_loading) = (backend.clone(), node.identity_app(), Arc::clone(&is_loading));
            tokio::spawn(async move {
                let mut count = 0;
                while is_loading.load(Ordering::Relaxed) {
                    let opened = backend.open(&["name"]).await;
                    identity_app.approve(&opened, "asha").await;
                    assert_eq!(backend.result(&opened.txn).await.status, 200);
                    count += 1;
                }
                count
            })
        })
        .collect();
    for opened in &pending[..20] {
        identity_app.approve(opened, "asha").await;
    }
    let first = node.admin(&["--json", "reseal"]).await;
    for opened in &pending[20..] {
        identity_app.approve(opened, "asha").await;
    }
    let again = node.admin(&["--json", "reseal"]).await;
    is_loading.store(false, Ordering::Relaxed);
    let mut verified_count = 0;
    for task in tasks {
        verified_count += task.await.unwrap();
    }
    assert!(verified_count > 0);

    let parse = |output: &ProcessOutput| serde_json::from_str::<Value>(&output.out).unwrap();
    assert_eq!(first.status.code(), Some(0), "{}{}", first.out, first.err);
    assert!(first.err.contains("pass 2:"), "a second pass finds nothing left: {}", first.err);
    let resealed = parse(&first)["resealed"].as_u64().unwrap();
    assert!(resealed >= 120, "terms and outcomes: {resealed}");
    assert_eq!((&parse(&again)["resealed"], &parse(&again)["clean"]), (&0.into(), &true.into()));
    let key = parse(&again)["sealing_key"].as_str().unwrap().to_owned();
    let metrics = node.operator().get("/metrics").await.text;
    assert!(metrics.contains(&format!("sakshi_store_sealing_key_info{{key=\"{key}\"}} 1")), "{key}");
    let text = node.admin(&["reseal"]).await.out;
    assert!(text.contains("Nothing in the store is under another key") && text.contains(&key), "{text}");

    node.stop();
    node.set("STORE__PREVIOUS_ENCRYPTION_KEYS", "");
    node.launch().await;
    for (txn, before) in &results {
        assert_eq!(backend.result(txn).await.text, *before);
    }
    let log = node.admin(&["audit-log", "--verify"]).await;
    assert!(log.status.success() && log.out.contains("reseal"), "{}{}", log.out, log.err);
}

#[tokio::test]
async fn values_that_no_key_opens_are_reported_with_exit_code_1() {
    let mut node = start_with_old_key().await;
    let backend = node.backend_with_credits(3).await;
    backend.open(&["name"]).await;
    rotate_key(&mut node).await;
    node.stop();
    // The old key is removed too early.
    node.set("STORE__PREVIOUS_ENCRYPTION_KEYS", "");
    node.launch().await;
    let output = node.admin(&["reseal"]).await;
    assert_eq!(output.status.code(), Some(1), "{}{}", output.out, output.err);
    assert!(output.out.contains("KEY_ID") && output.out.contains("stay under another key"), "{}", output.out);
    let wrong = node.operator().post("/admin/v1/reseal", &serde_json::json!({ "from": "nowhere" })).await;
    assert_eq!(wrong.refusal(400), "validation_failed");
}
