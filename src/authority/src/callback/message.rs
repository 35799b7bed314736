//! A callback, independent of its format.

use std::fmt;

/// The format of a callback; the reply has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackForm {
    /// `application/xml` or `text/xml`.
    Xml,
    /// `application/json`.
    Json,
}

impl CallbackForm {
    /// Returns the format of the reply to a callback whose body is not read: that of its content type or, if that is
    /// generic, the one in `Accept`.
    #[must_use]
    pub fn announced(content_type: Option<&str>, accept: Option<&str>) -> Self {
        let fallback: &[u8] =
            if accept.is_some_and(|accept| accept.to_ascii_lowercase().contains("xml")) { b"<" } else { b"" };
        form_of(content_type, fallback).unwrap_or_else(|| sniff(fallback))
    }
}

/// A well-formed callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackMessage {
    /// Its format.
    pub form: CallbackForm,
    /// The transaction id as received: 1 to 64 characters, not parsed.
    pub txn: String,
    /// The reported result.
    pub body: CallbackBody,
}

/// Success or failure.
#[derive(Clone, PartialEq, Eq)]
pub enum CallbackBody {
    /// A credential, unverified.
    Credential(String),
    /// No credential, or not yet; see [`super::verdict`].
    Failure {
        /// The authority's code.
        code: String,
        /// The authority's message; may be empty.
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

/// Reason why a callback could not be read, and the format of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct CallbackError {
    /// The format of the request, as far as it is known.
    pub form: CallbackForm,
    /// The fault.
    pub fault: CallbackFault,
}

/// Fault of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackFault {
    /// Over 4 MiB.
    #[error("the callback is too large")]
    TooLarge,
    /// A content type that is neither XML nor JSON.
    #[error("the callback must be XML or JSON")]
    MediaType,
    /// Not well-formed, or not UTF-8.
    #[error("the callback is not well-formed")]
    Malformed,
    /// A document type, or an entity that is not predefined.
    #[error("document types and entities are not accepted")]
    Entities,
    /// Nested elements, or too many.
    #[error("the callback has more structure than it should")]
    Structure,
    /// A field that occurs twice.
    #[error("a field of the callback is repeated")]
    Repeated,
    /// No transaction id, or one that is too long.
    #[error("the callback names no transaction")]
    NoTransaction,
    /// Neither a credential nor an error code.
    #[error("the callback has neither a credential nor an error code")]
    NothingReported,
    /// A credential together with an error code.
    #[error("the callback has both a credential and an error code")]
    BothReported,
}

/// The fields of a callback in either format; absent, null and blank ones are `None`.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) txn: Option<String>,
    pub(super) credential: Option<String>,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

pub(super) fn form_of(content_type: Option<&str>, body: &[u8]) -> Option<CallbackForm> {
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

pub(super) fn sniff(body: &[u8]) -> CallbackForm {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'<') => CallbackForm::Xml,
        _ => CallbackForm::Json,
    }
}
