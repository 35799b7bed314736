//! Renders templates as responses, with the headers common to all pages.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType, HeaderValue, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, VARY,
};
use actix_web::{HttpResponse, HttpResponseBuilder};
use askama::Template;

/// The `Content-Security-Policy` of pages: everything from this origin, nothing inline, no frames.
pub const PAGE_CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
                                 connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Responds with a page; `retry_after` is in seconds.
pub fn page(status: StatusCode, retry_after: Option<u64>, template: &impl Template) -> HttpResponse {
    match template.render() {
        Ok(html) => {
            let mut response = private(status);
            if let Some(seconds) = retry_after {
                response.insert_header((RETRY_AFTER, seconds));
            }
            response.insert_header((CONTENT_SECURITY_POLICY, PAGE_CSP)).insert_header(ContentType::html()).body(html)
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// Responds with a page of a site with forms.
pub fn form_page(status: StatusCode, template: &impl Template) -> HttpResponse {
    let mut response = page(status, None, template);
    // Without a referrer, a browser sends the origin of a form's request as "null".
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Redirects the browser to a path of this service with `GET` (303, RFC 9110 §15.4.4).
#[must_use]
pub fn redirect(path: &str) -> HttpResponse {
    private(StatusCode::SEE_OTHER).insert_header((LOCATION, path)).finish()
}

/// Adds a cookie to the response; `cookie` is the value of `Set-Cookie`.
#[must_use]
pub fn with_cookie(mut response: HttpResponse, cookie: &str) -> HttpResponse {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Builds a private response: not stored, not indexed, and its URL not sent to other sites.
#[must_use]
pub fn private(status: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header(("x-robots-tag", "noindex"))
        .insert_header((VARY, "accept, accept-language, user-agent"));
    response
}
