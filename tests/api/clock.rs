//! Nodes whose clock differs from the time of their store.

use rusqlite::Connection;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};

/// Clock jump in this test: two days, in seconds.
const JUMP_S: i64 = 172_800;

async fn clock_has_jumped(node: &TestNode) -> bool {
    node.metric::<f64>("sakshi_clock_jumped").await.unwrap() > 0.0
}

#[tokio::test]
async fn a_node_on_redis_shows_the_clock_offset_of_redis() {
    let node = TestNode::start().await;
    let offset: Option<f64> = node.metric("sakshi_store_clock_offset_seconds").await;
    assert_eq!(offset.is_some(), node.redis.is_some());
    assert!(offset.unwrap_or_default().abs() < 60.0, "both are on this machine: {offset:?}");
    assert!(!clock_has_jumped(&node).await);
}

#[tokio::test]
async fn a_clock_jump_stops_deletion_until_an_operator_accepts_the_clock() {
    let mut node = TestNode::start().await;
    if node.redis.is_some() {
        // The test changes the file of the embedded store.
        return;
    }
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    identity_app.approve(&backend.open(&["name"]).await, "asha").await;
    assert!(!clock_has_jumped(&node).await);
    let accepted_nothing = node.admin(&["accept-clock"]).await;
    assert!(
        accepted_nothing.status.success() && accepted_nothing.out.contains("nothing to accept"),
        "{}{}",
        accepted_nothing.out,
        accepted_nothing.err
    );
    node.kill().await;
    let database = Connection::open(node.store().join("sakshi.db")).unwrap();
    // As after a start with a clock two days ahead: the result has expired.
    database.execute_batch(
        "UPDATE swept_record SET at = at - 172800000; UPDATE txn_record SET until = until - 172800000, _end = _end - \
            172800000",
    )
    .unwrap();
    let result_count =
        || database.query_row("SELECT count(*) FROM txn_record", [], |row| row.get::<_, u32>(0)).unwrap();
    node.launch().await;
    assert!(clock_has_jumped(&node).await);
    let warning = eventually("the warning about the clock", TIMEOUT, || async {
        node.log().into_iter().find(|line| line.contains("the clock is more than an hour from the store's last sweep"))
    })
    .await;
    assert!(warning.contains("ERROR"), "{warning}");
    assert_eq!(result_count(), 1);

    let accepted = node.admin(&["accept-clock"]).await;
    assert!(accepted.out.starts_with("Accepted. The clock was right at "), "{}{}", accepted.out, accepted.err);
    assert!(!clock_has_jumped(&node).await);
    eventually("the result is deleted", TIMEOUT, || async { (result_count() == 0).then_some(()) }).await;
    let log = node.operator().get("/admin/v1/audit-log?limit=100").await.ok();
    let is_answer = |entry: &&Value| entry["operation"] == "acceptClock" && entry["stage"] == "answered";
    let entries = log["entries"].as_array().unwrap().iter().map(|row| &row["entry"]);
    let answers: Vec<&Value> = entries.filter(is_answer).map(|entry| &entry["after"]).collect();
    assert_eq!(answers[0], &json!({ "accepted": false, "since": null, "ahead_s": null }));
    let ahead = answers[1]["ahead_s"].as_i64().unwrap();
    assert!((JUMP_S..JUMP_S + 60).contains(&ahead) && answers[1]["since"].is_string(), "{}", answers[1]);
}
