//! Unused open connections: on the operator's listener, and on the public one of a process with few descriptors.

use sakshi_kit::waiting::assert_within;
use std::time::{Duration, Instant};

use sakshi_kit::answer::Answer;
use sakshi_kit::node::TestNode;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::honest::HonestClient;

/// Time limit for the answer to a probe under attack.
const PROBE_TIME_MAX: Duration = Duration::from_millis(500);
/// More than the limit of either listener.
const IDLE_CONNECTIONS: usize = 200;
const VERIFICATIONS: usize = 100;
/// Descriptors of the process, of which the public listener gets 78.
const DESCRIPTORS: u32 = 400;

/// Opens connections that send nothing, or only the beginning of a request.
pub(crate) async fn open_idle_connections(url: &str) -> Vec<TcpStream> {
    let address = url.trim_start_matches("http://");
    let mut connections = Vec::new();
    for number in 0..IDLE_CONNECTIONS {
        let mut stream = TcpStream::connect(address).await.expect("a place in the accept queue");
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nx: ").await;
        }
        connections.push(stream);
    }
    connections
}

#[tokio::test]
async fn idle_connections_do_not_delay_a_probe() {
    let node = TestNode::start().await;
    let idle_connections = open_idle_connections(&node.addresses.internal("")).await;
    for path in ["/livez", "/readyz", "/metrics", "/livez", "/readyz"] {
        let started = Instant::now();
        let answer = node.operator().with_own_connections().probe(path).await;
        assert_within(started.elapsed(), PROBE_TIME_MAX, path);
        assert_eq!(answer.status, 200, "{path}");
    }
    drop(idle_connections);
}

#[tokio::test]
async fn idle_connections_do_not_delay_a_client() {
    let mut node = TestNode::unlaunched(&[]);
    node.launch_with_descriptors(DESCRIPTORS).await;
    let honest = HonestClient::create(&node).await;
    let baseline = honest.measure(VERIFICATIONS).await;
    let idle_connections = open_idle_connections(&node.addresses.public("")).await;
    honest.assert_unharmed(&baseline, "idle connections").await;
    for _ in 0..5 {
        // This client has no connection yet.
        let newcomer = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let started = Instant::now();
        let answer = Answer::receive(newcomer.get(node.addresses.public("/api/ping"))).await;
        assert_within(started.elapsed(), PROBE_TIME_MAX, "the answer to a newcomer");
        assert_eq!(answer.status, 200);
    }
    drop(idle_connections);
}
