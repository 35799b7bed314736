//! The error page for unknown addresses below `/v/`, `/e/` and `/d/`.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use sakshi_service::Service;
use sakshi_web::error::ApiError;
use sakshi_web::html::page;

use super::language::PageLanguage;
use super::layout::Layout;
use super::notice::{Notice, QUESTION, Retry, render_busy};

/// Paths of the pages for residents and guests.
const RESIDENT_PATHS: [&str; 3] = ["/v/", "/e/", "/d/"];

/// Returns true for an address of a page for residents or guests.
#[must_use]
pub fn is_for_residents(request: &HttpRequest) -> bool {
    RESIDENT_PATHS.iter().any(|path| request.path().starts_with(path))
}

/// Renders the page of an error, in the browser's language.
#[must_use]
pub fn error_page(request: &HttpRequest, error: &ApiError) -> Option<HttpResponse> {
    let service = request.app_data::<Data<Service>>()?;
    let language = PageLanguage::from_request(request, None);
    let status = error.status_code();
    if !matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        return Some(render_busy(service, error, language, request.path(), Retry::ByHand));
    }
    let notice = Notice {
        layout: Layout::new(service, language, "/"),
        look: QUESTION,
        event: None,
        heading: language.texts.unknown_heading,
        words: vec![language.texts.unknown],
        tips: Vec::new(),
        receipt: None,
        link: None,
        retry_s: None,
        reference: None,
    };
    Some(page(status, None, &notice))
}
