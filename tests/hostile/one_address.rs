//! One address that keeps as many connections open as it can, by several means, on a process with few descriptors.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sakshi_kit::answer::Answer;
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::{Addresses, TestNode};
use sakshi_kit::waiting::assert_within;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::honest::Honest;

/// The public gets 78 of these.
pub(crate) const DESCRIPTORS: u32 = 400;
const VISITS: usize = 60;
/// More than the listener's limit.
const CONNECTIONS: usize = 300;
/// Time for which the attacker keeps each connection before it opens another.
pub(crate) const KEPT: Duration = Duration::from_secs(2);
/// Time limit for answers to a probe and a newcomer under attack.
const PROBED: Duration = Duration::from_millis(500);

/// Opens a connection from an attacker's address, with a request whose answer is never read.
async fn asking(from: &str, to: SocketAddr, request: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    socket.bind(format!("{from}:0").parse().expect("an address")).expect("an address of this machine");
    let mut stream = timeout(KEPT, socket.connect(to)).await.ok()?.ok()?;
    let _ = stream.write_all(request.as_bytes()).await;
    Some(stream)
}

/// Keeps connections open until dropped.
pub(crate) fn attack(from: &'static str, to: SocketAddr, request: &str) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for number in 0..CONNECTIONS {
        let request = request.to_owned();
        tasks.spawn(async move {
            sleep(KEPT * u32::try_from(number).unwrap_or(0) / u32::try_from(CONNECTIONS).unwrap_or(1)).await;
            loop {
                let _kept = asking(from, to, &request).await;
                sleep(KEPT).await;
            }
        });
    }
    tasks
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
}

/// Returns requests that keep connections open.
pub(crate) fn attacks(event: &TestEvent) -> [(&'static str, String); 4] {
    let announced = "POST /portal/sign-in HTTP/1.1\r\nhost: x\r\ncontent-type: \
        application/x-www-form-urlencoded\r\ncontent-length: 900\r\n\r\n";
    [
        ("unread answers", get("/openapi.json")),
        ("event streams", get(&format!("/e/{}/kiosk/events", event.id))),
        ("announced bodies", announced.to_owned()),
        ("half heads", "GET /api/ping HTTP/1.1\r\nhost: x\r\nx: ".to_owned()),
    ]
}

/// Checks that clients without a connection are served.
pub(crate) async fn assert_newcomers_are_served(addresses: &Addresses, attack: &str) {
    for _ in 0..5 {
        let newcomer = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let began = Instant::now();
        assert_eq!(Answer::receive(newcomer.get(addresses.public("/api/ping"))).await.status, 200, "{attack}");
        assert_within(began.elapsed(), PROBED, attack);
    }
}

#[tokio::test]
async fn whatever_one_address_keeps_connections_open_with_others_are_served() {
    let mut node = TestNode::unlaunched(&[]);
    node.launch_with_descriptors(DESCRIPTORS).await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let event = TestEvent::open(&node, &node.backend(100).await, &terms(5)).await;
    let address = node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    for (what, request) in attacks(&event) {
        let attack = attack("127.0.0.66", address, &request);
        sleep(KEPT).await;
        honest.is_as_well_off_as(&alone, what).await;
        assert_newcomers_are_served(&node.addresses, what).await;
        drop(attack);
    }
}

#[tokio::test]
async fn whatever_one_address_keeps_internal_connections_open_with_probes_are_answered() {
    let node = TestNode::start().await;
    let address = node.addresses.internal("").trim_start_matches("http://").parse().expect("an address");
    for request in
        [get("/readyz").repeat(400), get("/metrics").repeat(50), "GET /livez HTTP/1.1\r\nhost: x\r\nx: ".to_owned()]
    {
        let attack = attack("127.0.0.66", address, &request);
        sleep(KEPT).await;
        for path in ["/livez", "/readyz"].repeat(3) {
            let began = Instant::now();
            let answer = node.operator().with_own_connections().probe(path).await;
            assert_within(began.elapsed(), PROBED, path);
            assert_eq!(answer.status, 200, "{path}");
        }
        drop(attack);
    }
}
