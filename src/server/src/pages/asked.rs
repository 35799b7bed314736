//! What kind of answer a request asks for by its `Accept` header.

use actix_web::HttpRequest;
use actix_web::http::header::ACCEPT;

/// What the identity app asks for; browsers ask for HTML.
pub(super) const JWT: &str = "application/jwt";

/// Whether the identity app asks.
pub(super) fn wants_intent(request: &HttpRequest) -> bool {
    accepts(request, JWT)
}

/// Whether a program asks that reads the error table's bodies.
pub(super) fn wants_json(request: &HttpRequest) -> bool {
    accepts(request, "application/json") && !accepts(request, "text/html")
}

fn accepts(request: &HttpRequest, wanted: &str) -> bool {
    let values = request.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|range| range.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted)))
}
