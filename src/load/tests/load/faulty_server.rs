//! The program against a server with a fault. It must find each fault, and report no fault of a correct server.

use std::process::Command;
use std::time::Duration;

use sakshi_sandbox::issuer::SandboxIssuer;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::stand_in::{Fault, StandIn};

/// Runs the program against a server with this fault. Returns the exit code, the summary and the output of the program.
async fn run_against(fault: Fault, options: &'static [&'static str]) -> (Option<i32>, Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let (key, json) = (directory.path().join("issuer.p8"), directory.path().join("summary.json"));
    std::fs::write(&key, SandboxIssuer::generate("https://issuer.sandbox.invalid").unwrap().to_pkcs8().unwrap())
        .unwrap();
    let server = StandIn::start(fault).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_sakshi-load"));
    command.args(["kiosk", "--base", &server.base, "--internal", &server.base, "--patience", "1"]).args(options);
    command.arg("--issuer-key").arg(&key).arg("--json").arg(&json);
    let process = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let summary = std::fs::read(&json).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let output = format!("{}{}", String::from_utf8_lossy(&process.stdout), String::from_utf8_lossy(&process.stderr));
    (process.status.code(), summary, output)
}

/// Options of a run in which some guests leave or decline.
const GUESTS: &[&str] = &["--guests", "40", "--rate", "200"];
/// Options of a run in which all guests complete, for half as many places.
const ALL_COMPLETE: &[&str] =
    &["--guests", "40", "--rate", "200", "--abandon", "0", "--decline", "0", "--max-guests", "20"];

/// Options with returning people.
const RETURNING: &[&str] =
    &["--guests", "60", "--rate", "200", "--duplicates", "0.3", "--abandon", "0", "--decline", "0"];
const RETURNING_REFUSED: &[&str] = &[
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
const REFUSING_EVENT: &[&str] = &["--guests", "40", "--rate", "200", "--on-duplicate", "refuse"];
const RETURNING_ALLOWED: &[&str] =
    &["--guests", "60", "--rate", "200", "--duplicates", "0.3", "--on-duplicate", "allow"];
/// Options with three doors, of which one has no network for a second.
const DOORS: &[&str] = &["--guests", "40", "--rate", "200", "--doors", "3", "--twice", "0.5", "--door-offline", "1"];

#[tokio::test(flavor = "multi_thread")]
async fn no_fault_is_reported_of_a_correct_server() {
    for options in [GUESTS, ALL_COMPLETE, RETURNING, RETURNING_REFUSED, RETURNING_ALLOWED, DOORS] {
        let (code, summary, output) = run_against(Fault::None, options).await;
        assert_eq!((code, &summary["verdict"]), (Some(0), &Value::from("held")), "{output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debit_committed_between_statement_and_balance_is_no_fault() {
    let (code, summary, output) = run_against(Fault::DebitsLate, GUESTS).await;
    assert_eq!((code, &summary["verdict"]), (Some(0), &Value::from("held")), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_found_and_the_exit_code_is_1() {
    let faults = [
        (Fault::DropsAWebhook, GUESTS, "each outcome is reported by a webhook"),
        (Fault::SendsAWebhookTwice, GUESTS, "no webhook is sent twice"),
        (Fault::DebitsTwice, GUESTS, "each transaction opened costs one credit"),
        (Fault::AcceptsOneTooMany, ALL_COMPLETE, "never more guests than places"),
        (Fault::ForgetsAGuest, GUESTS, "the registered guests are those with an accepted credential"),
        (Fault::TurnsAwayEarly, GUESTS, "nobody is turned away before the event is full"),
        (Fault::MarksNobody, RETURNING, "if the event flags duplicates, every duplicate is marked, and nobody else is"),
        (Fault::MarksAStranger, GUESTS, "if the event flags duplicates, every duplicate is marked, and nobody else is"),
        (
            Fault::RegistersTwice,
            RETURNING_REFUSED,
            "if the event refuses duplicates, every duplicate is refused, and nobody else is",
        ),
        (
            Fault::RefusesAStranger,
            REFUSING_EVENT,
            "if the event refuses duplicates, every duplicate is refused, and nobody else is",
        ),
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
        let (fault, rule, (code, summary, output)) = trial.unwrap();
        assert_eq!((code, &summary["verdict"]), (Some(1), &Value::from("broken")), "{fault:?}: {output}");
        let findings = summary["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["rule"] == rule).unwrap();
        assert_eq!(finding["held"], false, "{fault:?}: {output}");
        assert!(!finding["examples"].as_array().unwrap().is_empty(), "{fault:?} has an example");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_page_shows_in_the_percentiles_of_a_closed_run() {
    let stall = Fault::DelaysAPage(Duration::from_millis(900));
    let (code, summary, output) = run_against(stall, &["--guests", "40", "--users", "1", "--rate", "20"]).await;
    assert_eq!(code, Some(0), "{output}");
    let page = summary["steps"].as_array().unwrap().iter().find(|step| step["title"] == "GET /e/{id}").unwrap();
    let ms = |from: &str, percentile: &str| page[from][percentile].as_f64().unwrap();
    // One of forty requests stalled for 900 ms. The user waited instead of sending a request every 50 ms.
    assert!(ms("sent", "max") >= 900.0 && ms("due", "p90") > 400.0, "the unsent requests are counted: {page}");
    assert!(ms("sent", "p90") < ms("due", "p90"), "the stall is hidden without the correction: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_run_ends_with_exit_code_2() {
    let foreign: &[&str] = &["--base", "http://192.0.2.1:1"];
    let (code, _, output) = run_against(Fault::None, foreign).await;
    assert!(code == Some(2) && output.contains("--i-own-this-target"), "{code:?} {output}");
    let (code, _, output) = run_against(Fault::None, &["--abandon", "2"]).await;
    assert!(code == Some(2) && output.contains("--abandon"), "{code:?} {output}");
    // The other listener answers.
    let (code, _, output) = run_against(Fault::None, &["--base", "http://127.0.0.1:1"]).await;
    assert!(code == Some(2) && output.contains("unreachable"), "{code:?} {output}");
}
