//! The metrics of a new node, and of a node after some work.

use std::collections::BTreeSet;

use reqwest::Method;
use sakshi::telemetry::catalogue::{Kind, METRICS};
use sakshi_kit::answer::Answer;
use sakshi_kit::flow::Flow;
use sakshi_kit::flow_fixture::FlowFixture;
use sakshi_kit::goldens::ESIGN_COMPLETED;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

/// Prefixes of counters that appear with the first call to Redis or the first request of a route.
const LATE_PREFIXES: [&str; 2] = ["sakshi_redis_", "sakshi_http_request"];

/// Returns the series of counters: each name with its labels.
async fn counter_series(node: &TestNode) -> BTreeSet<String> {
    let page = node.operator().probe("/metrics").await.text;
    let series = page.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    let is_counter = |series: &&str| {
        let name = series.split('{').next().unwrap_or_default();
        METRICS.iter().any(|metric| metric.name == name && metric.kind == Kind::Counter)
    };
    let series = series.map(|(series, _)| series).filter(is_counter);
    series.filter(|series| !LATE_PREFIXES.iter().any(|prefix| series.starts_with(prefix))).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_fresh_node_has_a_series_of_every_counter() {
    let node = TestNode::start().await;
    let series_of_node = counter_series(&node).await;
    for metric in METRICS.iter().filter(|metric| metric.kind == Kind::Counter) {
        let is_expected = !LATE_PREFIXES.iter().any(|prefix| metric.name.starts_with(prefix));
        let name = |series: &String| series.split('{').next() == Some(metric.name);
        assert_eq!(series_of_node.iter().any(name), is_expected, "{}", metric.name);
    }
    assert!(node.operator().probe("/metrics").await.text.contains("\nsakshi_ready 1\n"));
}

#[tokio::test]
async fn callbacks_and_webhooks_are_counted_for_the_objectives() {
    let fixture = FlowFixture::with_webhooks().await;
    let node = &fixture.node;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let opened = backend.open_reported(&["name"], &fixture.hook("ovse")).await;
    assert_eq!(identity_app.present(&opened, "none").await.status, 400);
    identity_app.approve(&opened, "asha").await;
    fixture.webhooks(1).await;
    // A webhook is counted after its receiver has answered.
    let count_line = "sakshi_webhook_delay_seconds_count{receiver_busy=\"false\"} 1\n";
    let page = eventually("the count of the webhook", TIMEOUT, || async {
        Some(node.operator().probe("/metrics").await.text).filter(|page| page.contains(count_line))
    });
    let page = page.await;
    for line in [
        "sakshi_callbacks_total{outcome=\"accepted\"} 1",
        "sakshi_callbacks_total{outcome=\"refused\"} 1",
        "sakshi_callbacks_total{outcome=\"failed\"} 0",
        "sakshi_callback_seconds_count 2",
        "sakshi_webhook_delay_seconds_count{receiver_busy=\"true\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    let value =
        |name: &str| page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
    assert!(value("sakshi_load_ratio").is_some_and(|ratio| (0.0..=1.0).contains(&ratio)));
    let (free, size) = (value("sakshi_store_disk_free_bytes"), value("sakshi_store_disk_size_bytes"));
    assert!(node.redis.is_some() || free > Some(0.0) && free < size, "{free:?} of {size:?}");
    assert!(value("sakshi_store_backup_timestamp_seconds").is_none(), "no backup exists");
    assert_eq!(value("sakshi_redis_file_written").is_some(), node.redis.is_some());
}

#[tokio::test]
async fn work_adds_no_series_that_a_fresh_node_lacks() {
    let fixture = FlowFixture::with_webhooks().await;
    let FlowFixture { node, backend, connector, .. } = &fixture;
    let series_before = counter_series(node).await;
    // A verification: refused, replayed and approved.
    let (verification_backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let (first, second) = (
        verification_backend.open_reported(&["name"], &fixture.hook("ovse")).await,
        verification_backend.open(&["name"]).await,
    );
    assert_eq!(identity_app.present(&first, "none").await.status, 400);
    let bare = identity_app.bare_credential(first.intent.requested(), "asha");
    assert_eq!(identity_app.present(&first, &bare).await.status, 200);
    assert_eq!(identity_app.present(&second, &bare).await.status, 400);
    // Flows with reports: accepted, repeated, refused and malformed.
    for flow in [Flow::Esign, Flow::DocLocker, Flow::EStamp, Flow::Wealth] {
        backend.open_flow(flow).await;
    }
    let opened = backend.open_flow(Flow::Esign).await;
    connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
    connector.report_again("esign", &opened.report(ESIGN_COMPLETED)).await;
    let contradiction = opened.report_with(ESIGN_COMPLETED, &[("/documentReferenceId", Some(json!("another")))]);
    assert_eq!(connector.report("esign", &contradiction).await.status, 409);
    assert_eq!(connector.report("estamp", &json!({})).await.status, 400);
    assert_eq!(connector.with_token("wrong").report("esign", &json!({})).await.status, 401);
    let pan = json!({"pan": "ABCPE1234F", "consent": "Y", "consent_text": "I agree."});
    backend.secrets.watch_for_personal_data(&pan);
    Answer::receive(backend.request(Method::POST, "/api/v1/pan/verify").json(&pan)).await.ok();
    fixture.webhooks(2).await;
    let new_series: Vec<String> = counter_series(node).await.difference(&series_before).cloned().collect();
    assert!(new_series.is_empty(), "{new_series:#?}");
}
