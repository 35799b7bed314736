//! Callbacks whose bodies are announced, or sent without the last byte.

use sakshi_kit::backend::Opened;
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

use crate::honest::{HonestClient, assert_memory_growth};
use sakshi_kit::raw::Raw;

/// Maximum size of a callback.
pub(crate) const CALLBACK_BYTES_MAX: usize = 4 * 1_024 * 1_024;
const VERIFICATIONS: usize = 60;
/// Memory that 32 announced callbacks may take, in mebibytes.
const ANNOUNCED_MIB_MAX: u64 = 48;
/// Memory that 20 callbacks without their last byte may take, in mebibytes.
const INCOMPLETE_MIB_MAX: u64 = 160;

/// Opens transactions as strangers at a public event, which gives them callback addresses.
async fn scan_as_strangers(node: &TestNode, count: usize) -> (TestEvent, Vec<Opened>) {
    let organiser = node.backend_with_credits(1_000).await;
    let event = TestEvent::open(node, &organiser, &terms(1_000)).await;
    let mut opened = Vec::new();
    for _ in 0..count {
        opened.push(event.scan().await);
    }
    (event, opened)
}

#[tokio::test]
async fn announced_callbacks_without_a_body_harm_no_other_client() {
    let node = TestNode::start().await;
    let honest = HonestClient::create(&node).await;
    let baseline = honest.measure(VERIFICATIONS).await;
    let (_event, strangers) = scan_as_strangers(&node, 8).await;
    let before = node.process().resident_bytes();
    let mut connections = Vec::new();
    for stranger in &strangers {
        for _ in 0..4 {
            connections.push(Raw::announce(&node, &stranger.callback_path(), CALLBACK_BYTES_MAX, b"{").await);
        }
    }
    honest.assert_unharmed(&baseline, "announced callbacks").await;
    assert_memory_growth(&node, before, ANNOUNCED_MIB_MAX, "announced callbacks");
    let mut timed_out = 0;
    for raw in &mut connections {
        timed_out += usize::from(raw.status().await == 408);
    }
    assert_eq!(timed_out, connections.len(), "a body that stalls is refused with 408");
}

#[tokio::test]
async fn callbacks_without_their_last_byte_harm_no_other_client() {
    let node = TestNode::start().await;
    let honest = HonestClient::create(&node).await;
    let baseline = honest.measure(VERIFICATIONS).await;
    let (_event, strangers) = scan_as_strangers(&node, 10).await;
    let before = node.process().resident_bytes();
    let body = vec![b' '; CALLBACK_BYTES_MAX - 1];
    let mut connections = Vec::new();
    for stranger in strangers.iter().chain(&strangers) {
        connections.push(Raw::announce(&node, &stranger.callback_path(), CALLBACK_BYTES_MAX, &body).await);
    }
    honest.assert_unharmed(&baseline, "callbacks without their last byte").await;
    assert_memory_growth(&node, before, INCOMPLETE_MIB_MAX, "callbacks without their last byte");
}

#[tokio::test]
async fn a_callback_of_an_expired_transaction_is_refused_before_its_body_arrives() {
    let node = TestNode::start_with(&[("OVSE__WINDOW_S", "1")]).await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    eventually("the end of the window", TIMEOUT, || async {
        (backend.result(&opened.txn).await.status == 410).then_some(())
    })
    .await;
    let mut raw = Raw::announce(&node, &opened.callback_path(), CALLBACK_BYTES_MAX, b"{").await;
    assert_eq!(raw.status().await, 410);
}
