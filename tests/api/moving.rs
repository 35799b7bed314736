//! `sakshi move`: an installation moves from its own file to Redis and back, and its users see no difference.

use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::event::{EventCounts, TestEvent, terms};
use sakshi_kit::node::{TestNode, on_redis};
use sakshi_kit::process::ProcessOutput;
use sakshi_kit::redis::RedisServer;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;

/// Returns what the client, the organiser and the operator can read of the node.
async fn readable_state(node: &TestNode, backend: &Backend, event: &TestEvent, ended: &Opened) -> serde_json::Value {
    let (result, page, state) = (backend.result(&ended.txn).await.text, event.page(1, 10).await, event.state().await);
    json!([result, page, state, node.operator().statement(&backend.client).await])
}

/// Kills the node, moves what has changed since the copy to Redis, and starts the node on Redis.
async fn move_to_redis(node: &mut TestNode, redis: &RedisServer) {
    let store = node.store().display().to_string();
    node.kill().await;
    let moved = node.run(&["move", "--from", &store, "--to", &redis.url(), "--finish"]);
    assert!(moved.status.success() && moved.out.contains("Nodes can be started"), "{}{}", moved.out, moved.err);
    for (key, value) in &on_redis(&redis.url()) {
        node.set(key, value);
    }
    node.launch().await;
}

/// Copies a backup of the serving node to Redis; the live store cannot be moved.
fn copy_to_redis(node: &TestNode, redis: &RedisServer) {
    let backup = node.run(&["backup", &node.directory.path().display().to_string()]);
    let file = backup.out.split(": ").next().unwrap().to_owned();
    let copied = node.run(&["move", "--from", &file, "--to", &redis.url()]);
    assert!(copied.status.success() && copied.out.contains("--finish"), "{}{}", copied.out, copied.err);
    let store = node.store().display().to_string();
    assert_in_use(&node.run(&["move", "--from", &store, "--to", &redis.url()]));
}

/// Stops the node, moves its store from Redis to a file, and starts the node on the file.
async fn move_to_file(node: &mut TestNode) {
    let store = node.store().display().to_string();
    node.stop();
    let moved = node.run(&["move", "--to", &store]);
    assert!(
        moved.status.success() && moved.out.contains("can be started on the directory"),
        "{}{}",
        moved.out,
        moved.err
    );
    for (key, value) in [("STORE__KIND", "embedded"), ("STORE__REDIS_URL", "")] {
        node.set(key, value);
    }
    node.launch().await;
}

/// Checks that a command refused a store that a node is using.
fn assert_in_use(output: &ProcessOutput) {
    assert!(output.status.code() == Some(2) && output.err.contains("in use"), "{}", output.err);
}

#[tokio::test]
async fn a_node_moves_to_redis_and_back_without_loss() {
    let redis = RedisServer::start(&[]);
    // The node has the encryption key of nodes on Redis from its start.
    let [_, _, (key_setting, encryption_key)] = on_redis(&redis.url());
    let mut node = TestNode::start_with(&[
        ("WEBHOOKS__MAX_IN_FLIGHT", "1"),
        ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1"),
        // Issued intents contain the base URL, on any node.
        ("SERVER__PUBLIC_BASE_URL", "http://verify.example"),
        (key_setting, &encryption_key),
    ])
    .await;
    if node.redis.is_some() {
        // The move begins with the embedded store.
        return;
    }
    let (hanging, receiver) = (
        WebhookReceiver::start(Behaviour::Hang).await.unwrap(),
        WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap(),
    );
    let (backend, identity_app) = (node.backend_with_credits(50).await, node.identity_app());
    let ended = backend.open(&["name"]).await;
    identity_app.approve(&ended, "asha").await;
    let event = TestEvent::open(&node, &backend, &terms(5)).await;
    identity_app.approve(&event.scan().await, "asha").await;
    let (in_flight, queued) = (
        backend.open_reported(&["name"], &hanging.url("/first")).await,
        backend.open_reported(&["name"], &receiver.url("/waits")).await,
    );
    identity_app.approve(&in_flight, "asha").await;
    eventually("the first webhook", TIMEOUT, || async { (hanging.received().len() == 1).then_some(()) }).await;
    identity_app.approve(&queued, "asha").await;
    copy_to_redis(&node, &redis);

    let (guest, pending) = (event.scan().await, backend.open(&["name"]).await);
    let before = readable_state(&node, &backend, &event, &ended).await;
    move_to_redis(&mut node, &redis).await;
    let (backend, event, identity_app) =
        (backend.through(&node.addresses), event.through(&node.addresses), identity_app.through(&node.addresses));
    assert_eq!(readable_state(&node, &backend, &event, &ended).await, before);
    assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1, "a queued webhook is sent");
    assert_eq!(node.operator().outcome(&in_flight.txn).await, "unknown", "a webhook in flight is not sent again");
    for opened in [&guest, &pending] {
        identity_app.approve(opened, "asha").await;
    }
    assert_eq!(event.counts().await, EventCounts { status: "active", registered: 2, scanned: 2, abandoned: 0 });
    assert_eq!(backend.result(&pending.txn).await.ok()["data"]["verification_passed"], true);
    assert_audit_log_verified(&node).await;

    let waiting = backend.open(&["name"]).await;
    std::fs::rename(node.store().join("sakshi.db"), node.directory.path().join("before.db")).unwrap();
    std::fs::remove_file(node.store().join("sakshi.lock")).unwrap();
    assert_in_use(&node.run(&["move", "--to", &node.store().display().to_string()]));
    let before = readable_state(&node, &backend, &event, &ended).await;
    move_to_file(&mut node).await;
    let (backend, event, identity_app) =
        (backend.through(&node.addresses), event.through(&node.addresses), identity_app.through(&node.addresses));
    assert_eq!(readable_state(&node, &backend, &event, &ended).await, before);
    identity_app.approve(&waiting, "asha").await;
    assert_eq!(backend.result(&waiting.txn).await.ok()["data"]["verification_passed"], true);
    assert_audit_log_verified(&node).await;
    node.stop();
    assert_eq!((hanging.received().len(), receiver.received().len()), (1, 1));
}

/// Checks that the audit log is complete and unchanged.
async fn assert_audit_log_verified(node: &TestNode) {
    let audit = node.admin(&["audit-log", "--verify"]).await;
    assert!(audit.status.success(), "{}{}", audit.out, audit.err);
}
