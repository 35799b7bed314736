//! Specification, "Authentication" 3: one key works in stage and in production, which are two installations.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use sakshi_kit::backend::Backend;
use sakshi_kit::node::{TestNode, write_intent_key};
use sakshi_kit::process::Process;
use sakshi_kit::waiting::{TIMEOUT, eventually};

use crate::profiles::production_settings;

/// Starts a node with the settings of production, under this profile.
async fn start_installation(profile: &str, key_path: &str) -> TestNode {
    let mut settings = production_settings(key_path);
    settings.push(("PROFILE", profile.to_owned()));
    TestNode::start_with(&settings.iter().map(|(key, value)| (*key, value.as_str())).collect::<Vec<_>>()).await
}

/// Runs a command of the operator, which must succeed, and returns its output.
fn run_admin(node: &TestNode, command: &[&str]) -> String {
    let access = ["--url", &node.addresses.internal(""), "--token", node.setting("ADMIN__TOKEN")];
    let output = Process::run(&[&["admin"], command, &access].concat(), &BTreeMap::new(), node.directory.path());
    assert!(output.status.success(), "{command:?}: {}", output.err);
    output.out
}

#[tokio::test]
async fn one_key_works_in_stage_and_production_and_is_revoked_at_both() {
    let directory = tempfile::tempdir().unwrap();
    let key_path = write_intent_key(directory.path());
    let (stage, production) =
        (start_installation("stage", &key_path).await, start_installation("production", &key_path).await);
    let stage_backend = stage.backend_with_credits(2).await;
    let (_, stage_key) = stage.operator().issue_key(&stage_backend.client, &json!({"environments": ["stage"]})).await;
    let exported = run_admin(&stage, &["clients", "export", &stage_backend.client]);
    assert!(
        !exported.contains(&stage_backend.key) && !exported.contains(&stage_key) && !exported.contains("balance"),
        "{exported}"
    );

    let file = directory.path().join("client.json");
    std::fs::write(&file, &exported).unwrap();
    for outcome in ["created", "unchanged"] {
        let text = run_admin(&production, &["clients", "import", file.to_str().unwrap()]);
        assert_eq!(
            text.lines().filter(|line| line.contains(&format!(" {outcome}"))).count(),
            4,
            "the client, its app and its two keys: {text}"
        );
        assert_eq!(run_admin(&production, &["clients", "export", &stage_backend.client]), exported);
    }
    assert_eq!(production.operator().balance(&stage_backend.client).await, 0, "credits are not transferred");
    production.operator().grant(&stage_backend.client, 1, "one").await;
    let (client, app, key_id) = (stage_backend.client.clone(), stage_backend.app.clone(), stage_backend.key_id.clone());
    let production_backend = Backend::new(
        production.http.clone(),
        production.addresses.clone(),
        production.secrets.clone(),
        client,
        app,
        key_id.clone(),
        stage_backend.key.clone(),
    );
    stage_backend.open(&["name"]).await;
    production_backend.open(&["name"]).await;
    let body = json!({"claims": ["name"], "channel": "qr"});
    stage_backend.with_credentials(&stage_key, &stage_backend.app).init(&body).await.ok();
    assert_eq!(
        production_backend.with_credentials(&stage_key, &production_backend.app).init(&body).await.status,
        401,
        "a key for stage only"
    );

    let text = run_admin(&production, &["keys", "revoke", &key_id]);
    assert!(text.contains("revoke the key there too"), "{text}");
    eventually("the end of the key", TIMEOUT, || async {
        (production_backend.result("x").await.status == 401).then_some(())
    })
    .await;
    assert_eq!(stage_backend.result("x").await.status, 404, "the key still works at the other installation");
    assert!(!run_admin(&stage, &["keys", "revoke", &key_id]).contains("there too"), "the key was issued here");
    std::fs::write(&file, run_admin(&stage, &["clients", "export", &stage_backend.client])).unwrap();
    let text = run_admin(&production, &["clients", "import", file.to_str().unwrap()]);
    assert_eq!(text.matches(" unchanged").count(), 4, "the revocation is already known: {text}");
}

#[tokio::test]
async fn an_import_is_refused_with_the_path_of_every_problem() {
    let node = TestNode::start().await;
    let (operator, owner, other) =
        (node.operator(), node.backend_with_credits(0).await, node.backend_with_credits(0).await);
    let path = "/admin/v1/clients/import";
    let export = operator.get(&format!("/admin/v1/clients/{}/export", owner.client)).await.ok();
    let changed_export = |changes: &[(&str, Value)]| {
        let mut export = export.clone();
        for (pointer, value) in changes {
            *export.pointer_mut(pointer).expect("a field of the export") = value.clone();
        }
        export
    };
    let with_foreign_ids =
        changed_export(&[("/apps/0/app_id", json!(other.app)), ("/keys/0/key_id", json!(other.key_id))]);
    assert_eq!(operator.post(path, &with_foreign_ids).await.refused_fields(), ["apps[0].app_id", "keys[0].key_id"]);

    let mut malformed = changed_export(&[("/client/name", json!("")), ("/keys/0/digest", json!("ABC"))]);
    malformed["apps"][0]["data_webhook_url"] = json!("ftp://files.example/");
    malformed["keys"][0]["environments"] = json!(["moon"]);
    malformed["balance"] = json!(5);
    let problems = ["client.name", "apps[0].data_webhook_url", "keys[0].digest", "keys[0].environments[0]", "balance"];
    assert_eq!(operator.post(path, &malformed).await.refused_fields(), problems);

    let mut with_repeated_key = export.clone();
    with_repeated_key["keys"] = json!([export["keys"][0], export["keys"][0]]);
    assert_eq!(operator.post(path, &with_repeated_key).await.refused_fields(), ["keys[1].key_id", "keys[1].digest"]);

    // An import may be larger than other bodies.
    let mut large_export = export.clone();
    let key = |number: u32| {
        json!({"key_id": format!("key_{number}"), "digest": format!("{number:064x}"),
        "label": "x".repeat(100), "created_at": "2026-01-01T00:00:00Z"})
    };
    large_export["keys"] = (0..500).map(key).collect();
    assert_eq!(operator.post(path, &large_export).await.ok()["records"].as_array().unwrap().len(), 502);
    large_export["keys"].as_array_mut().unwrap().push(key(500));
    assert_eq!(operator.post(path, &large_export).await.refused_fields(), ["keys"]);
    assert_eq!(
        operator.get(&format!("/admin/v1/clients/{}/export", owner.client)).await.refusal(409),
        "client_too_large"
    );
    assert_eq!(operator.get("/admin/v1/clients/cl_unknown/export").await.refusal(404), "not_found");
    assert_eq!(operator.probe(&format!("/admin/v1/clients/{}/export", owner.client)).await.status, 401);
}
