//! The parts of a request that the portal reads, for the fuzzer.

use actix_web::HttpRequest;
use sakshi_wire::ReceivedObject;

use super::form::{Form, Kind};
use super::session::COOKIE;

/// Fields of every kind in the forms.
const SHAPE: &[(&str, Kind)] = &[
    ("claims", Kind::Words),
    ("max_guests", Kind::Whole),
    ("expires_at", Kind::Moment),
    ("is_active", Kind::Flag),
    ("webhook_url", Kind::Removable),
];

/// Returns the session of a request: its `Set-Cookie` value and the CSRF token of its forms.
#[must_use]
pub fn read_session(request: &HttpRequest) -> Option<(String, String)> {
    COOKIE.session_id(request).map(|id| (id.cookie(false), id.csrf_token().as_str().to_owned()))
}

/// Reads a form as the fields of a request.
#[must_use]
pub fn read_request(body: &[u8]) -> ReceivedObject {
    Form::read(body).to_object(SHAPE)
}

/// Returns the validation messages that the page of a form shows for this body.
#[must_use]
pub fn list_problems(body: &[u8], invalid: &sakshi_domain::invalid::Invalid) -> Vec<String> {
    let form = Form::read(body).with_error(sakshi_service::ServiceError::Invalid(invalid.clone()));
    form.map(|(_, form)| form.problems().into_iter().map(|problem| problem.sentence).collect()).unwrap_or_default()
}
