//! Retention of orders from an upstream.

use std::time::Duration;

use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::in_process::InProcessNode;

#[actix_rt::test]
async fn what_was_ordered_is_kept_while_its_upstream_may_work() {
    let live = InProcessNode::start_with(&[("flows.pending_ttl_days", "30")]).await;
    let asked = json!({ "docs": ["x"], "consent": "Y", "consent_text": "I agree." });
    let before = SystemClock.now();
    let (_, opened) = live.post("/api/v1/doclocker/init", &asked).await;
    let id = opened["transactionId"].as_str().unwrap().parse().unwrap();
    let kept = live.node.store.load_flow(id, live.first.app.clone()).await.unwrap().unwrap().kept_until;
    let pending = Duration::from_secs(30 * 24 * 3_600);
    assert!(kept >= before + pending && kept <= SystemClock.now() + pending, "{kept}");
    live.stop().await;
}
