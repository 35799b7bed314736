//! Effects of a change at one node on the others: immediate for a waiting request, before the response where that is
//! promised, and within a second behind a cache.

use std::time::{Duration, Instant};

use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::result_path;
use sakshi_kit::event::TestEvent;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};
use serde_json::{Value, json};

use crate::nodes::Nodes;

/// Time after which a waiter without a notice checks by itself.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_long_poll_on_one_node_ends_when_another_accepts_the_answer() {
    let nodes = Nodes::start().await;
    let (backend, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let [opener, answerer, poller] = [0, 1, 2].map(|node| &nodes.all[node].addresses);
    let mut delays = Vec::new();
    for _ in 0..10 {
        let opened = backend.through(opener).open(&["name"]).await;
        let poll = backend.through(poller).request(Method::GET, &format!("{}?wait=30", result_path(&opened.txn)));
        let waiting = tokio::spawn(Answer::receive(poll));
        eventually("the third node has a live copy", TIMEOUT, || async {
            (live_transactions(&nodes.all[2]).await > 0).then_some(())
        })
        .await;
        identity_app.through(answerer).approve(&opened, "asha").await;
        let accepted = Instant::now();
        let answer = waiting.await.expect("an answer").ok();
        delays.push(accepted.elapsed());
        assert_eq!(answer["data"]["verification_passed"], true, "{answer}");
    }
    delays.sort_unstable();
    eprintln!("a long poll on another node ended {:?} after the answer (median), {:?} at most", delays[5], delays[9]);
    assert!(delays[9] < RECHECK_INTERVAL / 2, "a notice ended the long polls, not their own checks: {delays:?}");
}

#[tokio::test]
async fn a_poll_makes_no_live_copy_and_a_stale_copy_is_dropped_without_a_read() {
    let nodes = Nodes::start().await;
    let (backend, identity_app) = (nodes.backend(1).await, nodes.all[0].identity_app());
    let opened = backend.open(&["name"]).await;
    assert!(backend.through(&nodes.all[2].addresses).is_pending(&opened.txn).await);
    let third = &nodes.all[2];
    assert_eq!((live_transactions(third).await, transaction_loads(third).await), (0, 1), "one read, no live copy");
    assert_eq!(live_transactions(&nodes.all[0]).await, 1);
    identity_app.through(&nodes.all[1].addresses).approve(&opened, "asha").await;
    eventually("the copy is gone", TIMEOUT, || async { (live_transactions(&nodes.all[0]).await == 0).then_some(()) })
        .await;
    assert_eq!(transaction_loads(&nodes.all[0]).await, 0);
}

