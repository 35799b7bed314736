//! From a template to an answer: the headers that every page has, whatever it says.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType, REFERRER_POLICY, RETRY_AFTER, VARY};
use actix_web::{HttpResponse, HttpResponseBuilder};
use askama::Template;

/// Everything comes from this origin, nothing is inline, nothing frames the page.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
                                 base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Answers with a page; `retry_after` is in seconds.
pub fn page(status: StatusCode, retry_after: Option<u64>, template: &impl Template) -> HttpResponse {
    match template.render() {
        Ok(html) => {
            let mut response = private(status);
            if let Some(seconds) = retry_after {
                response.insert_header((RETRY_AFTER, seconds));
            }
            response.insert_header((CONTENT_SECURITY_POLICY, POLICY)).insert_header(ContentType::html()).body(html)
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// An answer for one person's eyes: not stored, not indexed, and not told to the next site.
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
