//! The operators' audit log at its receiver: every entry in order and at least once, despite kills.

use sakshi_kit::audit_entries::{is_complete, is_in_order, parse_line, parse_record};
use sakshi_kit::collector::Collector;
use sakshi_kit::node::TestNode;
use sakshi_kit::rsyslog::Rsyslog;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

/// Creates a client, which adds two entries to the audit log: the request and its answer.
async fn create_client(node: &TestNode, name: &str) {
    node.operator().post("/admin/v1/clients", &json!({ "name": name })).await.ok();
}

/// Returns the number of entries that the receiver has not confirmed.
async fn unsent_entries(node: &TestNode) -> Option<u64> {
    node.metric("sakshi_audit_log_unsent").await
}

/// Waits for the log line about a receiver that cannot be reached.
async fn wait_for_warning(node: &TestNode) {
    eventually("the warning about the receiver", TIMEOUT, || async {
        node.log().iter().any(|line| line.contains("the audit log cannot be sent to its receiver")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_collector_gets_every_entry_despite_its_own_and_the_nodes_outages() {
    let collector = Collector::start().await;
    let settings = [("TELEMETRY__OTLP_ENDPOINT", &*collector.url), ("AUDIT_LOG__PUSH", "otlp")];
    let mut node = TestNode::start_with(&settings).await;
    let received = |collector: &Collector| collector.logs().iter().map(parse_record).collect::<Vec<_>>();
    create_client(&node, "One").await;
    let client =
        node.operator().get("/admin/v1/clients").await.ok()["clients"][0]["client_id"].as_str().unwrap().to_owned();
    let key =
        node.operator().post(&format!("/admin/v1/clients/{client}/keys"), &json!({ "label": "kiosk" })).await.ok();
    eventually("four entries", TIMEOUT, || async { is_complete(&received(&collector), 4).then_some(()) }).await;
    assert_eq!(received(&collector).len(), 4, "no entry is sent twice: {:?}", node.log());
    let texts: String = received(&collector).into_iter().map(|(.., text)| text).collect();
    assert!(texts.contains("\"label\":\"kiosk\"") && !texts.contains(key["api_key"].as_str().unwrap()), "{texts}");
    eventually("no unsent entry", TIMEOUT, || async { (unsent_entries(&node).await == Some(0)).then_some(()) }).await;

    collector.stop();
    create_client(&node, "Two").await;
    create_client(&node, "Three").await;
    eventually("four unsent entries", TIMEOUT, || async { (unsent_entries(&node).await == Some(4)).then_some(()) })
        .await;
    wait_for_warning(&node).await;
    node.kill().await;
    node.launch().await;
    create_client(&node, "Four").await;
    let collector = collector.start_again().await;
    eventually("ten entries", TIMEOUT, || async { is_complete(&received(&collector), 10).then_some(()) }).await;
    assert!(is_in_order(&received(&collector)));
}

/// Checks that an rsyslog server gets every entry, although it and the node are killed.
async fn assert_rsyslog_gets_every_entry(mut server: Rsyslog) {
    let (url, authority) = (server.url(), server.authority.display().to_string());
    let mut node = TestNode::start_with(&[("AUDIT_LOG__PUSH", &url), ("OUTBOUND__CA_FILE", &authority)]).await;
    let received = |server: &Rsyslog| server.lines().iter().map(|line| parse_line(line)).collect::<Vec<_>>();
    create_client(&node, "Bank of Ålesund \"north\" \\ ]").await;
    eventually("two entries", TIMEOUT, || async { is_complete(&received(&server), 2).then_some(()) }).await;
    let (.., text) = &received(&server)[0];
    assert!(text.contains("Ålesund"));

    // Entries in the socket of a server that never reads are not confirmed.
    server.pause();
    create_client(&node, "Two").await;
    wait_for_warning(&node).await;
    server.kill();
    create_client(&node, "Three").await;
    server.launch().await;
    eventually("six entries", TIMEOUT, || async { is_complete(&received(&server), 6).then_some(()) }).await;

    server.pause();
    create_client(&node, "Four").await;
    node.kill().await;
    server.kill();
    server.launch().await;
    node.launch().await;
    create_client(&node, "Five").await;
    eventually("ten entries", TIMEOUT, || async { is_complete(&received(&server), 10).then_some(()) }).await;
    assert!(is_in_order(&received(&server)));
}

#[tokio::test]
async fn rsyslog_gets_every_entry_by_tcp_although_it_and_the_node_are_killed() {
    let has_tls = false;
    assert_rsyslog_gets_every_entry(Rsyslog::start(has_tls).await).await;
}

#[tokio::test]
async fn rsyslog_gets_every_entry_by_tls_although_it_and_the_node_are_killed() {
    let has_tls = true;
    assert_rsyslog_gets_every_entry(Rsyslog::start(has_tls).await).await;
}
