//! The command `trigger` against a real node: its output and its effects.

use clap::Parser;
use sakshi::cli::error::CliError;
use sakshi::developer::trigger::{Trigger, outcomes, run};
use sakshi::settings::Sources;
use serde_json::Value;

use crate::in_process::InProcessNode;

/// The command line of `trigger`.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    trigger: Trigger,
}

fn parse(arguments: &[&str]) -> Result<Trigger, clap::Error> {
    Arguments::try_parse_from([&["trigger"], arguments].concat()).map(|arguments| arguments.trigger)
}

/// Runs the command against a node; returns true if everything was as it should be, and the output.
async fn run_trigger(node: &InProcessNode, arguments: &[&str]) -> (Result<bool, CliError>, String) {
    let (base, internal) = (node.inner.public_base.clone(), format!("http://{}/", node.inner.internal_addr));
    let trigger = parse(&[arguments, &["--base", &base, "--internal", &internal]].concat()).unwrap();
    let mut out = Vec::new();
    let result = run(&trigger, &Sources::default(), &mut out).await;
    (result, String::from_utf8(out).unwrap())
}

#[test]
fn an_unknown_outcome_is_refused_with_the_known_ones() {
    let refused = parse(&["doclocker", "--outcome", "stolen"]).unwrap_err().to_string();
    for known in ["fetched", "partly", "pending", "failed"] {
        assert!(refused.contains(known), "{refused}");
    }
    assert!(parse(&["esign", "--signers", "0"]).is_err() && parse(&["ovse", "--signers", "2"]).is_err());
    assert!(parse(&["estamp", "--api-type", "PhysicalEStamp"]).is_ok());
}

#[test]
fn the_help_lists_the_outcomes_of_every_flow() {
    let help = outcomes();
    for line in [
        "  ovse       approve, decline, abort, fail_liveness, fail_match, walk_away, expired, revoked, suspended, \
            status_unavailable",
        "  esign      completed, rejected, expired, signed-once, lapsed",
        "  doclocker  fetched, partly, pending, failed",
        "  estamp     completed, rejected, expired, pending",
        "  wealth     accepted, rejected, revoked, expiring-soon, expired, raw, analysed, data-failed, historical, \
         historical-partial, historical-failed, all",
        "  check      valid, invalid, not-found, time-out, fail",
        "Kinds of checks: pan, gst, bank-account, ifsc, voter-id",
    ] {
        assert!(help.lines().any(|help_line| help_line == line), "{line} in {help}");
    }
}

#[actix_rt::test]
async fn each_kind_of_check_returns_each_status() {
    let node = InProcessNode::start().await;
    for kind in ["pan", "gst", "bank-account", "ifsc", "voter-id"] {
        for (outcome, status) in
            [("valid", "valid"), ("invalid", "invalid"), ("not-found", "not_found"), ("fail", "upstream_failed")]
        {
            let (result, out) = run_trigger(&node, &["check", kind, "--outcome", outcome]).await;
            assert!(result.unwrap() && out.contains(&format!("{status}, as it should be")), "{out}");
        }
    }
    node.stop().await;
    assert!(parse(&["check", "passport"]).unwrap_err().to_string().contains("the kinds are pan, gst"));
}

#[actix_rt::test]
async fn a_run_without_a_key_issues_and_revokes_its_own() {
    let node = InProcessNode::start().await;
    let (result, out) = run_trigger(&node, &["ovse"]).await;
    assert!(result.unwrap(), "{out}");
    for line in [
        "\"sakshi trigger\"",
        "key data.txn_id=",
        "the same body as the webhook's",
        "verification passed, as it should be",
        "everything",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    let (result, out) = run_trigger(&node, &["ovse", "--outcome", "walk_away"]).await;
    assert!(result.unwrap() && out.contains("nothing is posted") && out.contains("verification pending"), "{out}");
    let (result, out) = run_trigger(&node, &["ovse", "--outcome", "expired"]).await;
    assert!(
        result.unwrap()
            && out.contains("the window ended at ")
            && out.contains("verification expired, as it should be"),
        "{out}"
    );
    for (outcome, reason, end) in [
        ("revoked", "credential_revoked", "pending"),
        ("suspended", "credential_suspended", "pending"),
        ("status_unavailable", "status_unavailable", "passed"),
    ] {
        let (result, out) = run_trigger(&node, &["ovse", "--outcome", outcome]).await;
        let lines = [format!("callback {reason}, as it should be"), format!("verification {end}, as it should be")];
        assert!(result.unwrap() && lines.iter().all(|line| out.contains(line)), "{out}");
    }
    let (_, apps) = node.get_as_operator(&format!("/admin/v1/clients/{}/apps", node.first.client)).await;
    assert_eq!(apps["apps"].as_array().unwrap().len(), 2, "later runs reuse the app of the first: {apps}");
    let (_, keys) = node.get_as_operator(&format!("/admin/v1/clients/{}/keys", node.first.client)).await;
    let issued: Vec<&Value> =
        keys["keys"].as_array().unwrap().iter().filter(|key| key["label"] == "sakshi trigger").collect();
    assert!(issued.len() == 6 && issued.iter().all(|key| key["revoked_at"].is_string()), "{keys}");
    node.stop().await;
}

#[actix_rt::test]
async fn a_key_is_used_for_its_app_and_a_wrong_key_is_explained() {
    let node = InProcessNode::start().await;
    let (key, app) = (node.first.key.reveal().to_owned(), node.first.app.to_string());
    let (result, out) = run_trigger(&node, &["ovse", "--outcome", "decline", "--key", &key, "--app", &app]).await;
    assert!(
        result.unwrap()
            && out.contains("verification failed, as it should be")
            && out.contains(&app)
            && !out.contains(&key),
        "{out}"
    );
    let (refused, _) = run_trigger(&node, &["ovse", "--key", "sk_wrong", "--app", &app]).await;
    assert!(refused.unwrap_err().to_string().contains("API key"));
    let (refused, _) = run_trigger(&node, &["ovse", "--key", &key]).await;
    assert!(refused.unwrap_err().to_string().contains("--app"));
    let (_, keys) = node.get_as_operator(&format!("/admin/v1/clients/{}/keys", node.first.client)).await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1, "no key was issued");
    node.stop().await;
}

