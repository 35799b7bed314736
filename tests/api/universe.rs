//! The universe's own checks: a test stands on them without naming them, so they are tried here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;

use sakshi_kit::universe::Universe;
use sakshi_kit::waiting::{PLENTY, eventually};

#[tokio::test]
async fn a_secret_in_a_log_line_fails_the_test() {
    let mut universe = Universe::start().await;
    let backend = universe.backend(1).await;
    backend.open(&["name"]).await;
    let logged = eventually("a line about the transaction", PLENTY, || async {
        universe.log().into_iter().find(|line| line.contains("transaction opened"))
    })
    .await;
    universe.secrets.keep(logged.rsplit(' ').next().expect("a word"));
    assert!(catch_unwind(AssertUnwindSafe(|| universe.stop())).is_err());
}

#[tokio::test]
async fn a_person_of_a_report_in_a_log_line_fails_the_test() {
    let mut universe = Universe::start().await;
    let backend = universe.backend(1).await;
    backend.open(&["name"]).await;
    let logged = eventually("a line about the transaction", PLENTY, || async {
        universe.log().into_iter().find(|line| line.contains("transaction opened"))
    })
    .await;
    let word = logged.rsplit(' ').next().expect("a word");
    universe.secrets.keep_personal(&json!({"signerInfo": [{"nationalIdAuditInfo": {"name": word}}]}));
    assert!(catch_unwind(AssertUnwindSafe(|| universe.stop())).is_err());
}

#[tokio::test]
async fn a_process_that_dies_fails_the_test() {
    let mut universe = Universe::start().await;
    universe.process().signal("ABRT");
    universe.process().ended(PLENTY).await;
    assert!(catch_unwind(AssertUnwindSafe(|| universe.stop())).is_err());
    // What is dead already needs no end.
    drop(catch_unwind(AssertUnwindSafe(|| universe.take_process())));
}
