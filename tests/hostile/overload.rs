//! Inits at twice a node's capacity, from clients who retry. The bench `overload` has the figures. Here each client is
//! charged at most once, and the node recovers once all clients are served or have given up.

use std::sync::Arc;
use std::time::Duration;

use sakshi_kit::crowd::{Crowd, RetryPolicy, Second};
use sakshi_kit::node::TestNode;
use serde_json::json;

const CREDITS: u64 = 10_000_000;
/// Clients in the closed loop that measures the capacity.
const CLIENTS: usize = 64;
/// Inits after the overload; none may be refused.
const INITS_AFTERWARDS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overloaded_node_charges_each_client_at_most_once_and_recovers() {
    let is_long = std::env::var("SAKSHI_TESTS").is_ok_and(|form| form == "long");
    let mut node = TestNode::unlaunched(&[("SERVER__WORKERS", "2")]);
    node.set_variable("SAKSHI_LOG", "off");
    node.launch().await;
    let backend = node.backend_with_credits(CREDITS).await;
    let address = node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    let body = r#"{"claims":["name"],"channel":"qr"}"#;
    let head = format!(
        "POST /api/v1/nationalid-ovse/init HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\nx-api-app-id: {}\r\ncontent-type: \
            application/json\r\n\
         content-length: {}\r\n",
        backend.key,
        backend.app,
        body.len()
    );
    let request = move |number| format!("{head}idempotency-key: {number}\r\n\r\n{body}").into_bytes();
    let crowd = Crowd::new(address, RetryPolicy::Budget, Arc::new(request));
    let seconds = Duration::from_secs;
    let capacity = crowd.capacity(CLIENTS, seconds(2)).await;
    let balance_before = node.operator().balance(&backend.client).await;
    let seconds_before = crowd.seconds().len();
    let sum = |figure: fn(&Second) -> u64| crowd.seconds()[seconds_before..].iter().map(figure).sum::<u64>();
    // Other load on the machine may end after it has lowered the measured capacity.
    for factor in [2.0, 4.0, 8.0] {
        crowd.send_clients(factor * capacity, if is_long { seconds(60) } else { seconds(6) }).await;
        crowd.wait_until_done().await;
        if sum(|second| second.refused) > 0 {
            break;
        }
    }
    let (arrived, served) = (sum(|second| second.arrived), sum(|second| second.served));
    let (refused, gave_up) = (sum(|second| second.refused), sum(|second| second.gave_up));
    eprintln!(
        "{capacity:.0} inits a second; of at least twice as many {arrived} came, {served} were served, {gave_up} gave \
            up, {refused} refusals"
    );
    assert!(refused > 0 && served as f64 > capacity, "an overloaded node refuses some and serves others");
    let charged = balance_before - node.operator().balance(&backend.client).await;
    assert!((served..=arrived).contains(&charged), "{charged} were charged of {arrived}, {served} were served");
    // With its idempotency key, a repeated request costs nothing if it was charged before.
    let repeated = crowd.repeat_all(CLIENTS as u64).await;
    assert_eq!(CREDITS - node.operator().balance(&backend.client).await, repeated, "each client is charged once");
    for number in 0..INITS_AFTERWARDS {
        let answer =
            backend.init_once(&format!("afterwards-{number}"), &json!({"claims": ["name"], "channel": "qr"})).await;
        assert_eq!(answer.status, 200, "init {number} after the overload: {}", answer.text);
    }
}
