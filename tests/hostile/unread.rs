//! Unread answers: a client sends requests on one connection and reads nothing.

use std::time::Duration;

use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::eventually;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::honest::{HonestClient, assert_memory_growth};

const CONNECTIONS: usize = 400;
/// Requests on each connection.
const REQUESTS: usize = 400;
const VERIFICATIONS: usize = 100;
/// Memory that all connections may take, in mebibytes. Without a limit, they take a gibibyte.
const MEMORY_MIB_MAX: u64 = 96;
/// Time limit for closing an unread connection; the service closes it after twenty seconds.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(45);

/// Requests the same path many times on one connection, and reads no response.
pub(crate) async fn request_unread(node: &TestNode, path: &str) -> TcpStream {
    let address = node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    let socket = TcpSocket::new_v4().expect("a socket");
    // A small buffer keeps the client's own kernel from hiding the effect.
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    let mut stream = socket.connect(address).await.expect("a connection");
    let requests = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").repeat(REQUESTS);
    // The service reads only what it answers, so this may not finish.
    let _ = timeout(Duration::from_millis(20), stream.write_all(requests.as_bytes())).await;
    stream
}

#[tokio::test]
async fn unread_responses_take_little_memory_and_their_connections_are_closed() {
    let node = TestNode::start().await;
    let honest = HonestClient::create(&node).await;
    let baseline = honest.measure(VERIFICATIONS).await;
    let before = node.process().resident_bytes();
    let mut connections = Vec::new();
    for number in 0..CONNECTIONS {
        connections.push(request_unread(&node, ["/openapi.json", "/docs", "/api/ping"][number % 3]).await);
    }
    honest.assert_unharmed(&baseline, "unread answers").await;
    assert_memory_growth(&node, before, MEMORY_MIB_MAX, "unread answers");

    eventually("the connections are closed", CLOSE_TIME_MAX, || async {
        let series = r#"sakshi_connections_closed_total{listener="public",reason="unread"}"#;
        node.metric(series).await.filter(|count: &usize| *count >= CONNECTIONS / 2)
    })
    .await;
    drop(connections);
}
