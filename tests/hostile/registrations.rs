//! Lists of guests with photos: clients who read many, and clients who request them without reading.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_kit::backend::Backend;
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::honest::{HonestClient, assert_memory_growth};

const GUESTS: usize = 60;
/// A resident with a photo of 300 KB.
const RESIDENT_WITH_PHOTO: &str = "meena";
const VERIFICATIONS: usize = 60;
/// Number of clients who read one list after another.
pub(crate) const READERS: usize = 4;
/// Number of clients who request a list without reading it.
pub(crate) const UNREAD_CLIENTS: usize = 40;
/// Memory that all lists may take, in mebibytes. Without a limit, forty unread lists take 700.
const MEMORY_MIB_MAX: u64 = 160;

/// Creates an event with guests who have each shared a large photo.
pub(crate) async fn create_event_with_photos(node: &TestNode, organiser: &Backend) -> TestEvent {
    let mut event_terms = terms(1_000);
    event_terms["claims"] = json!(["name", "photo"]);
    let event = TestEvent::open(node, organiser, &event_terms).await;
    let identity_app = node.identity_app();
    for _ in 0..GUESTS {
        identity_app.approve(&event.scan().await, RESIDENT_WITH_PHOTO).await;
    }
    event
}

pub(crate) fn guest_list_path(event: &TestEvent) -> String {
    format!("{}/registrations?page_size=100", event.path())
}

/// Requests a list over a connection with a small buffer, and reads no response.
pub(crate) async fn request_unread(node: &TestNode, backend: &Backend, path: &str) -> TcpStream {
    let address = node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    let mut stream = socket.connect(address).await.expect("a connection");
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\nx-api-app-id: {}\r\n\r\n",
        backend.key, backend.app
    );
    stream.write_all(head.as_bytes()).await.expect("the request is sent");
    stream
}

#[tokio::test]
async fn each_guest_is_listed_once_however_large_the_photos() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(1_000).await;
    let event = create_event_with_photos(&node, &organiser).await;
    let whole_list = organiser.get(&guest_list_path(&event)).await;
    assert!(whole_list.text.len() > 16 * 1_024 * 1_024, "{}", whole_list.text.len());
    let whole_list = whole_list.ok();
    assert_eq!((&whole_list["total"], whole_list.get("next")), (&json!(GUESTS), None));
    let txns = |page: &Value| {
        page["registrations"].as_array().expect("registrations").iter().map(|guest| guest["txn_id"].clone()).collect()
    };
    let listed: Vec<Value> = txns(&whole_list);
    let (mut path, mut listed_in_pages, mut page_count) =
        (Some(format!("{}/registrations?page_size=50", event.path())), Vec::new(), 0);
    while let Some(page) = path {
        let page = organiser.get(&page).await.ok();
        listed_in_pages.extend::<Vec<Value>>(txns(&page));
        page_count += 1;
        path = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!((listed_in_pages.len(), page_count), (GUESTS, 2));
    assert_eq!(listed_in_pages, listed);
}

#[tokio::test]
async fn lists_with_photos_harm_no_other_client_whether_read_or_not() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(1_000).await;
    let event = create_event_with_photos(&node, &organiser).await;
    let honest = HonestClient::create(&node).await;
    let baseline = honest.measure(VERIFICATIONS).await;
    let before = node.process().resident_bytes();
    let mut connections = Vec::new();
    for _ in 0..UNREAD_CLIENTS {
        connections.push(request_unread(&node, &organiser, &guest_list_path(&event)).await);
    }
    let whole_lists = Arc::new(AtomicUsize::new(0));
    let mut readers: JoinSet<()> = JoinSet::new();
    for _ in 0..READERS {
        let (organiser, path, whole_lists) = (organiser.clone(), guest_list_path(&event), Arc::clone(&whole_lists));
        readers.spawn(async move {
            loop {
                // The largest user of memory is evicted, and that is this organiser. So a request may fail.
                if let Ok(answer) = organiser.request(reqwest::Method::GET, &path).send().await
                    && answer.status() == 200
                    && answer.bytes().await.is_ok()
                {
                    whole_lists.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    honest.assert_unharmed(&baseline, "lists with photos").await;
    eventually("a whole list", TIMEOUT, || async { (whole_lists.load(Ordering::Relaxed) > 0).then_some(()) }).await;
    assert!(readers.try_join_next().is_none(), "a reader has ended");
    assert_memory_growth(&node, before, MEMORY_MIB_MAX, "lists with photos");
    drop((readers, connections));
}
