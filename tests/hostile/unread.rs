//! Unread answers: a client sends requests on one connection and reads nothing.

use std::time::Duration;

use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::eventually;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::honest::{Honest, assert_growth};

const CONNECTIONS: usize = 400;
const REQUESTS: usize = 400;
const VISITS: usize = 100;
/// Memory that all of them may cost, in mebibytes; unbounded, they took a gibibyte.
const MEMORY: u64 = 96;
/// Time limit for closing an unread connection; the service does it after twenty seconds.
const CLOSED: Duration = Duration::from_secs(45);

/// Requests the same path many times and reads nothing.
pub(crate) async fn unread(node: &TestNode, path: &str) -> TcpStream {
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
async fn answers_that_nobody_reads_hold_little_and_end_and_nobody_else_notices() {
    let node = TestNode::start().await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let before = node.process().resident_bytes();
    let mut unread_ones = Vec::new();
    for number in 0..CONNECTIONS {
        unread_ones.push(unread(&node, ["/openapi.json", "/docs", "/api/ping"][number % 3]).await);
    }
    honest.is_as_well_off_as(&alone, "unread answers").await;
    assert_growth(&node, before, MEMORY, "unread answers");

    eventually("the connections are closed", CLOSED, || async {
        let metrics = node.operator().probe("/metrics").await.text;
        let closed = metrics.lines().find_map(|line| {
            line.strip_prefix(r#"sakshi_connections_closed_total{listener="public",reason="unread"} "#)
        });
        closed.and_then(|closed| closed.parse::<usize>().ok()).filter(|closed| *closed >= CONNECTIONS / 2)
    })
    .await;
    drop(unread_ones);
}
