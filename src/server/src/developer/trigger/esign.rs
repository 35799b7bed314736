//! A document for signature: request, the signers, webhook, status.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::ValueEnum;
use sakshi_client::public;
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::flow_run::{FlowRun, Poll, is_pending};
use super::value_name;
use crate::cli::error::CliError;

/// Behaviour of the signers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Outcome {
    #[default]
    Completed,
    Rejected,
    // The upstream reports that the document has expired.
    Expired,
    // Only the first signer signs.
    SignedOnce,
    // Nobody acts, so the invitation expires.
    Lapsed,
}

/// Lifetime of an invitation.
const INVITATION: Duration = Duration::from_secs(24 * 3_600);
/// Lifetime of an invitation that is meant to expire.
const SHORT_INVITATION: Duration = Duration::from_secs(3);
/// Time in which the service must notice that the invitation has expired.
const EXPIRY_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(250);

/// Runs the flow to this outcome. Returns true if every result is as expected.
pub(super) async fn drive(run: &mut FlowRun<'_, '_>, outcome: Outcome, signers: u8) -> Result<bool, CliError> {
    let mut order = order(signers, if outcome == Outcome::Lapsed { SHORT_INVITATION } else { INVITATION });
    if let Some(url) = run.hook.url() {
        order["responseUrl"] = url.into();
    }
    run.hook.introduce(run.timeline, "named in the order")?;
    let (opened, document) = run.order(public::esign(&order), "documentId").await?;
    for signer in opened["signerInfo"].as_array().into_iter().flatten() {
        run.print_page(&signer["signingUrl"])?;
    }
    let poll = Poll::Document(document.clone());
    let mut passed = run.poll_pending(&poll).await?;
    if outcome == Outcome::Lapsed {
        wait_for_expiry(run, &poll).await?;
    } else {
        passed &= run.play("esign", &document, &value_name(outcome)).await?.refused == 0;
    }

    let webhooks = run.flow_webhooks(&document).await?;
    let (status, is_same) = run.poll_outcome(&poll).await?;
    let document_status = status["documentStatus"]
        .as_str()
        .or_else(|| status["data"]["documentStatus"].as_str())
        .unwrap_or("unknown")
        .to_owned();
    let expected = match outcome {
        Outcome::Completed => "Completed",
        Outcome::SignedOnce if signers == 1 => "Completed",
        Outcome::SignedOnce => "Pending",
        Outcome::Rejected => "Rejected",
        Outcome::Expired | Outcome::Lapsed => "Expired",
    };
    // `&`, not `&&`: each comparison also prints its verdict.
    passed &= is_same & run.judge("documentStatus", &document_status, expected)?;
    if run.hook.url().is_some() {
        let webhooks_expected = if expected == "Pending" { "0" } else { "1" };
        passed &= run.judge("webhooks", &webhooks.to_string(), webhooks_expected)?;
    }
    Ok(passed)
}

/// Builds the request for this many signers, whose invitations expire after `invitation`.
fn order(signers: u8, invitation: Duration) -> Value {
    let until = SystemClock.now() + invitation;
    let signer = |number| {
        json!({ "signerName": format!("Signer {number}"), "signerRefId": format!("signer-{number}"),
        "invitationExpireTimeStamp": until })
    };
    json!({
        "documentInfo": { "name": "Loan agreement", "content": BASE64_STANDARD.encode(DOCUMENT) },
        "signerInfo": (1..=signers).map(signer).collect::<Vec<_>>(),
        "documentReferenceId": "loan-agreement-7",
    })
}

/// Waits until the service has noticed that the invitation expired.
async fn wait_for_expiry(run: &mut FlowRun<'_, '_>, poll: &Poll) -> Result<(), CliError> {
    run.timeline.line(
        "signers",
        &format!("do nothing; waiting for the invitation to end, after {} s", SHORT_INVITATION.as_secs()),
    )?;
    let end = Instant::now() + SHORT_INVITATION + EXPIRY_TIMEOUT;
    while is_pending(&run.poll(poll).await?) && Instant::now() < end {
        sleep(PAUSE).await;
    }
    Ok(())
}

/// A PDF with a blank page.
pub(super) const DOCUMENT: &str = "%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]>>endobj
trailer<</Root 1 0 R>>
%%EOF
";
