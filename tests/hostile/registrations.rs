//! Lists of guests with photos: clients who read many, and clients who request them without reading.

use std::time::{Duration, Instant};

use sakshi_kit::backend::Backend;
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::TestNode;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

use crate::honest::{Honest, assert_growth};

const GUESTS: usize = 60;
/// A resident with a photo of 300 KB.
const PHOTOGRAPHED: &str = "meena";
const VISITS: usize = 60;
/// Number of clients who read one list after another.
pub(crate) const READERS: usize = 4;
/// Number of clients who request without reading.
pub(crate) const UNREAD: usize = 40;
/// Memory that all of them may cost, in mebibytes; forty unread lists alone took 700.
const MEMORY: u64 = 160;
/// Duration of the readers' work.
const LONG: Duration = Duration::from_secs(5);

/// Creates an event with guests who have each shared a large photo.
pub(crate) async fn crowded(node: &TestNode, organiser: &Backend) -> TestEvent {
    let mut asked = terms(1_000);
    asked["claims"] = json!(["name", "photo"]);
    let event = TestEvent::open(node, organiser, &asked).await;
    let identity_app = node.identity_app();
    for _ in 0..GUESTS {
        identity_app.approve(&event.scan().await, PHOTOGRAPHED).await;
    }
    event
}

pub(crate) fn list(event: &TestEvent) -> String {
    format!("{}/registrations?page_size=100", event.path())
}

/// Requests a list over a connection with a small buffer, and reads nothing.
pub(crate) async fn unread(node: &TestNode, backend: &Backend, path: &str) -> TcpStream {
    let address = node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    let mut stream = socket.connect(address).await.expect("a connection");
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\nx-api-app-id: {}\r\n\r\n",
        backend.key, backend.app
    );
    stream.write_all(head.as_bytes()).await.expect("the request is taken");
    stream
}

#[tokio::test]
async fn each_guest_is_listed_once_however_large_the_photos() {
    let node = TestNode::start().await;
    let organiser = node.backend(1_000).await;
    let event = crowded(&node, &organiser).await;
    let whole = organiser.get(&list(&event)).await;
    assert!(whole.text.len() > 16 * 1_024 * 1_024, "{}", whole.text.len());
    let whole = whole.ok();
    assert_eq!((&whole["total"], whole.get("next")), (&json!(GUESTS), None));
    let ids = |page: &Value| {
        page["registrations"].as_array().expect("registrations").iter().map(|guest| guest["txn_id"].clone()).collect()
    };
    let listed: Vec<Value> = ids(&whole);
    let (mut path, mut seen, mut pages) = (Some(format!("{}/registrations?page_size=50", event.path())), Vec::new(), 0);
    while let Some(page) = path {
        let page = organiser.get(&page).await.ok();
        seen.extend::<Vec<Value>>(ids(&page));
        pages += 1;
        path = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!((seen.len(), pages), (GUESTS, 2));
    assert_eq!(seen, listed);
}

#[tokio::test]
async fn lists_with_photos_cost_others_nothing_whether_they_are_read_or_not() {
    let node = TestNode::start().await;
    let organiser = node.backend(1_000).await;
    let event = crowded(&node, &organiser).await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let before = node.process().resident_bytes();
    let mut held = Vec::new();
    for _ in 0..UNREAD {
        held.push(unread(&node, &organiser, &list(&event)).await);
    }
    let until = Instant::now() + LONG;
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let (organiser, path) = (organiser.clone(), list(&event));
        readers.push(tokio::spawn(async move {
            let mut whole = 0;
            while Instant::now() < until {
                // The largest holder gives way, which is the organiser of these lists.
                if let Ok(answer) = organiser.request(reqwest::Method::GET, &path).send().await {
                    whole += usize::from(answer.status() == 200 && answer.bytes().await.is_ok());
                }
            }
            whole
        }));
    }
    honest.is_as_well_off_as(&alone, "lists with photos").await;
    assert_growth(&node, before, MEMORY, "lists with photos");
    let mut whole = 0;
    for reader in readers {
        whole += reader.await.expect("a reader");
    }
    assert!(whole > 0, "nobody could read a list");
    drop(held);
}
