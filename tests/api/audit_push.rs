//! The operators' audit log at its receiver: every entry in order and at least once, despite kills.

use sakshi_kit::audit_entries::{is_complete, is_in_order, parse_line, parse_record};
use sakshi_kit::collector::Collector;
use sakshi_kit::node::TestNode;
use sakshi_kit::rsyslog::Rsyslog;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

/// Makes a change, which adds two entries to the log.
async fn make_change(node: &TestNode, name: &str) {
    node.operator().post("/admin/v1/clients", &json!({ "name": name })).await.ok();
}

async fn unsent_entries(node: &TestNode) -> Option<u64> {
    let page = node.operator().probe("/metrics").await.text;
    page.lines().find_map(|line| line.strip_prefix("sakshi_audit_log_unsent ")?.parse().ok())
}

#[tokio::test]
async fn a_collector_gets_every_entry_despite_its_own_and_the_nodes_outages() {
    let collector = Collector::start().await;
    let settings = [("TELEMETRY__OTLP_ENDPOINT", &*collector.url), ("AUDIT_LOG__PUSH", "otlp")];
    let mut node = TestNode::start_with(&settings).await;
    let received = |collector: &Collector| collector.logs().iter().map(parse_record).collect::<Vec<_>>();
    make_change(&node, "One").await;
    let client =
        node.operator().get("/admin/v1/clients").await.ok()["clients"][0]["client_id"].as_str().unwrap().to_owned();
    let key =
        node.operator().post(&format!("/admin/v1/clients/{client}/keys"), &json!({ "label": "kiosk" })).await.ok();
    eventually("four entries", TIMEOUT, || async { is_complete(&received(&collector), 4).then_some(()) }).await;
    assert_eq!(received(&collector).len(), 4, "no entry is sent twice");
    let texts: String = received(&collector).into_iter().map(|(.., text)| text).collect();
    assert!(texts.contains("\"label\":\"kiosk\"") && !texts.contains(key["api_key"].as_str().unwrap()), "{texts}");
    eventually("no unsent entry", TIMEOUT, || async { (unsent_entries(&node).await == Some(0)).then_some(()) }).await;

    collector.stop();
    make_change(&node, "Two").await;
    make_change(&node, "Three").await;
    eventually("four unsent entries", TIMEOUT, || async { (unsent_entries(&node).await == Some(4)).then_some(()) })
        .await;
    assert!(node.log().iter().any(|line| line.contains("the audit log cannot be sent to its receiver")));
    node.kill().await;
    node.launch().await;
    make_change(&node, "Four").await;
    let collector = collector.start_again().await;
    eventually("ten entries", TIMEOUT, || async { is_complete(&received(&collector), 10).then_some(()) }).await;
    assert!(is_in_order(&received(&collector)));
}

async fn rsyslog_gets_every_entry(has_tls: bool) {
    let mut server = Rsyslog::start(has_tls).await;
    let (url, authority) = (server.url(), server.authority.display().to_string());
    let mut node = TestNode::start_with(&[("AUDIT_LOG__PUSH", &url), ("OUTBOUND__CA_FILE", &authority)]).await;
    let received = |server: &Rsyslog| server.lines().iter().map(|line| parse_line(line)).collect::<Vec<_>>();
    make_change(&node, "Bank of Ålesund \"north\" \\ ]").await;
    eventually("two entries", TIMEOUT, || async { is_complete(&received(&server), 2).then_some(()) }).await;
    assert!(received(&server)[0].3.contains("Ålesund"));

    // Entries in the socket of a server that never reads are not confirmed.
    server.pause();
    make_change(&node, "Two").await;
    eventually("the warning about the receiver", TIMEOUT, || async {
        node.log().iter().any(|line| line.contains("the audit log cannot be sent to its receiver")).then_some(())
    })
    .await;
    server.kill();
    make_change(&node, "Three").await;
    server.launch().await;
    eventually("six entries", TIMEOUT, || async { is_complete(&received(&server), 6).then_some(()) }).await;

    server.pause();
    make_change(&node, "Four").await;
    node.kill().await;
    server.kill();
    server.launch().await;
    node.launch().await;
    make_change(&node, "Five").await;
    eventually("ten entries", TIMEOUT, || async { is_complete(&received(&server), 10).then_some(()) }).await;
    assert!(is_in_order(&received(&server)));
}

#[tokio::test]
async fn rsyslog_gets_every_entry_by_tcp_although_it_and_the_node_are_killed() {
    rsyslog_gets_every_entry(false).await;
}

#[tokio::test]
async fn rsyslog_gets_every_entry_by_tls_although_it_and_the_node_are_killed() {
    rsyslog_gets_every_entry(true).await;
}
