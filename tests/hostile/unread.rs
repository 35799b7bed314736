//! Answers that nobody reads: a client asks again and again on one connection and takes nothing.

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
/// What all of them may cost, in mebibytes; without a bound they cost a gibibyte.
const MEMORY: u64 = 96;
/// A connection of which nothing is read is closed after twenty seconds.
const CLOSED: Duration = Duration::from_secs(45);

/// A client that asks for the same thing many times and reads nothing.
pub(crate) async fn unread(node: &TestNode, path: &str) -> TcpStream {
    let address = node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    let socket = TcpSocket::new_v4().expect("a socket");
    // What the client's own kernel would take in is no concern of the service.
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    let mut stream = socket.connect(address).await.expect("a connection");
    let requests = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").repeat(REQUESTS);
    // The service takes in only what it answers, so this need not end.
    let _ = timeout(Duration::from_millis(20), stream.write_all(requests.as_bytes())).await;
    stream
}

#[tokio::test]
async fn answers_that_nobody_reads_hold_little_and_end_and_nobody_else_notices() {
    let node = TestNode::start().await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let before = node.process().resident();
    let mut unread_ones = Vec::new();
    for number in 0..CONNECTIONS {
        unread_ones.push(unread(&node, ["/openapi.json", "/docs", "/api/ping"][number % 3]).await);
    }
    honest.is_as_well_off_as(&alone, "unread answers").await;
    assert_growth(&node, before, MEMORY, "unread answers");

    eventually("the connections are closed", CLOSED, || async {
        let metrics = node.operator().probe("/metrics").await.text;
        let closed =
            metrics.lines().find_map(|line| line.strip_prefix(r#"sakshi_connections_closed_total{listener="public",reason="unread"} "#));
        closed.and_then(|closed| closed.parse::<usize>().ok()).filter(|closed| *closed >= CONNECTIONS / 2)
    })
    .await;
    drop(unread_ones);
}
