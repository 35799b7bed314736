//! The errors of the sandbox identity app. Scripts get them as JSON.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};

use super::action::Action;
use crate::page::problem_json;

/// The error when the app does not answer an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppError {
    /// The text is neither an intent nor a QR value that contains one.
    #[error("Give an intent JWT, or the qrPayload that holds one.")]
    Unreadable,
    /// The form or JSON body cannot be read.
    #[error(
        "The body needs an intent, and may have resident, action, form (xml or json), key_binding (true or false) and \
            status (available or unavailable)."
    )]
    MalformedBody,
    /// The intent's callback belongs to another service.
    #[error(
        "This intent was made for another address; the sandbox answers only to the service at its own host and port."
    )]
    ForeignCallback,
    /// The intent has expired.
    #[error("This intent has expired; open a new transaction.")]
    Expired,
    /// There is no such action.
    #[error("There is no such action; the actions are {}.", Action::NAMES.map(|(name, _)| name).join(", "))]
    UnknownAction,
    /// There is no such resident.
    #[error("There is no such resident; GET /sandbox/residents lists them.")]
    UnknownResident,
    /// The credential could not be signed.
    #[error("The sandbox issuer could not sign.")]
    Signing,
    /// The issuer does not publish the status of a credential.
    #[error("The issuer publishes no status here.")]
    NoStatus,
    /// The service did not answer its callback.
    #[error("The service did not answer its callback.")]
    NoAnswer,
}

impl AppError {
    /// Returns the stable code of the error.
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
            Self::NoStatus => "status_unavailable",
            Self::NoAnswer => "callback_unanswered",
        }
    }
}

impl ResponseError for AppError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Unreadable | Self::MalformedBody | Self::UnknownAction | Self::UnknownResident => {
                StatusCode::BAD_REQUEST
            }
            Self::ForeignCallback => StatusCode::FORBIDDEN,
            Self::Expired => StatusCode::GONE,
            Self::Signing => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoStatus => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoAnswer => StatusCode::BAD_GATEWAY,
        }
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).json(problem_json(self.status_code(), self.code(), self))
    }
}
