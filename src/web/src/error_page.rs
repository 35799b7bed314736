//! Pages for errors. Browsers get a page instead of JSON.

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, Accept, Header as _, HeaderValue, Quality, RETRY_AFTER};
use actix_web::{Error, HttpRequest, HttpResponse};

use crate::error::ApiError;

/// Builds the page of an error, as app data of a listener with pages. The first error is the handler's. The second is
/// the error to render, absent if the handler made its own page.
#[derive(Clone, Copy, Debug)]
pub struct ErrorPages(pub fn(&HttpRequest, Option<&Error>, Option<&ApiError>) -> Option<HttpResponse>);

/// Prefixes of paths for programs, which get no page. Some HTTP libraries accept HTML by default.
const PROGRAM_PATHS: [&str; 3] = ["/api/", "/cb/", "/.well-known/"];

/// Returns the page for this request; `None` for programs, and on listeners without pages.
pub(crate) fn error_page(
    request: &HttpRequest,
    status: StatusCode,
    source: Option<&Error>,
    error: Option<&ApiError>,
) -> Option<HttpResponse> {
    let ErrorPages(build_page) = request.app_data::<ErrorPages>()?;
    let is_shown = matches!(status.as_u16(), 404 | 405 | 429 | 500..);
    if PROGRAM_PATHS.iter().any(|prefix| request.path().starts_with(prefix))
        || !prefers_html(request)
        || (error.is_some() && !is_shown)
    {
        return None;
    }
    let mut page = build_page(request, source, error)?;
    if let Some(ApiError::MethodNotAllowed { allow }) = error
        && let Ok(allow) = HeaderValue::from_str(allow)
    {
        page.headers_mut().insert(ALLOW, allow);
    }
    if let Some(seconds) = error.and_then(ApiError::retry_after) {
        page.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    Some(page)
}

/// Returns true if the request names HTML and prefers it to JSON, or both equally (RFC 9110 §12.5.1).
fn prefers_html(request: &HttpRequest) -> bool {
    let accept = Accept::parse(request).map(|accept| accept.0).unwrap_or_default();
    let quality =
        |kind: &str| accept.iter().filter(|range| range.item.essence_str() == kind).map(|range| range.quality).max();
    quality("text/html")
        .is_some_and(|html| html > Quality::ZERO && quality("application/json").is_none_or(|json| html >= json))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_browser_prefers_html_and_a_program_does_not() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("text/html", true),
            ("application/json, text/html", true),
            ("application/json, text/html;q=0.5", false),
            ("text/html;q=0", false),
            ("application/json", false),
            ("*/*", false),
            ("", false),
        ] {
            assert_eq!(
                prefers_html(&TestRequest::get().insert_header(("accept", accept)).to_http_request()),
                expected,
                "{accept}"
            );
        }
    }
}