#[actix_rt::test]
async fn a_run_without_a_key_outside_a_sandbox_explains_how_to_get_one() {
    let node = InProcessNode::start().await;
    let (base, internal) = (node.inner.public_base.clone(), format!("http://{}/", node.inner.internal_addr));
    let trigger = parse(&["esign", "--base", &base, "--internal", &internal]).unwrap();
    let overrides = vec![("profile".to_owned(), "production".to_owned())];
    let refused =
        run(&trigger, &Sources { overrides, ..Sources::default() }, &mut Vec::new()).await.unwrap_err().to_string();
    assert!(refused.contains("sakshi admin keys issue") && refused.contains("SAKSHI_API_KEY"), "{refused}");
    let internal_as_public = parse(&["ovse", "--base", &internal, "--internal", &internal]).unwrap();
    let refused = run(&internal_as_public, &Sources::default(), &mut Vec::new()).await.unwrap_err().to_string();
    assert!(refused.contains("is no sandbox"), "{refused}");
    node.stop().await;
}

#[actix_rt::test]
async fn every_outcome_of_every_flow_succeeds() {
    let node = InProcessNode::start().await;
    let mut runs: Vec<Vec<String>> = Vec::new();
    let flows = outcomes();
    let lines = flows
        .lines()
        .skip(1)
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(flow, _)| !["check", "Kinds"].contains(flow));
    for (flow, words) in lines {
        runs.extend(
            words.split(',').map(str::trim).map(|outcome| [flow, "--outcome", outcome].map(str::to_owned).to_vec()),
        );
    }
    runs.extend(
        ["completed", "rejected", "signed-once"]
            .map(|outcome| ["esign", "--signers", "3", "--outcome", outcome].map(str::to_owned).to_vec()),
    );
    runs.push(["estamp", "--api-type", "PhysicalEStamp"].map(str::to_owned).to_vec());
    // The outcomes of the five flows, and the four further runs.
    assert_eq!(runs.len(), 10 + 5 + 4 + 4 + 12 + 4);
    for run in runs {
        let (result, out) = run_trigger(&node, &run.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert!(result.unwrap(), "{run:?}: {out}");
        assert!(!out.contains("NOT "), "{run:?}: {out}");
    }
    node.stop().await;
}

#[actix_rt::test]
async fn a_webhook_url_is_registered_only_during_the_run() {
    let node = InProcessNode::start().await;
    let (app, hook) = (node.first.app.to_string(), "http://127.0.0.1:9/hook");
    let (result, out) = run_trigger(&node, &["doclocker", "--app", &app]).await;
    assert!(
        result.unwrap()
            && out.contains("at the URL registered for the app")
            && out.contains("webhook   none: no URL is registered"),
        "{out}"
    );
    let registered = async || node.get("/api/v1/user/webhook").await.1["data"].clone();
    assert_eq!(registered().await, serde_json::json!([]));
    let (result, out) = run_trigger(&node, &["doclocker", "--app", &app, "--webhook-url", hook]).await;
    assert!(result.unwrap() && out.contains("unreachable") && out.contains("registered for DocLocker"), "{out}");
    assert_eq!(registered().await, serde_json::json!([]), "the URL is removed after the run");
    let previous = serde_json::json!({ "apiType": "DocLocker", "webhookUrl": "http://127.0.0.1:9/own" });
    node.send(reqwest::Method::PUT, "/api/v1/user/webhook", &app, &previous).await;
    run_trigger(&node, &["doclocker", "--app", &app, "--webhook-url", hook]).await.0.unwrap();
    assert_eq!(registered().await, serde_json::json!([previous]), "the previous URL is restored");
    let (result, out) = run_trigger(&node, &["wealth", "--app", &app, "--webhook-url", hook]).await;
    assert!(result.unwrap() && out.contains("during this run"), "{out}");
    let (_, settings) = node.get_as_operator(&format!("/admin/v1/apps/{app}")).await;
    assert_eq!(settings["historical_webhook_url"], Value::Null);
    node.stop().await;
}
