//! What can go wrong in the sandbox identity app, for scripts as JSON and for browsers as a page.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

use super::answer::Action;
use super::pages;

/// Why the app does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppError {
    /// What was given is neither an intent nor a QR value that holds one.
    #[error("Give an intent JWT, or the qrPayload that holds one.")]
    Unreadable,
    /// The form or JSON body cannot be read.
    #[error("The body needs an intent, and may have resident, action, form (xml or json) and key_binding (true or false).")]
    MalformedBody,
    /// The intent's callback is not the service's.
    #[error("This intent was made for another address; the sandbox answers only to the service at its own host and port.")]
    ForeignCallback,
    /// The intent's time is over.
    #[error("This intent has expired; open a new transaction.")]
    Expired,
    /// There is no such action.
    #[error("There is no such action; the actions are {}.", Action::WORDS.join(", "))]
    UnknownAction,
    /// There is no such resident.
    #[error("There is no such resident; GET /sandbox/residents lists them.")]
    UnknownResident,
    /// The credential could not be signed.
    #[error("The sandbox issuer could not sign.")]
    Signing,
    /// The service did not answer its callback.
    #[error("The service did not answer its callback.")]
    NoAnswer,
}

impl AppError {
    /// The stable word for it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable_intent",
            Self::MalformedBody => "malformed_body",
            Self::ForeignCallback => "foreign_callback",
            Self::Expired => "intent_expired",
            Self::UnknownAction => "unknown_action",
            Self::UnknownResident => "unknown_resident",
            Self::Signing => "signing_failed",
            Self::NoAnswer => "callback_unanswered",
        }
    }

    /// The same error, shown as a page.
    pub(super) const fn as_page(self) -> PageError {
        PageError(self)
    }
}

impl ResponseError for AppError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Unreadable | Self::MalformedBody | Self::UnknownAction | Self::UnknownResident => StatusCode::BAD_REQUEST,
            Self::ForeignCallback => StatusCode::FORBIDDEN,
            Self::Expired => StatusCode::GONE,
            Self::Signing => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoAnswer => StatusCode::BAD_GATEWAY,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.status_code();
        HttpResponse::build(status).json(json!({
            "success": false,
            "error": status.canonical_reason(),
            "message": self.to_string(),
            "code": self.code(),
            "statusCode": status.as_u16(),
        }))
    }
}

/// An [`AppError`] on its way to a browser.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageError(AppError);

impl From<AppError> for PageError {
    fn from(error: AppError) -> Self {
        Self(error)
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.0.status_code()
    }

    fn error_response(&self) -> HttpResponse {
        pages::problem(self.0)
    }
}
