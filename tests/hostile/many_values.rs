//! Callbacks of the largest size, whose parsed form would take a hundred times their size.

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

use crate::honest::{HonestClient, assert_memory_growth};

const VERIFICATIONS: usize = 100;
/// Memory that the callbacks may take, in mebibytes.
const MEMORY_MIB_MAX: u64 = 128;
/// Concurrent senders of callbacks.
const SENDERS: u64 = 8;
/// Pause between two callbacks of a sender: eight senders then fill a gigabit line. The senders share the machine with
/// the service, so more would only load the machine.
const PAUSE: Duration = Duration::from_millis(200);
/// Members of `{"x":[{"":0},…]}` that fit into the largest callback.
pub(crate) const MEMBERS: usize = 590_000;
/// Members that fit into a credential within such a callback, in Base64.
const CREDENTIAL_MEMBERS: usize = 440_000;

/// Returns a JSON text with this number of members.
pub(crate) fn many_values_json(members: usize) -> String {
    let mut text = "{\"x\":[".to_owned();
    text.push_str(&"{\"\":0},".repeat(members - 1));
    text.push_str("{\"\":0}]}");
    text
}

/// Returns a long credential without a valid signature.
pub(crate) fn unsigned_credential() -> String {
    let header = encode(json!({"alg": "ES256", "typ": "vc+sd-jwt", "kid": "issuer-key-1"}).to_string());
    format!("{header}.{}.{}~", encode(many_values_json(CREDENTIAL_MEMBERS)), encode([7; 64]))
}

/// Sends callbacks with this body from all senders, and checks that they harm no honest client.
async fn attack_with(attack: &str, body: impl Fn(&Opened) -> String) {
    let node = TestNode::start().await;
    let honest = HonestClient::create(&node).await;
    let baseline = honest.measure(VERIFICATIONS).await;
    let (attacker, identity_app) = (node.backend_with_credits(SENDERS).await, node.identity_app());
    let mut senders = Vec::new();
    let is_over = Arc::new(AtomicBool::new(false));
    let before = node.process().resident_bytes();
    for _ in 0..SENDERS {
        let opened = attacker.open(&["name"]).await;
        let (body, identity_app, is_over) = (Bytes::from(body(&opened)), identity_app.clone(), Arc::clone(&is_over));
        senders.push(tokio::spawn(async move {
            let mut statuses = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let request =
                    identity_app.request(&opened.callback_path(), CallbackFormat::Json.content_type(), body.clone());
                // A connection closed in the middle of a body counts as an answer.
                statuses.push(request.send().await.map_or(503, |answer| answer.status().as_u16()));
                sleep(PAUSE).await;
            }
            statuses
        }));
    }
    honest.assert_unharmed(&baseline, attack).await;
    is_over.store(true, Ordering::Relaxed);
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
    assert!(statuses.contains(&400), "no callback was read");
    assert_memory_growth(&node, before, MEMORY_MIB_MAX, attack);
}

#[tokio::test]
async fn a_callback_with_many_values_harms_no_other_client() {
    attack_with("many values in a callback", |_| many_values_json(MEMBERS)).await;
}

#[tokio::test]
async fn a_credential_with_many_values_harms_no_other_client() {
    attack_with("many values in a credential", |opened| {
        CallbackFormat::Json.success(&opened.txn, &unsigned_credential())
    })
    .await;
}
