//! `GET /portal/refusals`: requests of the app that were refused, newest first, found by their `errorId`.

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

/// One line of the list.
struct Row {
    at: When,
    refused: RefusedRequest,
}

#[derive(Template)]
#[template(path = "refusals.html")]
struct Page {
    layout: Layout,
    find: String,
    rows: Vec<Row>,
    pages: Pages,
    most: u32,
}

/// Shows a page of the list.
///
/// # Errors
/// Not signed in, or the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let mut query = Query::parse(request.query_string());
    let find = query.text("find").unwrap_or_default();
    let number = query.number(&["page"], 1..=u32::MAX, 1);
    let mut kept = service.store.refusals(user.caller.app.app_id.clone()).await?;
    kept.retain(|refused| find.is_empty() || refused.request_id.as_str() == find);
    let pages = Pages::new(number, kept.len() as u64);
    let shown = kept.into_iter().skip(((pages.page - 1) * ROWS) as usize).take(ROWS as usize);
    let template = Page {
        layout: user.layout(Section::Verifications, &service),
        find,
        rows: shown.map(|refused| Row { at: When::minute(refused.at), refused }).collect(),
        pages,
        most: REFUSALS_KEPT_MAX,
    };
    Ok(page(StatusCode::OK, &template))
}
