//! Errors of calls.

use std::fmt;

use reqwest::StatusCode;
use sakshi_domain::invalid::FieldError;
use thiserror::Error;

/// The reason why a call failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The service did not respond. Contains the origin and the reason.
    #[error("the service is unreachable: {0}")]
    Unreachable(String),
    /// The service refused the call.
    #[error("{0}")]
    Refused(Refusal),
    /// The response has another form than the call expects.
    #[error("the answer to {request} cannot be read; does the service have another version? {reason}")]
    Answer {
        /// Method and path of the request.
        request: String,
        /// The error of the parser.
        reason: serde_json::Error,
    },
    /// The body of the request cannot be serialised.
    #[error("the body for {path} cannot be written: {reason}")]
    Body {
        /// The path of the request.
        path: String,
        /// The error of the serialiser.
        reason: serde_json::Error,
    },
}

/// The response of a service that refuses a call.
#[derive(Debug)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The body; `None` if it does not have the form of this service's errors.
    pub body: Option<Box<sakshi_wire::refusal::Error>>,
}

impl Error {
    /// Builds the error from the innermost reason. The outer reasons only state that a request failed.
    #[must_use]
    pub fn unreachable(error: &reqwest::Error) -> Self {
        let mut reason: &dyn std::error::Error = error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        let origin = error.url().map_or_else(String::new, |url| format!("{}: ", url.origin().ascii_serialization()));
        Self::Unreachable(format!("{origin}{reason}"))
    }

    /// Returns the HTTP status of a refusal; `None` for other errors.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            _ => None,
        }
    }
}

impl Refusal {
    /// Reads the body of a response with this status.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        Self { status, body: serde_json::from_slice(body).ok() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(body) = &self.body else {
            let status =
                StatusCode::from_u16(self.status).map_or_else(|_| self.status.to_string(), |status| status.to_string());
            return write!(formatter, "the service answered {status}");
        };
        formatter.write_str(&body.message)?;
        for FieldError { field, message } in &body.errors {
            write!(formatter, "\n  {field}: {message}")?;
        }
        write!(formatter, " ({}, {})", body.code, body.error_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_shows_message_fields_code_and_error_id() {
        let body = br#"{"success":false,"error":"Bad Request","message":"Two fields are wrong.",
            "code":"validation_failed","statusCode":400,
            "errorId":"req-1","errors":[{"field":"claims[0]","message":"is unknown"},
            {"field":"channel","message":"is required"}]}"#;
        let refusal = Refusal::read(400, body);
        assert_eq!(
            refusal.to_string(),
            "Two fields are wrong.\n  claims[0]: is unknown\n  channel: is required (validation_failed, req-1)"
        );
        assert_eq!(Error::Refused(refusal).status(), Some(400));
    }

    #[test]
    fn a_refusal_with_an_unknown_body_shows_the_status() {
        for body in [&b"<html>"[..], b"", b"[]", br#"{"message":7}"#] {
            assert_eq!(Refusal::read(502, body).to_string(), "the service answered 502 Bad Gateway");
        }
    }
}
