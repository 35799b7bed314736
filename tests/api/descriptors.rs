//! A process with few file descriptors, while clients open as many connections as possible.

use std::time::{Duration, Instant};

use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};

/// File descriptors of the process: the service reserves 78 for public connections and 79 for webhooks.
const DESCRIPTORS: u32 = 400;
/// More public connections than the reserved descriptors.
const STRANGERS: usize = 300;
const WEBHOOKS: usize = 20;

#[tokio::test]
async fn exhausted_public_connections_block_neither_webhooks_nor_the_operator() {
    let mut node = TestNode::unlaunched(&[]);
    node.launch_with_descriptors(DESCRIPTORS).await;
    let warning = eventually("a warning", TIMEOUT, || async {
        node.log().into_iter().find(|line| line.contains("may open few files"))
    });
    let warning = warning.await;
    for figure in ["descriptors.limit=400", "descriptors.public=78", "descriptors.webhooks=79"] {
        assert!(warning.contains(figure), "{warning}");
    }
    let (backend, identity_app, operator) = (node.backend_with_credits(20).await, node.identity_app(), node.operator());
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    let mut transactions = Vec::new();
    for number in 0..WEBHOOKS {
        let request = json!({"claims": ["name"], "channel": "web", "webhook_url": receiver.url(&format!("/{number}"))});
        transactions.push(backend.open_with(&request).await);
    }

    let address = node.addresses.public("").trim_start_matches("http://").to_owned();
    let mut connections = Vec::new();
    for _ in 0..STRANGERS {
        let mut connection = TcpStream::connect(&address).await.expect("a place in the queue");
        let _ = connection.write_all(b"GET /api/ping HTTP/1.1\r\nhost: x\r\nx: ").await;
        connections.push(connection);
    }
    for path in ["/livez", "/readyz"] {
        let started = Instant::now();
        let response = node.http.get(node.addresses.internal(path)).send().await;
        assert_eq!(response.expect("new connections get an answer too").status(), 200, "{path}");
        assert_within(started.elapsed(), Duration::from_secs(3), path);
    }
    // A connection with an unfinished request is closed after a while, and the next in the queue is served.
    for opened in &transactions {
        assert_eq!(identity_app.fail(opened, "301", "User Reject").await.status, 200);
    }
    for opened in &transactions {
        let outcome = eventually("the attempt", TIMEOUT, || async {
            let delivery = operator.get(&format!("/admin/v1/transactions/{}/delivery", opened.txn)).await.ok();
            delivery["attempt"]["outcome"].as_str().map(str::to_owned)
        });
        assert_eq!(outcome.await, "delivered");
    }
    drop(connections);
}
