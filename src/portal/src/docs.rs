//! `/docs`: the API's document as a page to read, without a script and for everybody; [`errors`] has the codes of refusals.
//!
//! It is made from the same document that `/openapi.json` serves, once per worker. What is tried out is tried out in the portal
//! or with the commands that the portal shows.

pub mod errors;
mod fields;
mod reference;

use std::cell::OnceCell;

use actix_web::body::MessageBody;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_service::Service;
use sakshi_web::api_document::ApiDocument;
use sakshi_web::error::ApiError;
use sakshi_web::html::PAGE_CSP;
use sakshi_web::rate_limit::RateLimits;

use self::reference::{Reference, pieces};
use super::layout::Layout;
use crate::files::DOCS;

/// The page of one worker; it is put together when somebody first asks for it.
#[derive(Debug, Default)]
pub struct Page(OnceCell<Bytes>);

#[derive(Template)]
#[template(path = "docs.html")]
struct Docs {
    layout: Layout,
    style: String,
    reference: Reference,
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
    page: Data<Page>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let html = match page.0.get() {
        Some(html) => html.clone(),
        None => {
            let docs = Docs {
                layout: Layout::signed_out(service.authority.sandbox),
                style: DOCS.url(),
                reference: Reference::of(&document.value()),
            };
            let html = docs.render().map_err(ApiError::internal)?;
            page.0.get_or_init(|| html.into()).clone()
        }
    };
    Ok(published(html))
}

/// Answers with a page that is the same for everybody.
fn published(html: impl MessageBody + 'static) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, PAGE_CSP))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header(("x-robots-tag", "noindex"))
        .insert_header((CACHE_CONTROL, "public, max-age=3600"))
        .body(html)
}
