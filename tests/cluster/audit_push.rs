//! The operators' audit log of many nodes at one receiver: one node sends, and another takes over from it.

use std::time::Duration;

use sakshi_kit::audit_entries::{is_complete, is_in_order, parse_record};
use sakshi_kit::collector::Collector;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

use crate::nodes::Nodes;

/// Longer than a dead node keeps its role.
const TAKEN_OVER: Duration = Duration::from_secs(60);

async fn change(node: &TestNode) {
    node.operator().post("/admin/v1/clients", &json!({ "name": "Acme" })).await.ok();
}

async fn arrived(collector: &Collector, count: u64, bound: Duration) {
    let entries = || collector.logs().iter().map(parse_record).collect::<Vec<_>>();
    eventually(&format!("{count} entries"), bound, || async { is_complete(&entries(), count).then_some(()) }).await;
    assert!(is_in_order(&entries()));
}

#[tokio::test]
async fn one_node_sends_the_audit_log_of_all_and_another_when_that_is_gone() {
    let collector = Collector::start().await;
    let mut nodes = Nodes::with(&[("TELEMETRY__OTLP_ENDPOINT", &collector.url), ("AUDIT_LOG__PUSH", "otlp")]).await;
    for node in nodes.all.iter().chain(&nodes.all) {
        change(node).await;
    }
    arrived(&collector, 12, TIMEOUT).await;
    assert_eq!(collector.logs().len(), 12, "no entry twice while no node was gone");
    // One of these was the sender.
    nodes.all[0].kill().await;
    nodes.all[1].kill().await;
    change(&nodes.all[2]).await;
    arrived(&collector, 14, TAKEN_OVER).await;
    nodes.all[0].launch().await;
    nodes.all[2].kill().await;
    change(&nodes.all[0]).await;
    arrived(&collector, 16, TAKEN_OVER).await;
    for node in &mut nodes.all[1..] {
        node.launch().await;
    }
}
