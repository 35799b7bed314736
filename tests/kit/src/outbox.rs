//! Verifications with queued webhooks, and the outcomes of the webhooks.

use futures_util::future::join_all;
use sakshi_sandbox::receiver::WebhookReceiver;
use serde_json::Value;

use super::backend::{Backend, Opened};
use super::identity_app::IdentityApp;
use super::operator::Operator;

/// Opens `count` transactions that are reported to the receiver, and approves all of them.
pub async fn approve_many(
    count: usize,
    backend: &Backend,
    identity_app: &IdentityApp,
    receiver: &WebhookReceiver,
) -> Vec<Opened> {
    let url = receiver.url("/hook");
    let opened = join_all((0..count).map(|_| backend.open_reported(&["name"], &url))).await;
    for opened in &opened {
        identity_app.approve(opened, "asha").await;
    }
    opened
}

/// Returns the outcomes of the attempts, sorted.
pub async fn outcomes(operator: &Operator, opened: &[Opened]) -> Vec<String> {
    let mut outcomes = Vec::new();
    for opened in opened {
        outcomes.push(operator.outcome(&opened.txn).await);
    }
    outcomes.sort_unstable();
    outcomes
}

/// Returns the transaction of a webhook.
pub fn txn_of(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    body["data"]["txn_id"].as_str().expect("a txn_id").to_owned()
}

/// Fails unless exactly one webhook of each of `count` transactions has arrived.
pub fn assert_each_arrived_once(receiver: &WebhookReceiver, count: usize) {
    let mut txns: Vec<String> = receiver.received().iter().map(|request| txn_of(&request.body)).collect();
    assert_eq!(txns.len(), count);
    txns.sort_unstable();
    txns.dedup();
    assert_eq!(txns.len(), count, "each must arrive once");
}
