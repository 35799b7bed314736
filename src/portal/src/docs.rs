//! `/docs`: the API's document as a page to read, without a script and for everybody; [`errors`] has the codes of refusals, and
//! [`guides`] what to read before.
//!
//! It is made from the same document that `/openapi.json` serves, once per worker. What is tried out is tried out in the portal
//! or with the commands that the portal shows.

pub mod errors;
mod fields;
pub mod guides;
mod reference;

use std::cell::OnceCell;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_service::Service;
use sakshi_web::api_document::{ApiDocument, open_to_every_origin};
use sakshi_web::compressed::Compressed;
use sakshi_web::error::ApiError;
use sakshi_web::html::PAGE_CSP;
use sakshi_web::rate_limit::RateLimits;

use self::guides::{DOCUMENTS, Document};
use self::reference::{Reference, pieces};
use super::layout::Layout;
use crate::files::DOCS;

/// The pages of one worker; each is put together when somebody first asks for it.
#[derive(Debug, Default)]
pub struct DocsPages {
    reference: OnceCell<Compressed>,
    errors: OnceCell<Compressed>,
    guides: [OnceCell<Compressed>; DOCUMENTS.len()],
}

#[derive(Template)]
#[template(path = "docs.html")]
struct Docs {
    layout: Layout,
    style: String,
    reference: Reference,
    guides: &'static [Document],
}

/// Leads a browser to the page.
pub async fn enter() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs")).finish()
}

/// The page.
///
/// # Errors
/// 429 when one address asks too often.
pub async fn show(
    request: HttpRequest,
    service: Data<Service>,
    document: Data<ApiDocument>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let html = match pages.reference.get() {
        Some(html) => html,
        None => {
            let docs = Docs {
                layout: Layout::public(service.authority.sandbox),
                style: DOCS.url(),
                reference: Reference::of(&document.value()),
                guides: &DOCUMENTS,
            };
            let html = docs.render().map_err(ApiError::internal)?;
            pages.reference.get_or_init(|| Compressed::new(html))
        }
    };
    Ok(published(&request, html))
}

/// Answers with a page that is the same for everybody.
fn published(request: &HttpRequest, html: &Compressed) -> HttpResponse {
    let mut response = html.answer(request, "text/html; charset=utf-8", "public, max-age=3600");
    let more = [
        (CONTENT_SECURITY_POLICY, PAGE_CSP),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    for (name, value) in more {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    open_to_every_origin(response)
}
