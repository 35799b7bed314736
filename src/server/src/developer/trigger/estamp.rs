//! A document for stamping: init, the registry, webhook. There is no poll.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::ValueEnum;
use sakshi_client::public;
use serde_json::{Value, json};

use super::flow_run::FlowRun;
use super::{esign, value_name};
use crate::cli::error::CliError;

/// Outcome at the registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Outcome {
    #[default]
    Completed,
    Rejected,
    Expired,
    Pending,
}

/// Kind of stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ApiType {
    #[default]
    #[value(name = "RegistryEStamp")]
    Registry,
    #[value(name = "PhysicalEStamp")]
    Physical,
}

/// Runs the flow to this outcome. Returns true if every result is as expected.
pub(super) async fn drive(run: &mut FlowRun<'_, '_>, outcome: Outcome, api_type: ApiType) -> Result<bool, CliError> {
    let api_type = value_name(api_type);
    run.hook.register(run.session, run.timeline, &api_type).await?;
    let order = json!({
        "apiType": api_type,
        "document": { "documentName": "lease.pdf", "base64FileData": BASE64_STANDARD.encode(esign::DOCUMENT) },
        "signatoriesInfo": [{ "name": "Asha Rao", "emailID": "asha@example.com", "signType": "electronic" }],
    });
    let (_, estamp) = run.order(public::estamp(&order), "eStampId").await?;
    let mut passed = run.play("estamp", &estamp, &value_name(outcome)).await?.refused == 0;

    let webhooks = run.flow_webhooks(&estamp).await?;
    let expected = match outcome {
        Outcome::Completed => "Completed",
        Outcome::Rejected => "Rejected",
        Outcome::Expired => "Expired",
        Outcome::Pending => "Pending",
    };
    if let Some(webhook) = run.hook.received().last() {
        let body: Value = serde_json::from_slice(&webhook.body).unwrap_or_default();
        passed &=
            run.judge("workflowStatus", body["data"]["workflowStatus"].as_str().unwrap_or("unknown"), expected)?;
    }
    if run.hook.url().is_some() {
        passed &= run.judge("webhooks", &webhooks.to_string(), if outcome == Outcome::Pending { "0" } else { "1" })?;
    }
    run.timeline.line("poll", "none: the outcome of an e-stamp comes only by webhook")?;
    Ok(passed)
}
