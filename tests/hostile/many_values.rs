//! Callbacks of the largest size that would parse into a tree of a hundred times their size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::web::Bytes;
use sakshi_kit::backend::Opened;
use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::issuer::encode;
use sakshi_kit::node::TestNode;
use serde_json::json;
use tokio::time::sleep;

use crate::honest::{Honest, assert_growth};

const VISITS: usize = 100;
/// Pause between two callbacks of a sender: eight senders fill a gigabit line. More would test the machine, which they
/// share with the service.
const PAUSE: Duration = Duration::from_millis(200);
/// Members of `{"x":[{"":0},…]}` that fit into the largest callback.
pub(crate) const MEMBERS: usize = 590_000;
/// Members that fit as Base64 into a credential.
const MEMBERS_WITHIN: usize = 440_000;

pub(crate) fn many(members: usize) -> String {
    let mut text = "{\"x\":[".to_owned();
    text.push_str(&"{\"\":0},".repeat(members - 1));
    text.push_str("{\"\":0}]}");
    text
}

/// Returns a long unsigned credential.
pub(crate) fn unsigned() -> String {
    let header = encode(json!({"alg": "ES256", "typ": "vc+sd-jwt", "kid": "issuer-key-1"}).to_string());
    format!("{header}.{}.{}~", encode(many(MEMBERS_WITHIN)), encode([7; 64]))
}

async fn beside(attack: &str, body: impl Fn(&Opened) -> String) {
    let node = TestNode::start().await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let (hostile, identity_app) = (node.backend(8).await, node.identity_app());
    let mut senders = Vec::new();
    let over = Arc::new(AtomicBool::new(false));
    let before = node.process().resident_bytes();
    for _ in 0..8 {
        let opened = hostile.open(&["name"]).await;
        let (body, identity_app, over) = (Bytes::from(body(&opened)), identity_app.clone(), Arc::clone(&over));
        senders.push(tokio::spawn(async move {
            let mut statuses = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let request =
                    identity_app.request(&opened.callback_path(), CallbackFormat::Json.content_type(), body.clone());
                // A connection closed in the middle of a body counts as an answer.
                statuses.push(request.send().await.map_or(503, |answer| answer.status().as_u16()));
                sleep(PAUSE).await;
            }
            statuses
        }));
    }
    honest.is_as_well_off_as(&alone, attack).await;
    over.store(true, Ordering::Relaxed);
    let mut statuses = Vec::new();
    for sender in senders {
        statuses.extend(sender.await.expect("a sender"));
    }
    eprintln!(
        "{attack}: {} callbacks, {} of them read",
        statuses.len(),
        statuses.iter().filter(|status| **status == 400).count()
    );
    assert!(statuses.iter().all(|status| matches!(status, 400 | 503)), "{statuses:?}");
    assert!(statuses.contains(&400), "none was read");
    assert_growth(&node, before, 128, attack);
}

#[tokio::test]
async fn a_callback_of_very_many_values_costs_others_nothing() {
    beside("many values in a callback", |_| many(MEMBERS)).await;
}

#[tokio::test]
async fn a_credential_of_very_many_values_costs_others_nothing() {
    beside("many values in a credential", |opened| CallbackFormat::Json.success(&opened.txn, &unsigned())).await;
}
