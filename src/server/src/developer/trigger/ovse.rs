//! A verification: init, the sandbox's identity app or the end of the window, webhook, result.

use clap::ValueEnum;
use sakshi_client::{Call, public, segment};
use serde_json::{Value, json};

use super::flow_run::{FlowRun, Poll, is_pending};
use super::value_name;
use crate::cli::error::CliError;

/// What the resident does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Outcome {
    #[default]
    Approve,
    Decline,
    Abort,
    FailLiveness,
    FailMatch,
    WalkAway,
    /// The window ends, now.
    Expired,
}

/// Ends the window, and polls what that is answered with; nothing is sent.
async fn expire(run: &mut FlowRun<'_, '_>, txn: &str, good: bool) -> Result<bool, CliError> {
    let path = format!("/sandbox/transactions/{}/expire", segment(txn));
    let ended = run.session.client.send(Call::<Value>::post(path, &json!({}))).await?;
    run.timeline.line("clock", &format!("the window ended at {}", ended["expiresAt"].as_str().unwrap_or_default()))?;
    let webhooks = run.transaction_webhook(txn).await?;
    let found = match run.ask(&Poll::Result(txn.to_owned())).await {
        Ok(answer) => format!("answered {answer}"),
        Err(CliError::Refused(refusal)) => {
            run.timeline.line("poll", &refusal)?;
            if refusal.contains("transaction_expired") { "expired".to_owned() } else { "refused".to_owned() }
        }
        Err(error) => return Err(error),
    };
    Ok(good & run.judge("verification", &found, "expired")? & run.judge("webhooks", &webhooks.to_string(), "0")?)
}

pub(super) async fn drive(run: &mut FlowRun<'_, '_>, outcome: Outcome) -> Result<bool, CliError> {
    let mut order =
        json!({ "claims": ["name", "dob", "gender", "address", "pincode"], "channel": "web", "client_reference_id": "order-42" });
    if let Some(url) = run.hook.url() {
        order["webhook_url"] = url.into();
    }
    run.hook.introduce(run.timeline, "named in the order")?;
    let (opened, txn) = run.order(public::init(&order), "txnId").await?;
    run.page(&opened["requestUrl"])?;
    let poll = Poll::Result(txn.clone());
    let mut good = run.poll_pending(&poll).await?;

    if outcome == Outcome::Expired {
        return expire(run, &txn, good).await;
    }
    let answer = json!({ "intent": opened["intentJwt"], "resident": "asha", "action": value_name(outcome) });
    let posted = run.session.client.send(Call::<Value>::post("/sandbox/app/answer", &answer)).await?;
    let told = match posted["callback"]["status"].as_u64() {
        Some(status) => format!("{}: posted to the callback and answered {status}", value_name(outcome)),
        None => format!("{}: nothing is posted", value_name(outcome)),
    };
    run.timeline.line("resident", &told)?;

    let webhooks = run.transaction_webhook(&txn).await?;
    let (result, same) = run.poll_end(&poll).await?;
    let found = match &result["data"] {
        _ if is_pending(&result) => "pending",
        data if data["verification_passed"] == true || data["verificationPassed"] == true => "passed",
        _ => "failed",
    };
    let expected = match outcome {
        Outcome::Approve => "passed",
        Outcome::WalkAway | Outcome::Expired => "pending",
        Outcome::Decline | Outcome::Abort | Outcome::FailLiveness | Outcome::FailMatch => "failed",
    };
    good &= same & run.judge("verification", found, expected)?;
    let wanted = usize::from(expected != "pending" && run.hook.url().is_some());
    Ok(good & run.judge("webhooks", &webhooks.to_string(), &wanted.to_string())?)
}
