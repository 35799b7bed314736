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

use crate::honest::HonestClient;

/// Descriptors of the process, of which the public listener gets 78.
pub(crate) const DESCRIPTORS: u32 = 400;
const VERIFICATIONS: usize = 60;
/// More than the listener's limit.
const CONNECTIONS: usize = 300;
/// The address of the attacker, on the loopback interface.
pub(crate) const ATTACKER: &str = "127.0.0.66";
/// Time for which the attacker keeps each connection before it opens another.
pub(crate) const HOLD_TIME: Duration = Duration::from_secs(2);
/// Time limit for answers to a probe and a newcomer under attack.
const PROBE_TIME_MAX: Duration = Duration::from_millis(500);

/// Opens a connection from an attacker's address, and sends a request whose response is never read.
async fn connect_and_request(from: &str, to: SocketAddr, request: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    socket.bind(format!("{from}:0").parse().expect("an address")).expect("an address of this machine");
    let mut stream = timeout(HOLD_TIME, socket.connect(to)).await.ok()?.ok()?;
    let _ = stream.write_all(request.as_bytes()).await;
    Some(stream)
}

/// Starts tasks that open connections, send the request on each, and keep it open. A drop ends them.
pub(crate) fn attack(from: &'static str, to: SocketAddr, request: &str) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for number in 0..CONNECTIONS {
        let request = request.to_owned();
        tasks.spawn(async move {
            sleep(HOLD_TIME * u32::try_from(number).unwrap_or(0) / u32::try_from(CONNECTIONS).unwrap_or(1)).await;
            loop {
                let _connection = connect_and_request(from, to, &request).await;
                sleep(HOLD_TIME).await;
            }
        });
    }
    tasks
}

/// Returns the text of a GET request.
fn get_request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
}

/// Returns the names of attacks, with the request of each that keeps a connection open.
pub(crate) fn attacks(event: &TestEvent) -> [(&'static str, String); 4] {
    let announced_form = "POST /portal/sign-in HTTP/1.1\r\nhost: x\r\ncontent-type: \
        application/x-www-form-urlencoded\r\ncontent-length: 900\r\n\r\n";
    [
        ("unread answers", get_request("/openapi.json")),
        ("event streams", get_request(&format!("/e/{}/kiosk/events", event.id))),
        ("announced bodies", announced_form.to_owned()),
        ("partial heads", "GET /api/ping HTTP/1.1\r\nhost: x\r\nx: ".to_owned()),
    ]
}

/// Checks that clients without an open connection are served.
pub(crate) async fn assert_newcomers_are_served(addresses: &Addresses, attack: &str) {
    for _ in 0..5 {
        let newcomer = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let began = Instant::now();
        assert_eq!(Answer::receive(newcomer.get(addresses.public("/api/ping"))).await.status, 200, "{attack}");
        assert_within(began.elapsed(), PROBE_TIME_MAX, attack);
    }
}

#[tokio::test]
async fn connections_kept_open_by_one_address_harm_no_other_client() {
    let mut node = TestNode::unlaunched(&[]);
    node.launch_with_descriptors(DESCRIPTORS).await;
    let honest = HonestClient::create(&node).await;
    let baseline = honest.measure(VERIFICATIONS).await;
    let event = TestEvent::open(&node, &node.backend_with_credits(100).await, &terms(5)).await;
    let address = node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    for (attack_name, request) in attacks(&event) {
        let mut attack = attack(ATTACKER, address, &request);
        sleep(HOLD_TIME).await;
        assert!(attack.try_join_next().is_none(), "an attacker has ended");
        honest.assert_unharmed(&baseline, attack_name).await;
        assert_newcomers_are_served(&node.addresses, attack_name).await;
        drop(attack);
    }
}

#[tokio::test]
async fn internal_connections_kept_open_by_one_address_delay_no_probe() {
    let node = TestNode::start().await;
    let address = node.addresses.internal("").trim_start_matches("http://").parse().expect("an address");
    for request in [
        get_request("/readyz").repeat(400),
        get_request("/metrics").repeat(50),
        "GET /livez HTTP/1.1\r\nhost: x\r\nx: ".to_owned(),
    ] {
        let mut attack = attack(ATTACKER, address, &request);
        sleep(HOLD_TIME).await;
        assert!(attack.try_join_next().is_none(), "an attacker has ended");
        for path in ["/livez", "/readyz"].repeat(3) {
            let began = Instant::now();
            let answer = node.operator().with_own_connections().probe(path).await;
            assert_within(began.elapsed(), PROBE_TIME_MAX, path);
            assert_eq!(answer.status, 200, "{path}");
        }
        drop(attack);
    }
}
