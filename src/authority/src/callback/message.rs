//! The content of a callback, independent of its format.

use std::fmt;

/// The format of a callback and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackForm {
    /// `application/xml` or `text/xml`.
    Xml,
    /// `application/json`.
    Json,
}

impl CallbackForm {
    /// Returns the format of the reply to a callback whose body was not read. The content type decides; if it is
    /// generic, `Accept` decides.
    #[must_use]
    pub fn for_unread_body(content_type: Option<&str>, accept: Option<&str>) -> Self {
        let assumed_body: &[u8] =
            if accept.is_some_and(|accept| accept.to_ascii_lowercase().contains("xml")) { b"<" } else { b"" };
        detect_form(content_type, assumed_body).unwrap_or_else(|| sniff(assumed_body))
    }
}

/// A well-formed callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackMessage {
    /// The format.
    pub form: CallbackForm,
    /// The transaction id as received: 1 to 64 characters, not parsed.
    pub txn: String,
    /// The reported result.
    pub body: CallbackBody,
}

/// The result that a callback reports.
#[derive(Clone, PartialEq, Eq)]
pub enum CallbackBody {
    /// A credential, unverified.
    Credential(String),
    /// A failure without a credential, or with one that a retry will bring; see [`super::judge_failure`].
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

/// The fault of a callback that could not be read, and the format of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct CallbackError {
    /// The format of the reply.
    pub form: CallbackForm,
    /// The fault.
    pub fault: CallbackFault,
}

/// The fault of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackFault {
    /// The body has more than 4 MiB.
    #[error("the callback is too large")]
    TooLarge,
    /// The content type is neither XML nor JSON.
    #[error("the callback must be XML or JSON")]
    MediaType,
    /// The body is not well-formed, or not UTF-8.
    #[error("the callback is not well-formed")]
    Malformed,
    /// The body has a document type, or an entity that is not predefined.
    #[error("document types and entities are not accepted")]
    Entities,
    /// The body is nested too deeply, or has too many elements.
    #[error("the callback is nested too deeply or has too many elements")]
    Structure,
    /// A field occurs twice.
    #[error("a field of the callback is repeated")]
    Repeated,
    /// The transaction id is missing or too long.
    #[error("the callback names no transaction")]
    NoTransaction,
    /// The callback has neither a credential nor an error code.
    #[error("the callback has neither a credential nor an error code")]
    NothingReported,
    /// The callback has both a credential and an error code.
    #[error("the callback has both a credential and an error code")]
    BothReported,
}

/// The fields of a callback in either format. Absent, null and blank fields are `None`.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) txn: Option<String>,
    pub(super) credential: Option<String>,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

/// Returns the format by content type, or for a generic content type by the body; `None` for any other content type.
pub(super) fn detect_form(content_type: Option<&str>, body: &[u8]) -> Option<CallbackForm> {
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

/// Guesses the format from the first character of the body.
pub(super) fn sniff(body: &[u8]) -> CallbackForm {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'<') => CallbackForm::Xml,
        _ => CallbackForm::Json,
    }
}
