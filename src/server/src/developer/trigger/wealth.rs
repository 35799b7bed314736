//! A consent to share wealth data, and the data: consents, what the person and the providers do,
//! and a webhook for each report. There is no poll.

use clap::ValueEnum;
use sakshi_client::public;
use serde_json::json;

use super::walk::Walk;
use super::word;
use crate::cli::error::CliError;

/// What the person and the providers do.
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

pub(super) async fn drive(walk: &mut Walk<'_, '_>, outcome: Outcome) -> Result<bool, CliError> {
    walk.hook.register_wealth(walk.session, walk.timeline).await?;
    let order = json!({ "consent": "Y", "consent_text": "I agree that my accounts are looked at." });
    let (opened, id) = walk.order(public::wealth_consent(&order), "uniqueIdentifier").await?;
    walk.timeline.line("", &format!("consentHandle {}", opened["consentHandle"].as_str().unwrap_or_default()))?;
    walk.page(&opened["requestUrl"])?;
    let played = walk.play("wealth", &id, &word(outcome)).await?;
    let mut good = played.refused == 0;
    let webhooks = walk.flow_webhooks(&id).await?;
    if walk.hook.url().is_some() {
        good &= walk.judge("webhooks", &webhooks.to_string(), &played.accepted.to_string())?;
    }
    walk.timeline.line("poll", "wealth data has none; its webhooks are all there is")?;
    Ok(good)
}
