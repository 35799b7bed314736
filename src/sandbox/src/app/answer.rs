//! Carries out the tester's decision with a callback to the service (authority protocol, section 5).

use reqwest::header::CONTENT_TYPE;
use sakshi_domain::claims::ClaimSet;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;

use super::action::Action;
use super::error::AppError;
use super::intent::Intent;
use super::state::SandboxApp;
use super::status::{self, StatusService};
use crate::http::read_body;
use crate::residents::Resident;

/// Maximum bytes of the service's reply that are shown.
const REPLY_BYTES_MAX: usize = 16 * 1_024;

/// The format of the callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CallbackFormat {
    /// `application/xml`.
    #[default]
    Xml,
    /// `application/json`.
    Json,
}

/// The tester's decision.
pub(super) struct Decision {
    pub(super) resident: &'static Resident,
    pub(super) action: Action,
    pub(super) format: CallbackFormat,
    /// True if the credential gets a key binding: the phone's proof that it made this presentation.
    pub(super) key_binding: bool,
    pub(super) status: StatusService,
}

/// The service's reply to the callback.
#[derive(Debug, Serialize)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: String,
    /// Body, cut after [`REPLY_BYTES_MAX`].
    pub(super) body: String,
}

/// Carries out a decision: posts the callback and returns the service's reply. Returns `None` if the user closes the
/// app, which posts nothing.
pub(super) async fn carry_out(
    app: &SandboxApp,
    intent: &Intent,
    decision: &Decision,
) -> Result<Option<Reply>, AppError> {
    sleep(app.pause).await;
    if intent.is_expired(app.clock.now()) {
        return Err(AppError::Expired);
    }
    let outcome = match (decision.action, decision.action.failure()) {
        (Action::WalkAway, _) => return Ok(None),
        (_, Some((code, message))) => Outcome::Failure { code, message },
        (_, None) => Outcome::Credential(issue_credential(app, intent, decision)?),
    };
    let (content_type, body) = build_callback(app, intent, decision.format, &outcome);
    let request = app.http.post(intent.callback.clone()).header(CONTENT_TYPE, content_type).body(body);
    let response = request.send().await.map_err(|_| AppError::NoAnswer)?;
    let status = response.status().as_u16();
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let body = read_body(response, REPLY_BYTES_MAX).await.map_err(|_| AppError::NoAnswer)?;
    Ok(Some(Reply { status, content_type, body }))
}

/// The content of the callback.
enum Outcome {
    Credential(String),
    Failure { code: u16, message: &'static str },
}

/// Issues a credential with the requested claims of the resident, and binds it to the transaction if the decision says
/// so.
fn issue_credential(app: &SandboxApp, intent: &Intent, decision: &Decision) -> Result<String, AppError> {
    let now = app.clock.now();
    let claims: ClaimSet = intent.requested_claims();
    let resident = if decision.action == Action::MalformedClaims { Resident::malformed() } else { decision.resident };
    let status_url = |id| Some(status::status_url(&app.public_base, resident, decision.status, id));
    let holder = app.holders.get_or_generate(resident).map_err(|_| AppError::Signing)?;
    let credential = app.issuer.issue_with_status(resident, claims, &holder, now, status_url);
    let credential = credential.map_err(|_| AppError::Signing)?;
    if !decision.key_binding {
        return Ok(credential);
    }
    holder.bind(&credential, &intent.claims.txn, &intent.claims.aud, now).map_err(|_| AppError::Signing)
}

/// Returns the content type and the body of the callback. The XML needs no escaping: the id is a UUID, a credential is
/// base64url with dots and tildes, and the messages are constants.
fn build_callback(
    app: &SandboxApp,
    intent: &Intent,
    format: CallbackFormat,
    outcome: &Outcome,
) -> (&'static str, String) {
    let txn = intent.txn;
    let now = app.clock.now();
    match (format, outcome) {
        (CallbackFormat::Xml, Outcome::Credential(credential)) => {
            ("application/xml", format!("<Request><TxnID>{txn}</TxnID><Credential>{credential}</Credential></Request>"))
        }
        (CallbackFormat::Xml, Outcome::Failure { code, message }) => (
            "application/xml",
            format!(
                "<Request><TxnID>{txn}</TxnID><ErrorCode>{code}</ErrorCode><ErrorMsg>{message}</ErrorMsg></Request>"
            ),
        ),
        (CallbackFormat::Json, Outcome::Credential(credential)) => {
            ("application/json", json!({"txn": txn, "response": credential, "dateTime": now}).to_string())
        }
        (CallbackFormat::Json, Outcome::Failure { code, message }) => (
            "application/json",
            json!({"txn": txn, "errCode": code.to_string(), "errInfo": message, "dateTime": now}).to_string(),
        ),
    }
}
