//! What a callback says, whichever form it has.

use std::fmt;

use sakshi_domain::limits::{CALLBACK_BYTES_MAX, CALLBACK_TXN_CHARS_MAX};

use super::{json, xml};

/// The two forms of a callback; a reply has the form of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackForm {
    /// `application/xml` or `text/xml`.
    Xml,
    /// `application/json`.
    Json,
}

impl CallbackForm {
    /// The form of a reply to a callback whose body is not read: that of its content type or, where
    /// that says nothing, the one that `Accept` asks for.
    #[must_use]
    pub fn announced(content_type: Option<&str>, accept: Option<&str>) -> Self {
        let fallback: &[u8] = if accept.is_some_and(|accept| accept.to_ascii_lowercase().contains("xml")) { b"<" } else { b"" };
        form_of(content_type, fallback).unwrap_or_else(|| sniff(fallback))
    }
}

/// A callback that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackMessage {
    /// The form it came in.
    pub form: CallbackForm,
    /// The transaction id as given: 1 to 64 characters, not yet known to be one.
    pub txn: String,
    /// What it reports.
    pub body: CallbackBody,
}

/// Success or failure, never both.
#[derive(Clone, PartialEq, Eq)]
pub enum CallbackBody {
    /// A credential, unverified.
    Credential(String),
    /// There will be none, or not yet: see [`super::verdict`].
    Failure {
        /// The authority's code.
        code: String,
        /// Its message; empty when there is none.
        message: String,
    },
}

impl fmt::Debug for CallbackBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credential(credential) => write!(f, "Credential({} bytes redacted)", credential.len()),
            Self::Failure { code, .. } => write!(f, "Failure({})", code.escape_debug()),
        }
    }
}

/// A callback that could not be read, with the form that the reply should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct CallbackError {
    /// The form of the request, as far as it could be told.
    pub form: CallbackForm,
    /// What is wrong.
    pub fault: CallbackFault,
}

/// What is wrong with a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackFault {
    /// Over 4 MiB.
    #[error("the callback is too large")]
    TooLarge,
    /// A content type that is neither XML nor JSON.
    #[error("the callback must be XML or JSON")]
    MediaType,
    /// Not well-formed in its form, or not UTF-8.
    #[error("the callback is not well-formed")]
    Malformed,
    /// A document type, or an entity that only one could declare.
    #[error("document types and entities are not accepted")]
    Entities,
    /// Elements within elements, or too many.
    #[error("the callback has more structure than it should")]
    Structure,
    /// A field that occurs twice.
    #[error("a field of the callback is repeated")]
    Repeated,
    /// No transaction id, or an overlong one.
    #[error("the callback names no transaction")]
    NoTransaction,
    /// Neither a credential nor an error code.
    #[error("the callback has neither a credential nor an error code")]
    NothingReported,
    /// A credential together with an error code.
    #[error("the callback has both a credential and an error code")]
    BothReported,
}

/// The fields of either form; a field that is absent, null or blank is `None`.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) txn: Option<String>,
    pub(super) credential: Option<String>,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

/// Reads a callback. Without a content type, or with one that says nothing (`text/plain`,
/// `application/octet-stream`), the first character decides.
///
/// # Errors
/// What is wrong, with the form to reply in.
pub fn parse(content_type: Option<&str>, body: &[u8]) -> Result<CallbackMessage, CallbackError> {
    let form = form_of(content_type, body);
    let refuse = |fault| CallbackError { form: form.unwrap_or_else(|| sniff(body)), fault };
    if body.len() > CALLBACK_BYTES_MAX {
        return Err(refuse(CallbackFault::TooLarge));
    }
    let fields = match form {
        None => return Err(refuse(CallbackFault::MediaType)),
        Some(CallbackForm::Xml) => xml::read(body).map_err(refuse)?,
        Some(CallbackForm::Json) => json::read(body).map_err(refuse)?,
    };
    let txn = fields.txn.filter(|txn| txn.chars().count() <= CALLBACK_TXN_CHARS_MAX);
    let txn = txn.ok_or_else(|| refuse(CallbackFault::NoTransaction))?;
    let body = match (fields.credential, fields.code) {
        (Some(credential), None) => CallbackBody::Credential(credential),
        (None, Some(code)) => CallbackBody::Failure { code, message: fields.message.unwrap_or_default() },
        (None, None) => return Err(refuse(CallbackFault::NothingReported)),
        (Some(_), Some(_)) => return Err(refuse(CallbackFault::BothReported)),
    };
    Ok(CallbackMessage { form: form.unwrap_or(CallbackForm::Json), txn, body })
}

fn form_of(content_type: Option<&str>, body: &[u8]) -> Option<CallbackForm> {
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/xml" | "text/xml" => Some(CallbackForm::Xml),
        "application/json" | "text/json" => Some(CallbackForm::Json),
        "" | "text/plain" | "application/octet-stream" => Some(sniff(body)),
        other if other.ends_with("+xml") => Some(CallbackForm::Xml),
        other if other.ends_with("+json") => Some(CallbackForm::Json),
        _ => None,
    }
}

fn sniff(body: &[u8]) -> CallbackForm {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'<') => CallbackForm::Xml,
        _ => CallbackForm::Json,
    }
}
