//! `GET /portal/refusals`: refused API requests of the app, newest first, with a search by `errorId`.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::limits::REFUSALS_KEPT_MAX;
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_service::Service;
use sakshi_web::query::Query;

use super::error::PortalError;
use super::layout::{Layout, Section, page};
use super::paging::{Pages, ROWS};
use super::portal_user::PortalUser;
use super::when::When;

/// A refused request in the list.
struct Row {
    at: When,
    request: RefusedRequest,
}

#[derive(Template)]
#[template(path = "refusals.html")]
struct Page {
    layout: Layout,
    search_text: String,
    rows: Vec<Row>,
    pages: Pages,
    requests_max: u32,
}

/// Shows a page of the list.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let mut query = Query::parse(request.query_string());
    let search_text = query.text("find").unwrap_or_default();
    let page_number = query.number(&["page"], 1..=u32::MAX, 1);
    let mut requests = service.store.refusals(user.caller.app.app_id.clone()).await?;
    requests.retain(|request| search_text.is_empty() || request.request_id.as_str() == search_text);
    let pages = Pages::new(page_number, requests.len() as u64);
    let page_requests = requests.into_iter().skip(((pages.page - 1) * ROWS) as usize).take(ROWS as usize);
    let template = Page {
        layout: user.layout(Section::Verifications, &service),
        search_text,
        rows: page_requests.map(|request| Row { at: When::minute(request.at), request }).collect(),
        pages,
        requests_max: REFUSALS_KEPT_MAX,
    };
    Ok(page(StatusCode::OK, &template))
}
