//! The push of the operators' audit log to one receiver: one node sends for all, and another takes over from it.

use std::time::Duration;

use sakshi_kit::audit_entries::{is_complete, is_in_order, parse_record};
use sakshi_kit::collector::Collector;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

use crate::nodes::Nodes;

/// Time limit for another node to take over from a dead sender.
const TAKEOVER_TIME_MAX: Duration = Duration::from_secs(60);

/// Entries of an operator's change: one before the change, and one with its outcome.
const ENTRIES_PER_CHANGE: u64 = 2;

async fn create_client(node: &TestNode) {
    node.operator().post("/admin/v1/clients", &json!({ "name": "Acme" })).await.ok();
}

/// Waits until the collector has the entries of this number of changes, complete and in order.
async fn await_changes(collector: &Collector, changes: u64, bound: Duration) {
    let count = changes * ENTRIES_PER_CHANGE;
    let entries = || collector.logs().iter().map(parse_record).collect::<Vec<_>>();
    eventually(&format!("{count} entries"), bound, || async { is_complete(&entries(), count).then_some(()) }).await;
    assert!(is_in_order(&entries()));
}

#[tokio::test]
async fn one_node_pushes_the_audit_log_of_all_nodes_and_another_takes_over() {
    let collector = Collector::start().await;
    let mut nodes =
        Nodes::start_with(&[("TELEMETRY__OTLP_ENDPOINT", &collector.url), ("AUDIT_LOG__PUSH", "otlp")]).await;
    for node in nodes.all.iter().chain(&nodes.all) {
        create_client(node).await;
    }
    let changes = 2 * nodes.all.len() as u64;
    await_changes(&collector, changes, TIMEOUT).await;
    assert_eq!(collector.logs().len() as u64, changes * ENTRIES_PER_CHANGE, "no entry is repeated while all nodes run");
    // Either killed node may be the one that sends the log.
    nodes.all[0].kill().await;
    nodes.all[1].kill().await;
    create_client(&nodes.all[2]).await;
    await_changes(&collector, changes + 1, TAKEOVER_TIME_MAX).await;
    nodes.all[0].launch().await;
    nodes.all[2].kill().await;
    create_client(&nodes.all[0]).await;
    await_changes(&collector, changes + 2, TAKEOVER_TIME_MAX).await;
    for node in &mut nodes.all[1..] {
        node.launch().await;
    }
}
