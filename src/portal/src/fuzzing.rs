//! The parts of a request that the portal reads, for the fuzzer.

use actix_web::HttpRequest;
use sakshi_wire::Sent;

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
pub fn session(request: &HttpRequest) -> Option<(String, String)> {
    COOKIE.session_id(request).map(|id| (id.cookie(false), id.csrf_token().as_str().to_owned()))
}

/// Returns the fields of a form as those of a request.
#[must_use]
pub fn sent(body: &[u8]) -> Sent {
    Form::read(body).sent(SHAPE)
}

/// Returns the errors of a refused form, as sentences for its reader.
#[must_use]
pub fn problems(body: &[u8], found: &sakshi_domain::invalid::Invalid) -> Vec<String> {
    let refused = Form::read(body).refused(sakshi_service::ServiceError::Invalid(found.clone()));
    refused.map(|(_, form)| form.problems().into_iter().map(|problem| problem.sentence).collect()).unwrap_or_default()
}
