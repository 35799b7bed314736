//! Documents from a locker: init, the person's decision, webhook, details.

use clap::ValueEnum;
use sakshi_client::public;
use serde_json::{Value, json};

use super::flow_run::{FlowRun, Poll, is_pending};
use super::value_name;
use crate::cli::error::CliError;

/// Outcome at the locker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Outcome {
    #[default]
    Fetched,
    Partly,
    Pending,
    Failed,
}

/// Runs the flow to this outcome. Returns true if every result is as expected.
pub(super) async fn drive(run: &mut FlowRun<'_, '_>, outcome: Outcome) -> Result<bool, CliError> {
    run.hook.register(run.session, run.timeline, "DocLocker").await?;
    let order = json!({ "docs": ["driving_licence", "degree_certificate"], "consent": "Y",
        "consent_text": "I agree that these documents are fetched." });
    let (opened, transaction) = run.order(public::doclocker(&order), "transactionId").await?;
    run.print_page(&opened["requestUrl"])?;
    let poll = Poll::Documents(transaction.clone());
    let mut passed = run.poll_pending(&poll).await?;
    passed &= run.play("doclocker", &transaction, &value_name(outcome)).await?.refused == 0;

    let webhooks = run.flow_webhooks(&transaction).await?;
    let (details, is_same) = run.poll_outcome(&poll).await?;
    // `&`, not `&&`: each comparison also prints its verdict.
    passed &= is_same & run.judge("documents", outcome_of(&details), &value_name(outcome))?;
    if run.hook.url().is_some() {
        passed &= run.judge("webhooks", &webhooks.to_string(), if outcome == Outcome::Pending { "0" } else { "1" })?;
    }
    Ok(passed)
}

/// Returns the outcome that the details show.
fn outcome_of(details: &Value) -> &'static str {
    let docs = details["data"]["docs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fetched = docs.iter().filter(|doc| doc["status"] == "Fetched").count();
    match fetched {
        _ if is_pending(details) => "pending",
        _ if details["success"] == false || fetched == 0 => "failed",
        _ if fetched == docs.len() => "fetched",
        _ => "partly",
    }
}
