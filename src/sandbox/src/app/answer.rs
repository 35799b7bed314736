//! The tester's decision, and the callback that carries it to the service (authority protocol,
//! section 5).

use std::time::Duration;

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use sakshi_domain::claims::ClaimSet;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::SandboxApp;
use super::error::AppError;
use super::intent::Intent;
use crate::residents::Resident;

/// How long the service may take to answer its callback.
pub(super) const CALLBACK_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes shown of the service's reply.
const REPLY_BYTES_MAX: usize = 16 * 1_024;

/// What the tester lets the user do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// The face matches and the user consents.
    #[default]
    Approve,
    /// The user rejects: 301.
    Decline,
    /// The face is not a living one: 302.
    FailLiveness,
    /// The user aborts: 303.
    Abort,
    /// The face is another's: 304.
    FailMatch,
    /// The user closes the app; nobody is told.
    WalkAway,
}

impl Action {
    /// Their names.
    pub(super) const WORDS: [&'static str; 6] = ["approve", "decline", "abort", "fail_liveness", "fail_match", "walk_away"];

    /// Reads a name.
    ///
    /// # Errors
    /// There is no such action.
    pub(super) fn named(word: &str) -> Result<Self, AppError> {
        Ok(match word {
            "approve" => Self::Approve,
            "decline" => Self::Decline,
            "abort" => Self::Abort,
            "fail_liveness" => Self::FailLiveness,
            "fail_match" => Self::FailMatch,
            "walk_away" => Self::WalkAway,
            _ => return Err(AppError::UnknownAction),
        })
    }

    /// The authority's code and message for a failure.
    const fn failure(self) -> Option<(u16, &'static str)> {
        match self {
            Self::Approve | Self::WalkAway => None,
            Self::Decline => Some((301, "User Reject")),
            Self::FailLiveness => Some((302, "Face liveness failed")),
            Self::Abort => Some((303, "User Abort")),
            Self::FailMatch => Some((304, "Face mismatch")),
        }
    }
}

/// The form of the callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// `application/xml`.
    #[default]
    Xml,
    /// `application/json`.
    Json,
}

/// A decision.
pub(super) struct Decision {
    pub(super) resident: &'static Resident,
    pub(super) action: Action,
    pub(super) form: Form,
    pub(super) key_binding: bool,
}

/// What the service replied.
#[derive(Debug, Serialize)]
pub(super) struct Reply {
    /// The HTTP status.
    pub(super) status: u16,
    /// Its content type.
    pub(super) content_type: String,
    /// Its body, cut where it is very long.
    pub(super) body: String,
}

/// Carries a decision out. `None` means that the user walked away and nothing was sent.
///
/// # Errors
/// The intent has expired, the credential could not be signed, or the service could not be reached.
pub(super) async fn carry_out(app: &SandboxApp, intent: &Intent, decision: &Decision) -> Result<Option<Reply>, AppError> {
    if intent.is_expired(app.clock.now()) {
        return Err(AppError::Expired);
    }
    let outcome = match (decision.action, decision.action.failure()) {
        (Action::WalkAway, _) => return Ok(None),
        (_, Some((code, message))) => Outcome::Failure { code, message },
        (_, None) => Outcome::Credential(credential(app, intent, decision)?),
    };
    let (content_type, body) = callback(app, intent, decision.form, &outcome);
    let request = app.http.post(intent.callback.clone()).header(CONTENT_TYPE, content_type).body(body);
    let response = request.send().await.map_err(|_| AppError::NoAnswer)?;
    read_reply(response).await.map(Some)
}

enum Outcome {
    Credential(String),
    Failure { code: u16, message: &'static str },
}

fn credential(app: &SandboxApp, intent: &Intent, decision: &Decision) -> Result<String, AppError> {
    let now = app.clock.now();
    let claims: ClaimSet = intent.requested();
    let credential = app.issuer.issue(decision.resident, claims, &app.holder, now).map_err(|_| AppError::Signing)?;
    if !decision.key_binding {
        return Ok(credential);
    }
    app.holder.bind(&credential, &intent.says.txn, &intent.says.aud, now).map_err(|_| AppError::Signing)
}

/// The callback's content type and body. Nothing in the XML needs escaping: a transaction id is a
/// UUID, a credential is base64url with dots and tildes, and the messages are our own.
fn callback(app: &SandboxApp, intent: &Intent, form: Form, outcome: &Outcome) -> (&'static str, String) {
    let txn = intent.txn;
    let at = app.clock.now();
    match (form, outcome) {
        (Form::Xml, Outcome::Credential(credential)) => {
            ("application/xml", format!("<Request><TxnID>{txn}</TxnID><Credential>{credential}</Credential></Request>"))
        }
        (Form::Xml, Outcome::Failure { code, message }) => (
            "application/xml",
            format!("<Request><TxnID>{txn}</TxnID><ErrorCode>{code}</ErrorCode><ErrorMsg>{message}</ErrorMsg></Request>"),
        ),
        (Form::Json, Outcome::Credential(credential)) => {
            ("application/json", json!({"txn": txn, "response": credential, "dateTime": at}).to_string())
        }
        (Form::Json, Outcome::Failure { code, message }) => {
            ("application/json", json!({"txn": txn, "errCode": code.to_string(), "errInfo": message, "dateTime": at}).to_string())
        }
    }
}

async fn read_reply(mut response: Response) -> Result<Reply, AppError> {
    let status = response.status().as_u16();
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| AppError::NoAnswer)? {
        body.extend_from_slice(&chunk);
        if body.len() >= REPLY_BYTES_MAX {
            body.truncate(REPLY_BYTES_MAX);
            break;
        }
    }
    Ok(Reply { status, content_type, body: String::from_utf8_lossy(&body).into_owned() })
}
