//! Callbacks whose bodies are announced, or sent without the last byte.

use sakshi_kit::backend::Opened;
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

use crate::honest::{Honest, assert_growth};
use sakshi_kit::raw::Raw;

/// Bytes of the largest callback.
pub(crate) const LARGEST: usize = 4 * 1_024 * 1_024;
const VISITS: usize = 60;

/// Opens transactions as strangers at a public event, for their callback addresses.
async fn strangers(node: &TestNode, count: usize) -> (TestEvent, Vec<Opened>) {
    let organiser = node.backend(1_000).await;
    let event = TestEvent::open(node, &organiser, &terms(1_000)).await;
    let mut come = Vec::new();
    for _ in 0..count {
        come.push(event.scan().await);
    }
    (event, come)
}

#[tokio::test]
async fn callbacks_that_are_announced_and_do_not_come_cost_nobody_anything() {
    let node = TestNode::start().await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let (_venue, strangers) = strangers(&node, 8).await;
    let before = node.process().resident_bytes();
    let mut held = Vec::new();
    for stranger in &strangers {
        for _ in 0..4 {
            held.push(Raw::announce(&node, &stranger.callback_path(), LARGEST, b"{").await);
        }
    }
    honest.is_as_well_off_as(&alone, "announced callbacks").await;
    assert_growth(&node, before, 48, "announced callbacks");
    let mut given_up = 0;
    for raw in &mut held {
        given_up += usize::from(raw.status().await == 408);
    }
    assert_eq!(given_up, held.len(), "a body that does not come on is given up");
}

#[tokio::test]
async fn callbacks_without_their_last_byte_fill_the_room_and_give_way() {
    let node = TestNode::start().await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let (_venue, strangers) = strangers(&node, 10).await;
    let before = node.process().resident_bytes();
    let body = vec![b' '; LARGEST - 1];
    let mut held = Vec::new();
    for stranger in strangers.iter().chain(&strangers) {
        held.push(Raw::announce(&node, &stranger.callback_path(), LARGEST, &body).await);
    }
    honest.is_as_well_off_as(&alone, "callbacks without their last byte").await;
    assert_growth(&node, before, 160, "callbacks without their last byte");
}

#[tokio::test]
async fn a_transaction_that_has_expired_is_answered_before_a_body_comes() {
    let node = TestNode::start_with(&[("OVSE__WINDOW_S", "1")]).await;
    let backend = node.backend(1).await;
    let opened = backend.open(&["name"]).await;
    eventually("the end of the window", TIMEOUT, || async {
        (backend.result(&opened.txn).await.status == 410).then_some(())
    })
    .await;
    let mut raw = Raw::announce(&node, &opened.callback_path(), LARGEST, b"{").await;
    assert_eq!(raw.status().await, 410);
}
