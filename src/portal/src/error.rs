//! Errors of the portal: a redirect to the sign-in, or a page with the reason.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{Error, HttpRequest, HttpResponse, ResponseError};
use askama::Template;
use sakshi_actors::AskError;
use sakshi_domain::profile::Profile;
use sakshi_domain::user::UserRole;
use sakshi_pages::error_page::{error_page as resident_page, is_for_residents};
use sakshi_service::ServiceError;
use sakshi_store::StoreError;
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;

use super::layout::{Layout, page, redirect};
use super::roles::describe_rights;

/// The reason why a page is not shown.
#[derive(Debug)]
pub(crate) enum PortalError {
    /// Not signed in, or the session has ended.
    SignIn {
        /// True if a session has ended.
        ended: bool,
    },
    /// A form that does not come from a page of this session.
    ForeignForm,
    /// The person's role is too low.
    Role {
        /// Required role.
        required: UserRole,
        /// Role of the person.
        actual: UserRole,
        /// True for the holder of an API key.
        is_key_holder: bool,
    },
    /// A refusal of the error table.
    Refused(ApiError),
}

#[derive(Template)]
#[template(path = "problem.html")]
struct Problem {
    layout: Layout,
    heading: &'static str,
    words: String,
    /// Remedy for the error.
    next: &'static str,
    /// Request id to quote.
    reference: Option<String>,
}

impl fmt::Display for PortalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignIn { .. } => f.write_str("not signed in"),
            Self::ForeignForm => f.write_str("a form of another page"),
            Self::Role { required, .. } => write!(f, "needs the role {required}"),
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

impl ResponseError for PortalError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::SignIn { .. } => StatusCode::SEE_OTHER,
            Self::ForeignForm | Self::Role { .. } => StatusCode::FORBIDDEN,
            Self::Refused(error) => error.status_code(),
        }
    }

    /// Renders without the navigation; [`error_page`] adds it, because it has the request.
    fn error_response(&self) -> HttpResponse {
        if let Self::SignIn { ended } = self {
            return redirect(if *ended { "/portal/sign-in?ended=1" } else { "/portal/sign-in" });
        }
        if let Self::Refused(error) = self
            && let Some(detail) = error.detail()
        {
            tracing::error!(error.detail = &*detail, "a page of the portal could not be rendered");
        }
        self.page(Layout::public(Profile::Production), None)
    }
}

impl PortalError {
    fn page(&self, layout: Layout, reference: Option<String>) -> HttpResponse {
        let mut response = match self {
            Self::Role { required, actual, is_key_holder } => {
                Problem::from_role(*required, *actual, *is_key_holder, layout).respond(self.status_code())
            }
            Self::Refused(error) if *error != ApiError::CrossSite => {
                Problem::from_error(error, layout, reference).respond(error.status_code())
            }
            _ => Problem {
                layout,
                heading: "This form was not accepted",
                words: "It did not come from a page of this session, so nothing was done.".to_owned(),
                next: "Open the page again and send it from there.",
                reference: None,
            }
            .respond(self.status_code()),
        };
        if let Self::Refused(error) = self
            && let Some(seconds) = error.retry_after()
        {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl Problem {
    /// Builds the page of an error; `reference` is the request id.
    fn from_error(error: &ApiError, layout: Layout, reference: Option<String>) -> Self {
        let status = error.status_code().as_u16();
        let (heading, next) = match status {
            404 => ("There is nothing here", "Check the address, or find it from one of the pages above."),
            405 => ("There is nothing here", "Open one of the pages above."),
            429 | 503 => ("Please wait a moment", "Then open the page again."),
            500.. => (
                "Something went wrong",
                "Open the page again. If this happens again, tell the people who run this service.",
            ),
            _ => ("This cannot be done", "Go back, change what was sent, and send it again."),
        };
        let words = match (status, error.retry_after()) {
            (405, _) => "This address is not a page.".to_owned(),
            (429 | 503, Some(1)) => "The service is busy. Wait a second.".to_owned(),
            (429 | 503, Some(seconds)) => format!("The service is busy. Wait {seconds} seconds."),
            (500.., _) => "The page could not be made.".to_owned(),
            _ => error.message(),
        };
        Self { layout, heading, words, next, reference: reference.filter(|_| status >= 500) }
    }

    /// Builds the page for a person whose role is too low.
    fn from_role(required: UserRole, actual: UserRole, is_key_holder: bool, layout: Layout) -> Self {
        let own = if is_key_holder {
            "You are signed in with an API key, which cannot manage keys and people.".to_owned()
        } else {
            format!("You have the role “{actual}”, which {}.", describe_rights(actual))
        };
        Self {
            layout,
            heading: "Your role does not allow this",
            words: format!("This needs the role “{required}”, which {}. {own}", describe_rights(required)),
            next: if is_key_holder { "Sign in as a user." } else { "Ask an admin of your team." },
            reference: None,
        }
    }

    fn respond(&self, status: StatusCode) -> HttpResponse {
        page(status, self)
    }
}

/// Renders the page of an error for a browser. Residents and guests get it in their language, other people get the
/// portal's page with the navigation of the signed-in person.
#[must_use]
pub fn error_page(request: &HttpRequest, source: Option<&Error>, error: Option<&ApiError>) -> Option<HttpResponse> {
    let reference = request_id(request).as_str().to_owned();
    if let Some(error) = source.and_then(|source| source.as_error::<PortalError>()) {
        return Some(error.page(Layout::error_page(request), Some(reference)));
    }
    let error = error?;
    if is_for_residents(request) {
        return resident_page(request, error);
    }
    Some(Problem::from_error(error, Layout::error_page(request), Some(reference)).respond(error.status_code()))
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
