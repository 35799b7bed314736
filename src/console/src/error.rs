//! Errors of the console: a redirect to the sign-in, or a page with the reason.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{Error, HttpRequest, HttpResponse, ResponseError};
use askama::Template;
use sakshi_service::ServiceError;
use sakshi_store::StoreError;
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::html::{form_page, redirect};

use crate::layout::Layout;

/// Error of a page of the console.
#[derive(Debug)]
pub(crate) enum ConsoleError {
    /// There is no session, or it has ended.
    SignIn {
        /// True if there was a session, which has ended.
        ended: bool,
    },
    /// A form that does not come from a page of this session.
    ForeignForm,
    /// Any other error, with its page.
    Refused(ApiError),
}

#[derive(Template)]
#[template(path = "problem.html")]
struct Problem {
    layout: Layout,
    heading: &'static str,
    words: String,
    /// Id of the request, to quote in a report.
    reference: Option<String>,
}

impl fmt::Display for ConsoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignIn { .. } => f.write_str("not signed in"),
            Self::ForeignForm => f.write_str("a form of another page"),
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

impl ResponseError for ConsoleError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::SignIn { .. } => StatusCode::SEE_OTHER,
            Self::ForeignForm => StatusCode::FORBIDDEN,
            Self::Refused(error) => error.status_code(),
        }
    }

    /// Builds a page without the details that need the request; [`error_page`] replaces it.
    fn error_response(&self) -> HttpResponse {
        match self {
            Self::SignIn { ended } => redirect(if *ended { "/console/sign-in?ended=1" } else { "/console/sign-in" }),
            Self::ForeignForm => foreign_form_page(Layout::without_request()),
            Self::Refused(error) => {
                if let Some(detail) = error.detail() {
                    tracing::error!(error.detail = &*detail, "a page of the console could not be rendered");
                }
                problem_page(error, Layout::without_request(), None)
            }
        }
    }
}

fn foreign_form_page(layout: Layout) -> HttpResponse {
    let words =
        "It did not come from a page of this session, so nothing was changed. Open the page again and submit it there.";
    let page = Problem { layout, heading: "This form was not accepted", words: words.to_owned(), reference: None };
    form_page(StatusCode::FORBIDDEN, &page)
}

fn problem_page(error: &ApiError, layout: Layout, reference: Option<String>) -> HttpResponse {
    let status = error.status_code();
    let (heading, words) = match status.as_u16() {
        404 => ("There is nothing here", error.message()),
        405 => ("There is nothing here", "This address is not a page.".to_owned()),
        403 => ("Not for your role", format!("{} This attempt is in the audit log.", error.message())),
        429 | 503 => ("Please wait a moment", error.message()),
        500.. => ("Something went wrong", "The page could not be rendered.".to_owned()),
        _ => ("This cannot be done", error.message()),
    };
    let reference = reference.filter(|_| status.is_server_error());
    let mut response = form_page(status, &Problem { layout, heading, words, reference });
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Builds the error page for a browser; `None` outside the console.
#[must_use]
pub fn error_page(request: &HttpRequest, source: Option<&Error>, error: Option<&ApiError>) -> Option<HttpResponse> {
    let (layout, reference) = (Layout::new(request, None), Some(request_id(request).as_str().to_owned()));
    match source.and_then(|source| source.as_error::<ConsoleError>()) {
        Some(ConsoleError::SignIn { .. }) => return None,
        Some(ConsoleError::Refused(error)) if *error != ApiError::CrossSite => {
            return Some(problem_page(error, layout, reference));
        }
        Some(_) => return Some(foreign_form_page(layout)),
        None => {}
    }
    let is_console = request.path() == "/console" || request.path().starts_with("/console/");
    Some(problem_page(error.filter(|_| is_console)?, layout, reference))
}

impl From<ApiError> for ConsoleError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl From<ServiceError> for ConsoleError {
    fn from(error: ServiceError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<StoreError> for ConsoleError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}