#[tokio::test]
async fn the_metrics_of_a_node_count_its_store_operations() {
    let nodes = Nodes::start().await;
    nodes.backend(1).await.open(&["name"]).await;
    let calls = nodes.all[0].metric::<u64>(r#"sakshi_store_operations_total{operation="open_transaction"}"#).await;
    assert_eq!(calls, Some(1));
}

#[tokio::test]
async fn a_poll_on_any_node_shows_an_answer_accepted_by_another() {
    let nodes = Nodes::start().await;
    let (backend, identity_app) = (nodes.backend(50).await, nodes.all[0].identity_app());
    let backends = nodes.at_each_node(&backend);
    for round in 0..30 {
        let opened = backends[round % 3].open(&["name"]).await;
        for at_node in &backends {
            assert!(at_node.is_pending(&opened.txn).await, "it is pending on every node");
        }
        identity_app.through(&nodes.all[(round + 1) % 3].addresses).approve(&opened, "asha").await;
        for at_node in &backends {
            assert!(!at_node.is_pending(&opened.txn).await, "the answer was accepted before this poll");
        }
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_on_every_node_within_a_second() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(10).await;
    for at_node in nodes.at_each_node(&backend) {
        assert_eq!(at_node.get("/api/v1/credits").await.status, 200, "every node caches the key");
    }
    nodes.all[0].operator().delete(&format!("/admin/v1/keys/{}", backend.key_id)).await.ok();
    let revoked = Instant::now();
    for (number, at_node) in nodes.at_each_node(&backend).into_iter().enumerate() {
        eventually("the key is refused", TIMEOUT, || async {
            (at_node.get("/api/v1/credits").await.status == 401).then_some(())
        })
        .await;
        let took = revoked.elapsed();
        eprintln!("node {number} refused the key {took:?} after it was revoked");
        assert_within(took, Duration::from_secs(1), "the refusal of a revoked key on every node");
    }
}

#[tokio::test]
async fn a_change_of_an_event_holds_on_every_node_before_its_response() {
    let nodes = Nodes::start().await;
    let organiser = nodes.backend(100).await;
    let event = TestEvent::open_reported(&nodes.all[0], &organiser, 50, "https://hooks.example/x").await;
    for round in 0..10 {
        let (disabling_node, enabling_node) = (&nodes.all[round % 3], &nodes.all[(round + 1) % 3]);
        event.through(&disabling_node.addresses).patch(&json!({"is_active": false})).await.ok();
        for node in &nodes.all {
            assert_eq!(event.through(&node.addresses).press_in_new_browser().await.status, 410, "disabled");
        }
        event.through(&enabling_node.addresses).patch(&json!({"is_active": true})).await.ok();
        for node in &nodes.all {
            assert_eq!(event.through(&node.addresses).press_in_new_browser().await.status, 303, "active again");
        }
    }
}

#[tokio::test]
async fn a_kiosk_on_one_node_counts_the_guests_of_another_node() {
    let nodes = Nodes::start().await;
    let (organiser, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let event = TestEvent::open_reported(&nodes.all[0], &organiser, 5, "https://hooks.example/x").await;
    let mut screen = Screen::open(&nodes.all[2], &event).await;
    assert_eq!(screen.places_left().await, 5);
    let opened = event.through(&nodes.all[0].addresses).scan().await;
    identity_app.through(&nodes.all[1].addresses).approve(&opened, "asha").await;
    let accepted = Instant::now();
    while screen.places_left().await != 4 {}
    let took = accepted.elapsed();
    assert!(took < RECHECK_INTERVAL / 2, "a notice changed the screen, not its own check: {took:?}");
}

/// Returns the number of times a node has read a transaction from its store.
async fn transaction_loads(node: &TestNode) -> u64 {
    node.metric(r#"sakshi_store_operations_total{operation="load_transaction"}"#).await.unwrap_or(0)
}

/// Returns the number of live transactions of a node, from its supervision tree.
async fn live_transactions(node: &TestNode) -> u64 {
    let tree = node.operator().get("/admin/v1/tree").await.ok();
    let shards =
        tree["children"].as_array().expect("children").iter().filter(|child| child["kind"] == "transaction_registry");
    shards.map(|shard| shard["live"].as_u64().expect("a count")).sum()
}

/// The event stream of a kiosk's screen.
struct Screen {
    response: reqwest::Response,
    /// Text of the stream that is not used yet.
    unread: String,
}

impl Screen {
    async fn open(node: &TestNode, event: &TestEvent) -> Self {
        let address = event.state().await["kiosk_url"].as_str().expect("an address").to_owned();
        let (_, key) = address.split_once('?').expect("a key");
        let stream = node.addresses.public(&format!("/e/{}/kiosk/events?{key}&places=1", event.id));
        let response = node.http.get(stream).send().await.expect("a stream");
        Self { response, unread: String::new() }
    }

    /// Returns the places left in the next state of the screen.
    async fn places_left(&mut self) -> u64 {
        loop {
            if let Some((message, remainder)) = self.unread.split_once("\n\n") {
                let state = message.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.unread = remainder.to_owned();
                let Some(state) = state else { continue };
                let state: Value = serde_json::from_str(&state).expect("JSON");
                return state["places_left"].as_u64().expect("places left");
            }
            let chunk = self.response.chunk().await.expect("an open stream").expect("another chunk");
            self.unread.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    }
}

#[tokio::test]
async fn a_webhook_url_registered_on_one_node_holds_on_all_immediately() {
    let nodes = Nodes::start().await;
    let backends = nodes.at_each_node(&nodes.backend(1).await);
    let path = "/api/v1/user/webhook";
    for (number, registrar) in backends.iter().enumerate() {
        let setting = json!({"apiType": "ESign", "webhookUrl": format!("https://client.example/{number}")});
        let answer = Answer::receive(registrar.request(Method::PUT, path).json(&setting)).await.ok();
        assert_eq!(answer, json!({"success": true, "data": setting}));
        for at_node in &backends {
            assert_eq!(at_node.get(path).await.ok(), json!({"success": true, "data": [setting]}));
        }
    }
    let removal = json!({"apiType": "ESign", "webhookUrl": null});
    Answer::receive(backends[0].request(Method::PUT, path).json(&removal)).await.ok();
    assert_eq!(backends[2].get(path).await.ok()["data"], json!([]));
}
