//! Drives a flow of wealth data: orders a consent, plays the person's and the providers' actions, and checks that each
//! report leads to a webhook. The API has no poll for this flow.

use clap::ValueEnum;
use sakshi_client::public;
use serde_json::json;

use super::flow_run::FlowRun;
use super::value_name;
use crate::cli::error::CliError;

/// Action of the person, or of the providers of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Outcome {
    #[default]
    Accepted,
    Rejected,
    Revoked,
    ExpiringSoon,
    Expired,
    Raw,
    Analysed,
    DataFailed,
    Historical,
    HistoricalPartial,
    HistoricalFailed,
    All,
}

/// Runs the flow to this outcome. Returns true if every result is as expected.
pub(super) async fn drive(run: &mut FlowRun<'_, '_>, outcome: Outcome) -> Result<bool, CliError> {
    run.hook.register_wealth(run.session, run.timeline).await?;
    let order = json!({ "consent": "Y", "consent_text": "I agree to share the data of my accounts." });
    let (opened, id) = run.order(public::wealth_consent(&order), "uniqueIdentifier").await?;
    run.timeline.line("", &format!("consentHandle {}", opened["consentHandle"].as_str().unwrap_or_default()))?;
    run.print_page(&opened["requestUrl"])?;
    let reports = run.play("wealth", &id, &value_name(outcome)).await?;
    let mut passed = reports.refused == 0;
    let webhooks = run.flow_webhooks(&id).await?;
    if run.hook.url().is_some() {
        passed &= run.judge("webhooks", &webhooks.to_string(), &reports.accepted.to_string())?;
    }
    run.timeline.line("poll", "none: wealth data comes only by webhook")?;
    Ok(passed)
}
