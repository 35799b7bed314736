//! The program against a server with a fault: each fault must be found, and a server without one must not be accused.

use std::process::Command;
use std::time::Duration;

use sakshi_sandbox::issuer::SandboxIssuer;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::stand_in::{Fault, StandIn};

/// Runs the program against a server with this fault. Returns its exit code, its summary and everything that it
/// printed.
async fn run_against(fault: Fault, options: &'static [&'static str]) -> (Option<i32>, Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let (key, json) = (directory.path().join("issuer.p8"), directory.path().join("summary.json"));
    std::fs::write(&key, SandboxIssuer::generate("https://issuer.sandbox.invalid").unwrap().to_pkcs8().unwrap())
        .unwrap();
    let server = StandIn::start(fault).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_sakshi-load"));
    command.args(["kiosk", "--base", &server.base, "--internal", &server.base, "--patience", "1"]).args(options);
    command.arg("--issuer-key").arg(&key).arg("--json").arg(&json);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let summary = std::fs::read(&json).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), summary, said)
}

const GUESTS: &[&str] = &["--guests", "40", "--rate", "200"];
const ALL_COME: &[&str] =
    &["--guests", "40", "--rate", "200", "--abandon", "0", "--decline", "0", "--max-guests", "20"];

/// Options with some people who come again.
const AGAIN: &[&str] = &["--guests", "60", "--rate", "200", "--duplicates", "0.3", "--abandon", "0", "--decline", "0"];
const AGAIN_REFUSED: &[&str] = &[
    "--guests",
    "60",
    "--rate",
    "200",
    "--duplicates",
    "0.3",
    "--abandon",
    "0",
    "--decline",
    "0",
    "--on-duplicate",
    "refuse",
];
const STRICT: &[&str] = &["--guests", "40", "--rate", "200", "--on-duplicate", "refuse"];
const AGAIN_ALLOWED: &[&str] = &["--guests", "60", "--rate", "200", "--duplicates", "0.3", "--on-duplicate", "allow"];
const DOORS: &[&str] = &["--guests", "40", "--rate", "200", "--doors", "3", "--twice", "0.5", "--door-offline", "1"];

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_fault_is_not_accused() {
    for options in [GUESTS, ALL_COME, AGAIN, AGAIN_REFUSED, AGAIN_ALLOWED, DOORS] {
        let (code, summary, said) = run_against(Fault::None, options).await;
        assert_eq!((code, &summary["verdict"]), (Some(0), &Value::from("held")), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_found_and_ends_with_1() {
    let faults = [
        (Fault::DropsAWebhook, GUESTS, "each outcome is reported by a webhook"),
        (Fault::SendsAWebhookTwice, GUESTS, "no webhook is sent twice"),
        (Fault::DebitsTwice, GUESTS, "each transaction opened costs one credit"),
        (Fault::TakesOneTooMany, ALL_COME, "never more guests than places"),
        (Fault::ForgetsAGuest, GUESTS, "the registered guests are those who were told so"),
        (Fault::TurnsAwayEarly, GUESTS, "nobody is turned away before the event is full"),
        (Fault::MarksNobody, AGAIN, "every duplicate is marked where the event flags, and nobody else"),
        (Fault::MarksAStranger, GUESTS, "every duplicate is marked where the event flags, and nobody else"),
        (Fault::RegistersTwice, AGAIN_REFUSED, "every duplicate is refused where the event refuses, and nobody else"),
        (Fault::RefusesAStranger, STRICT, "every duplicate is refused where the event refuses, and nobody else"),
        (Fault::ChecksInTwice, DOORS, "each guest is checked in exactly once"),
        (Fault::LosesACheckIn, DOORS, "each guest is checked in exactly once"),
        (Fault::CountsACheckInTwice, DOORS, "the counts of check-ins agree"),
        (Fault::NamesAnotherGate, DOORS, "doors and registrations agree on the time and gate of each check-in"),
        (Fault::HidesAGuest, DOORS, "each door lists the registered guests and takes their codes"),
    ];
    let mut trials = JoinSet::new();
    for (fault, options, rule) in faults {
        trials.spawn(async move { (fault, rule, run_against(fault, options).await) });
    }
    while let Some(trial) = trials.join_next().await {
        let (fault, rule, (code, summary, said)) = trial.unwrap();
        assert_eq!((code, &summary["verdict"]), (Some(1), &Value::from("broken")), "{fault:?}: {said}");
        let findings = summary["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["rule"] == rule).unwrap();
        assert_eq!(finding["held"], false, "{fault:?}: {said}");
        assert!(!finding["examples"].as_array().unwrap().is_empty(), "{fault:?} is shown by example");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_stalls_is_seen_in_the_percentiles_of_a_closed_run() {
    let stall = Fault::DelaysAPage(Duration::from_millis(900));
    let (code, summary, said) = run_against(stall, &["--guests", "40", "--users", "1", "--rate", "20"]).await;
    assert_eq!(code, Some(0), "{said}");
    let page = summary["steps"].as_array().unwrap().iter().find(|step| step["title"] == "GET /e/{id}").unwrap();
    let ms = |from: &str, percentile: &str| page[from][percentile].as_f64().unwrap();
    // One of forty requests stalled for 900 ms, and the user waited instead of asking every 50 ms.
    assert!(
        ms("sent", "max") >= 900.0 && ms("due", "p90") > 400.0,
        "who would have asked meanwhile is counted: {page}"
    );
    assert!(ms("sent", "p90") < ms("due", "p90"), "and hidden where it is not corrected: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_driven_ends_with_2() {
    let foreign: &[&str] = &["--base", "http://192.0.2.1:1"];
    let (code, _, said) = run_against(Fault::None, foreign).await;
    assert!(code == Some(2) && said.contains("--i-own-this-target"), "{code:?} {said}");
    let (code, _, said) = run_against(Fault::None, &["--abandon", "2"]).await;
    assert!(code == Some(2) && said.contains("--abandon"), "{code:?} {said}");
    // Beside a listener that answers.
    let (code, _, said) = run_against(Fault::None, &["--base", "http://127.0.0.1:1"]).await;
    assert!(code == Some(2) && said.contains("unreachable"), "{code:?} {said}");
}
