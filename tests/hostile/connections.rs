//! Unused open connections: on the operator's listener, and on the public one of a process with few descriptors.

use sakshi_kit::waiting::assert_within;
use std::time::{Duration, Instant};

use sakshi_kit::answer::Answer;
use sakshi_kit::node::TestNode;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::honest::Honest;

/// Time limit for the answer to a probe under attack.
const PROBED: Duration = Duration::from_millis(500);
/// More than the limit of either listener.
const IDLE: usize = 200;
const VISITS: usize = 100;
/// The public gets 78 of these.
const DESCRIPTORS: u32 = 400;

/// Opens connections without data, or with the beginning of a request.
pub(crate) async fn idle(url: &str) -> Vec<TcpStream> {
    let address = url.trim_start_matches("http://");
    let mut all = Vec::new();
    for number in 0..IDLE {
        let mut stream = TcpStream::connect(address).await.expect("a place in the queue");
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nx: ").await;
        }
        all.push(stream);
    }
    all
}

#[tokio::test]
async fn a_probe_waits_for_nobody_who_keeps_connections_open() {
    let node = TestNode::start().await;
    let others = idle(&node.addresses.internal("")).await;
    for path in ["/livez", "/readyz", "/metrics", "/livez", "/readyz"] {
        let began = Instant::now();
        let answer = node.operator().with_own_connections().probe(path).await;
        assert_within(began.elapsed(), PROBED, path);
        assert_eq!(answer.status, 200, "{path}");
    }
    drop(others);
}

#[tokio::test]
async fn a_client_waits_for_nobody_who_keeps_connections_open() {
    let mut node = TestNode::unlaunched(&[]);
    node.launch_with_descriptors(DESCRIPTORS).await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let others = idle(&node.addresses.public("")).await;
    honest.is_as_well_off_as(&alone, "idle connections").await;
    for _ in 0..5 {
        // A client without a connection yet.
        let newcomer = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let began = Instant::now();
        let answer = Answer::receive(newcomer.get(node.addresses.public("/api/ping"))).await;
        assert_within(began.elapsed(), PROBED, "the answer to a newcomer");
        assert_eq!(answer.status, 200);
    }
    drop(others);
}
