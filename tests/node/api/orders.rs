//! Retention of pending orders.

use std::time::Duration;

use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::in_process::InProcessNode;

#[actix_rt::test]
async fn an_order_is_kept_for_the_configured_pending_time() {
    let node = InProcessNode::start_with(&[("flows.pending_ttl_days", "30")]).await;
    let order = json!({ "docs": ["x"], "consent": "Y", "consent_text": "I agree." });
    let before = SystemClock.now();
    let (_, opened) = node.post("/api/v1/doclocker/init", &order).await;
    let id = opened["transactionId"].as_str().unwrap().parse().unwrap();
    let kept_until = node.inner.store.load_flow(id, node.first.app.clone()).await.unwrap().unwrap().kept_until;
    let pending = Duration::from_secs(30 * 24 * 3_600);
    assert!(kept_until >= before + pending && kept_until <= SystemClock.now() + pending, "{kept_until}");
    node.stop().await;
}
