//! The errors of the sandbox upstreams. The service and scripts get them as JSON, browsers as a page.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use sakshi_domain::invalid::Invalid;
use serde_json::{Value, json};

use crate::page::problem_json;

/// The error when an upstream refuses a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The order has no valid token.
    #[error("Give the upstream's token as Authorization: Bearer.")]
    Unauthorized,
    /// The order is invalid.
    #[error("The order is not acceptable: {0}")]
    Order(#[from] Invalid),
    /// Another order with this id exists.
    #[error("Another order with this id was accepted before.")]
    ConflictingOrder,
    /// The form or JSON body cannot be read.
    #[error("The body cannot be read; a script gives {{\"outcome\":\"<word>\"}}.")]
    MalformedBody,
    /// There is no such order; a restart loses all orders.
    #[error("There is no such order. Orders are kept in memory until the process ends.")]
    NoSuchOrder,
    /// The order was evicted.
    #[error(
        "This order was dropped to make room for newer ones; the sandbox keeps a limited number of orders and \
            documents."
    )]
    Evicted,
    /// The document has no such signer.
    #[error("This document has no such signer.")]
    NoSuchSigner,
    /// Another signer must sign first.
    #[error("It is not this signer's turn: {0} signs first.")]
    NotYourTurn(String),
    /// Nothing is left to decide.
    #[error("There is nothing left to decide: {0}.")]
    Ended(&'static str),
    /// The action is not possible in the current state.
    #[error("{0}")]
    NotNow(&'static str),
    /// A text that a person entered is invalid.
    #[error("The text cannot be used: it {0}.")]
    InvalidText(String),
    /// There is no such outcome.
    #[error("There is no such outcome; the outcomes are {0}.")]
    UnknownOutcome(String),
    /// There is no such resident.
    #[error("There is no such resident; GET /sandbox/residents lists them.")]
    UnknownResident,
    /// The service did not answer any attempt.
    #[error(
        "The service did not answer the report; it is kept, and the next outcome or the button of its page sends it \
            again."
    )]
    Unreachable,
    /// The source fails for this number, as its data file says.
    #[error("The source failed, as its data file says.")]
    Source,
}

impl FlowError {
    /// Returns the stable code of the error.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Order(_) => "validation_failed",
            Self::ConflictingOrder => "ordered_otherwise",
            Self::MalformedBody => "malformed_body",
            Self::NoSuchOrder => "flow_not_found",
            Self::Evicted => "flow_given_up",
            Self::NoSuchSigner => "signer_not_found",
            Self::NotYourTurn(_) => "not_your_turn",
            Self::Ended(_) => "flow_over",
            Self::NotNow(_) => "not_now",
            Self::InvalidText(_) => "unusable_text",
            Self::UnknownOutcome(_) => "unknown_outcome",
            Self::UnknownResident => "unknown_resident",
            Self::Unreachable => "service_unreachable",
            Self::Source => "source_failed",
        }
    }

    /// Returns the JSON body.
    pub(super) fn body(&self) -> Value {
        let mut body = problem_json(self.status_code(), self.code(), self);
        if let Self::Order(invalid) = self {
            body["errors"] = json!(invalid.fields());
        }
        body
    }
}

impl ResponseError for FlowError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Order(_)
            | Self::MalformedBody
            | Self::InvalidText(_)
            | Self::UnknownOutcome(_)
            | Self::UnknownResident => StatusCode::BAD_REQUEST,
            Self::NoSuchOrder | Self::NoSuchSigner => StatusCode::NOT_FOUND,
            Self::Evicted => StatusCode::GONE,
            Self::ConflictingOrder | Self::NotYourTurn(_) | Self::Ended(_) | Self::NotNow(_) => StatusCode::CONFLICT,
            Self::Unreachable => StatusCode::BAD_GATEWAY,
            Self::Source => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).json(self.body())
    }
}
