//! The checks of the kit, on which every test relies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::json;

use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};

#[test]
fn neither_load_nor_pauses_excuse_an_action_that_is_much_too_slow() {
    let bound = Duration::from_millis(10);
    assert_within(Duration::from_millis(9), bound, "a quick action");
    assert!(catch_unwind(|| assert_within(Duration::from_secs(60), bound, "a slow action")).is_err());
}

#[tokio::test]
async fn a_secret_in_a_log_line_fails_the_test() {
    let mut node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    backend.open(&["name"]).await;
    let log_line = eventually("a line about the transaction", TIMEOUT, || async {
        node.log().into_iter().find(|line| line.contains("transaction opened"))
    })
    .await;
    // A word that the node has logged is declared a secret.
    node.secrets.watch_for(log_line.rsplit(' ').next().expect("a word"));
    assert!(catch_unwind(AssertUnwindSafe(|| node.stop())).is_err());
}

#[tokio::test]
async fn personal_data_from_a_report_in_a_log_line_fails_the_test() {
    let mut node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    backend.open(&["name"]).await;
    let log_line = eventually("a line about the transaction", TIMEOUT, || async {
        node.log().into_iter().find(|line| line.contains("transaction opened"))
    })
    .await;
    let word = log_line.rsplit(' ').next().expect("a word");
    node.secrets.watch_for_personal_data(&json!({"signerInfo": [{"nationalIdAuditInfo": {"name": word}}]}));
    assert!(catch_unwind(AssertUnwindSafe(|| node.stop())).is_err());
}

#[tokio::test]
async fn a_process_that_dies_fails_the_test() {
    let mut node = TestNode::start().await;
    node.process().signal("ABRT");
    node.process().wait_for_exit(TIMEOUT).await;
    assert!(catch_unwind(AssertUnwindSafe(|| node.stop())).is_err());
    // A dead process needs no stop.
    drop(catch_unwind(AssertUnwindSafe(|| node.take_process())));
}
