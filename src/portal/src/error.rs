//! Errors of the portal: a redirect to the sign-in, or a page with the reason.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, ResponseError};
use askama::Template;
use sakshi_actors::AskError;
use sakshi_service::ServiceError;
use sakshi_store::StoreError;
use sakshi_web::error::ApiError;

use super::layout::{Layout, page, redirect};

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum PortalError {
    /// Nobody has signed in, or the session has ended.
    SignIn {
        /// There was one.
        ended: bool,
    },
    /// A form that none of this session's pages has.
    ForeignForm,
    /// A refusal of the error table.
    Refused(ApiError),
}

#[derive(Template)]
#[template(path = "problem.html")]
struct Problem {
    layout: Layout,
    heading: &'static str,
    words: String,
    /// What to do about it.
    next: &'static str,
}

impl fmt::Display for PortalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignIn { .. } => f.write_str("not signed in"),
            Self::ForeignForm => f.write_str("a form of another page"),
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

impl ResponseError for PortalError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::SignIn { .. } => StatusCode::SEE_OTHER,
            Self::ForeignForm => StatusCode::FORBIDDEN,
            Self::Refused(error) => error.status_code(),
        }
    }

    fn error_response(&self) -> HttpResponse {
        let (heading, words, next) = match self {
            Self::SignIn { ended } => return redirect(if *ended { "/portal/sign-in?ended=1" } else { "/portal/sign-in" }),
            Self::ForeignForm | Self::Refused(ApiError::CrossSite) => (
                "This form was not accepted",
                "It did not come from a page of this session, so nothing was done.".to_owned(),
                "Open the page again and send it from there.",
            ),
            Self::Refused(error) => {
                if let Some(detail) = error.detail() {
                    tracing::error!(error.detail = &*detail, "a page of the portal could not be made");
                }
                let (heading, next) = match error.status_code().as_u16() {
                    404 => ("There is nothing here", "Check the address, or find it from one of the pages above."),
                    429 | 503 => ("Please wait a moment", "Wait a little, then open the page again."),
                    500.. => ("Something went wrong", "Open the page again. If this happens again, tell the people who run this service."),
                    _ => ("This cannot be done", "Go back, change what was sent, and send it again."),
                };
                (heading, error.message(), next)
            }
        };
        let mut response = page(self.status_code(), &Problem { layout: Layout::error_page(), heading, words, next });
        if let Self::Refused(error) = self
            && let Some(seconds) = error.retry_after()
        {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl From<ApiError> for PortalError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl From<ServiceError> for PortalError {
    fn from(error: ServiceError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<StoreError> for PortalError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<AskError> for PortalError {
    fn from(error: AskError) -> Self {
        Self::Refused(error.into())
    }
}
