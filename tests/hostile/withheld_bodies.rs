//! Callbacks whose bodies are announced, or sent but for the last byte.

use crate::honest::{Honest, assert_growth};
use crate::raw::Raw;
use sakshi_kit::backend::Opened;
use sakshi_kit::universe::Universe;
use sakshi_kit::venue::{Venue, terms};
use sakshi_kit::waiting::{PLENTY, eventually};

/// Bytes of the largest callback.
pub(crate) const LARGEST: usize = 4 * 1_024 * 1_024;
const VISITS: usize = 60;

/// Strangers who have come to a public event for its capabilities.
async fn strangers(universe: &Universe, count: usize) -> (Venue, Vec<Opened>) {
    let organiser = universe.backend(1_000).await;
    let venue = Venue::open(universe, &organiser, &terms(1_000)).await;
    let mut come = Vec::new();
    for _ in 0..count {
        come.push(venue.scan().await);
    }
    (venue, come)
}

#[tokio::test]
async fn callbacks_that_are_announced_and_do_not_come_cost_nobody_anything() {
    let universe = Universe::start().await;
    let honest = Honest::of(&universe).await;
    let alone = honest.visit(VISITS).await;
    let (_venue, strangers) = strangers(&universe, 8).await;
    let before = universe.process().resident();
    let mut held = Vec::new();
    for stranger in &strangers {
        for _ in 0..4 {
            held.push(Raw::announce(&universe, &stranger.callback_path(), LARGEST, b"{").await);
        }
    }
    honest.is_as_well_off_as(&alone, "announced callbacks").await;
    assert_growth(&universe, before, 48, "announced callbacks");
    let mut given_up = 0;
    for raw in &mut held {
        given_up += usize::from(raw.status().await == 408);
    }
    assert_eq!(given_up, held.len(), "a body that does not come on is given up");
}

#[tokio::test]
async fn callbacks_without_their_last_byte_fill_the_room_and_give_way() {
    let universe = Universe::start().await;
    let honest = Honest::of(&universe).await;
    let alone = honest.visit(VISITS).await;
    let (_venue, strangers) = strangers(&universe, 10).await;
    let before = universe.process().resident();
    let body = vec![b' '; LARGEST - 1];
    let mut held = Vec::new();
    for stranger in strangers.iter().chain(&strangers) {
        held.push(Raw::announce(&universe, &stranger.callback_path(), LARGEST, &body).await);
    }
    honest.is_as_well_off_as(&alone, "callbacks without their last byte").await;
    assert_growth(&universe, before, 160, "callbacks without their last byte");
}

#[tokio::test]
async fn a_transaction_that_has_expired_is_answered_before_a_body_comes() {
    let universe = Universe::with(&[("OVSE__WINDOW_S", "1")]).await;
    let backend = universe.backend(1).await;
    let opened = backend.open(&["name"]).await;
    eventually("the end of the window", PLENTY, || async { (backend.result(&opened.txn).await.status == 410).then_some(()) }).await;
    let mut raw = Raw::announce(&universe, &opened.callback_path(), LARGEST, b"{").await;
    assert_eq!(raw.status().await, 410);
}
