//! The signing intent key: an operator's choice at one node takes effect on all within a second, while they serve.

use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sakshi_authority::intent::{IntentKey, verify};
use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::node::{TestNode, on_redis};
use sakshi_kit::redis::{DURABLE, RedisServer};
use serde_json::{Value, json};

/// Time limit for a chosen key to take effect on every node.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(1);

/// The nodes that have the further intent keys `next` and `later`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FurtherKeys {
    OnBothNodes,
    OnFirstNode,
}

/// Starts two nodes on one Redis.
async fn start_two_nodes(redis: &RedisServer, further_keys: FurtherKeys) -> [TestNode; 2] {
    let mut first = TestNode::unlaunched(&[]);
    for (key, value) in on_redis(&redis.url()) {
        first.set(key, &value);
    }
    first.set("SERVER__PUBLIC_BASE_URL", "https://verify.example");
    let mut second = first.prepare_peer();
    let path_of = |name: &str| first.directory.path().join(name).display().to_string();
    for name in ["next.pem", "later.pem"] {
        std::fs::write(path_of(name), IntentKey::generate_es256().unwrap().1).unwrap();
    }
    let further = format!("next {}, later {} 2099-01-01T00:00:00Z", path_of("next.pem"), path_of("later.pem"));
    first.set("AUTHORITY__FURTHER_INTENT_KEYS", &further);
    if further_keys == FurtherKeys::OnBothNodes {
        second.set("AUTHORITY__FURTHER_INTENT_KEYS", &further);
    }
    first.launch().await;
    second.launch().await;
    [first, second]
}

/// Returns the id of the key that signed the intent of a transaction.
fn intent_kid(opened: &Opened) -> String {
    let jwt = opened.answer["intentJwt"].as_str().unwrap();
    let header = BASE64_URL_SAFE_NO_PAD.decode(jwt.split('.').next().unwrap()).unwrap();
    serde_json::from_slice::<Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned()
}

/// Waits until a key signs the intents that a backend gets. Fails if that takes longer than [`CHANGE_TIME_MAX`].
async fn await_key(backend: &Backend, kid: &str, since: Instant) {
    loop {
        let elapsed = since.elapsed();
        if intent_kid(&backend.open(&["name"]).await) == kid {
            return;
        }
        assert_within(elapsed, CHANGE_TIME_MAX, &format!("the change to the key {kid}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_chosen_at_one_node_signs_on_all_nodes_and_no_request_fails() {
    let redis = RedisServer::start(DURABLE);
    let mut nodes = start_two_nodes(&redis, FurtherKeys::OnBothNodes).await;
    let first_backend = nodes[0].backend_with_credits(100_000).await;
    let second_backend = first_backend.through(&nodes[1].addresses);
    let set = nodes[1].get("/.well-known/jwks.json").await.ok();
    let published = |kid: &str| {
        set["keys"].as_array().unwrap().iter().find(|key| key["kid"] == kid).cloned().expect("a published key")
    };

    let (is_running, signed) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new(Vec::new())));
    let load: Vec<_> = [&first_backend, &second_backend]
        .map(|backend| {
            let (backend, is_running, signed, identity_app) =
                (backend.clone(), Arc::clone(&is_running), Arc::clone(&signed), nodes[0].identity_app());
            tokio::spawn(async move {
                while is_running.load(Ordering::Relaxed) {
                    let opened = backend.open(&["name"]).await;
                    identity_app.approve(&opened, "asha").await;
                    let jwt = opened.answer["intentJwt"].as_str().unwrap().to_owned();
                    signed.lock().unwrap().push((intent_kid(&opened), jwt));
                }
            })
        })
        .into();
    for kid in ["next", "later", "sakshi-1"] {
        let chosen = nodes[0].operator().post("/admin/v1/intent-keys", &json!({ "kid": kid })).await.ok();
        let since = Instant::now();
        assert_eq!(chosen["chosen"], kid);
        await_key(&first_backend, kid, since).await;
        await_key(&second_backend, kid, since).await;
        let listed = nodes[1].operator().get("/admin/v1/intent-keys").await.ok();
        let signing: Vec<&Value> =
            listed["keys"].as_array().unwrap().iter().filter(|key| key["signs"] == true).collect();
        assert_eq!((signing.len(), &signing[0]["kid"], &listed["chosen"]), (1, &json!(kid), &json!(kid)));
        eventually("the load gets an intent of the key", TIMEOUT, || async {
            signed.lock().unwrap().iter().any(|(signing_kid, _)| signing_kid == kid).then_some(())
        })
        .await;
    }
    is_running.store(false, Ordering::Relaxed);
    for task in load {
        task.await.unwrap();
    }
    for (kid, jwt) in signed.lock().unwrap().iter() {
        verify(jwt, &published(kid)).unwrap();
    }

    // The choice survives restarts, and the settings decide again on request.
    nodes[0].operator().post("/admin/v1/intent-keys", &json!({ "kid": "next" })).await.ok();
    nodes[1].restart().await;
    assert_eq!(intent_kid(&second_backend.open(&["name"]).await), "next", "from its first intent on");
    nodes[1].operator().post("/admin/v1/intent-keys", &json!({ "kid": null })).await.ok();
    let since = Instant::now();
    await_key(&second_backend, "sakshi-1", since).await;
    await_key(&first_backend, "sakshi-1", since).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_chosen_key_signs_with_its_configured_key_and_warns() {
    let redis = RedisServer::start(DURABLE);
    let nodes = start_two_nodes(&redis, FurtherKeys::OnFirstNode).await;
    let first_backend = nodes[0].backend_with_credits(1_000).await;
    let second_backend = first_backend.through(&nodes[1].addresses);
    let shows_missing_key =
        |metrics: &str, value: u8| metrics.contains(&format!("sakshi_intent_key_missing {value}\n"));
    assert!(shows_missing_key(&nodes[1].operator().get("/metrics").await.text, 0));
    let refused = nodes[1].operator().post("/admin/v1/intent-keys", &json!({ "kid": "next" })).await;
    assert_eq!(refused.refusal(400), "validation_failed");
    nodes[0].operator().post("/admin/v1/intent-keys", &json!({ "kid": "next" })).await.ok();
    let since = Instant::now();
    await_key(&first_backend, "next", since).await;
    while !shows_missing_key(&nodes[1].operator().get("/metrics").await.text, 1) {
        assert_within(since.elapsed(), CHANGE_TIME_MAX, "the metric of a missing key");
    }
    assert_eq!(intent_kid(&second_backend.open(&["name"]).await), "sakshi-1");
    eventually("the warning about the missing key", TIMEOUT, || async {
        let is_warning =
            |line: &String| line.contains("an intent key that this node does not have") && line.contains("next");
        nodes[1].log().iter().any(is_warning).then_some(())
    })
    .await;
    assert!(shows_missing_key(&nodes[0].operator().get("/metrics").await.text, 0));
}
