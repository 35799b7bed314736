//! A verification: init, the sandbox's identity app or the end of the window, webhook, result.

use clap::ValueEnum;
use sakshi_client::{Call, public, segment};
use serde_json::{Value, json};

use super::flow_run::{FlowRun, Poll, is_pending};
use super::value_name;
use crate::cli::error::CliError;

/// Action of the resident.
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
    /// The window ends now.
    Expired,
    /// The issuer has revoked the credential.
    Revoked,
    /// The issuer has suspended the credential.
    Suspended,
    /// The issuer's status service is unavailable at first; the app repeats the callback.
    StatusUnavailable,
}

impl Outcome {
    /// Returns the name of a resident of the sandbox, and the resident's answer in the identity app.
    fn answer(self) -> (&'static str, Value) {
        match self {
            Self::Revoked => ("revoked_ravi", json!({ "action": "approve" })),
            Self::Suspended => ("suspended_sita", json!({ "action": "approve" })),
            Self::StatusUnavailable => ("asha", json!({ "action": "approve", "status": "unavailable" })),
            other => ("asha", json!({ "action": value_name(other) })),
        }
    }

    /// Returns the status and the reason with which the callback is refused.
    const fn refusal(self) -> Option<(u16, &'static str)> {
        match self {
            Self::Revoked => Some((400, "credential_revoked")),
            Self::Suspended => Some((400, "credential_suspended")),
            Self::StatusUnavailable => Some((503, "status_unavailable")),
            _ => None,
        }
    }
}

/// Ends the window of the transaction, and checks that it expires without a webhook.
async fn expire(run: &mut FlowRun<'_, '_>, txn: &str) -> Result<bool, CliError> {
    let path = format!("/sandbox/transactions/{}/expire", segment(txn));
    let expired = run.session.client.send(Call::<Value>::post(path, &json!({}))).await?;
    run.timeline
        .line("clock", &format!("the window ended at {}", expired["expiresAt"].as_str().unwrap_or_default()))?;
    let webhooks = run.transaction_webhook(txn).await?;
    let state = match run.poll(&Poll::Result(txn.to_owned())).await {
        Ok(answer) => format!("answered {answer}"),
        Err(CliError::Refused(refusal)) => {
            run.timeline.line("poll", &refusal)?;
            if refusal.contains("transaction_expired") { "expired".to_owned() } else { "refused".to_owned() }
        }
        Err(error) => return Err(error),
    };
    Ok(run.judge("verification", &state, "expired")? & run.judge("webhooks", &webhooks.to_string(), "0")?)
}

/// Lets the sandbox's identity app answer, and returns the response to the callback.
async fn post_answer(run: &mut FlowRun<'_, '_>, opened: &Value, outcome: Outcome) -> Result<Value, CliError> {
    let (resident, mut answer) = outcome.answer();
    answer["intent"] = opened["intentJwt"].clone();
    answer["resident"] = resident.into();
    let mut posted = run.session.client.send(Call::<Value>::post("/sandbox/app/answer", &answer)).await?;
    let message = match posted["callback"]["status"].as_u64() {
        Some(status) => format!("{}: posted to the callback and answered {status}", value_name(outcome)),
        None => format!("{}: nothing is posted", value_name(outcome)),
    };
    run.timeline.line("resident", &message)?;
    Ok(posted["callback"].take())
}

/// Runs the flow to this outcome. Returns true if every result is as expected.
pub(super) async fn drive(run: &mut FlowRun<'_, '_>, outcome: Outcome) -> Result<bool, CliError> {
    let mut order = json!({ "claims": ["name", "dob", "gender", "address", "pincode"], "channel": "web",
        "client_reference_id": "order-42" });
    if let Some(url) = run.hook.url() {
        order["webhook_url"] = url.into();
    }
    run.hook.introduce(run.timeline, "named in the order")?;
    let (opened, txn) = run.order(public::init(&order), "txnId").await?;
    run.print_page(&opened["requestUrl"])?;
    let poll = Poll::Result(txn.clone());
    let mut passed = run.poll_pending(&poll).await?;

    if outcome == Outcome::Expired {
        return Ok(passed & expire(run, &txn).await?);
    }
    let callback = post_answer(run, &opened, outcome).await?;
    if let Some((status, reason)) = outcome.refusal() {
        let body = callback["body"].as_str().unwrap_or_default();
        let actual_reason = if callback["status"] == status && body.contains(reason) { reason } else { "accepted" };
        passed &= run.judge("callback", actual_reason, reason)? & run.poll_pending(&poll).await?;
    }
    if outcome == Outcome::StatusUnavailable {
        run.timeline.line("issuer", "the issuer answers again, and the app repeats the callback")?;
        post_answer(run, &opened, Outcome::Approve).await?;
    }

    let webhooks = run.transaction_webhook(&txn).await?;
    let (result, is_same) = run.poll_outcome(&poll).await?;
    let state = match &result["data"] {
        _ if is_pending(&result) => "pending",
        data if data["verification_passed"] == true || data["verificationPassed"] == true => "passed",
        _ => "failed",
    };
    let expected = match outcome {
        Outcome::Approve | Outcome::StatusUnavailable => "passed",
        Outcome::WalkAway | Outcome::Expired | Outcome::Revoked | Outcome::Suspended => "pending",
        Outcome::Decline | Outcome::Abort | Outcome::FailLiveness | Outcome::FailMatch => "failed",
    };
    // `&`, not `&&`: each comparison also prints its verdict.
    passed &= is_same & run.judge("verification", state, expected)?;
    let webhooks_expected = usize::from(expected != "pending" && run.hook.url().is_some());
    Ok(passed & run.judge("webhooks", &webhooks.to_string(), &webhooks_expected.to_string())?)
}
