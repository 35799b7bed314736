//! What the operator reads: one line per request, by its route, with its id.

use reqwest::Method;

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::result_path;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

#[tokio::test]
async fn a_request_is_one_line_that_names_its_route_and_its_id_and_not_its_path() {
    let node = TestNode::start().await;
    let backend = node.backend(1).await;
    let opened = backend.open(&["name"]).await;
    Answer::to(backend.request(Method::GET, &result_path(&opened.txn)).header("X-Request-ID", "order-7/log")).await.ok();
    let lines = eventually("the line", TIMEOUT, || async {
        let lines: Vec<String> = node.log().into_iter().filter(|line| line.contains("order-7/log")).collect();
        (!lines.is_empty()).then_some(lines)
    })
    .await;
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("/api/v1/nationalid-ovse/result/{txnId}") && !lines[0].contains(&opened.txn), "{}", lines[0]);
    assert!(lines[0].contains("200"), "{}", lines[0]);
}

#[tokio::test]
async fn with_the_json_format_every_line_of_the_log_is_an_object() {
    let mut node = TestNode::with(&[("TELEMETRY__LOG_FORMAT", "json")]).await;
    let (backend, identity_app) = (node.backend(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    identity_app.approve(&opened, "asha").await;
    let ending = node.stop();
    let mut objects = 0;
    // The sandbox shows its first client's key to a person, not to a log.
    for line in ending.err.lines().filter(|line| line.starts_with('{')) {
        let object: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(object["timestamp"].is_string() && object["level"].is_string() && object["message"].is_string(), "{line}");
        objects += 1;
    }
    assert!(objects > 5, "{}", ending.err);
}
