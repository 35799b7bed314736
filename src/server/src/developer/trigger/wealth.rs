//! Drives a flow of wealth data: orders a consent, plays the person's and the providers' actions, and checks that each
//! report leads to a webhook. The API has no poll for this flow.

use clap::ValueEnum;
use sakshi_client::public;
use serde_json::json;

use super::flow_run::FlowRun;
use super::value_name;
use crate::cli::error::CliError;

/// Action of the person and the providers.
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

pub(super) async fn drive(run: &mut FlowRun<'_, '_>, outcome: Outcome) -> Result<bool, CliError> {
    run.hook.register_wealth(run.session, run.timeline).await?;
    let order = json!({ "consent": "Y", "consent_text": "I agree to share the data of my accounts." });
    let (opened, id) = run.order(public::wealth_consent(&order), "uniqueIdentifier").await?;
    run.timeline.line("", &format!("consentHandle {}", opened["consentHandle"].as_str().unwrap_or_default()))?;
    run.page(&opened["requestUrl"])?;
    let played = run.play("wealth", &id, &value_name(outcome)).await?;
    let mut passed = played.refused == 0;
    let webhooks = run.flow_webhooks(&id).await?;
    if run.hook.url().is_some() {
        passed &= run.judge("webhooks", &webhooks.to_string(), &played.accepted.to_string())?;
    }
    run.timeline.line("poll", "none: wealth data comes only by webhook")?;
    Ok(passed)
}
