//! `GET /api/v1/credits` and `/api/v1/credits/statement`: a client reads its own ledger.
//!
//! The admin API returns the same rows and bodies to the operator.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::query::{Query, next_page};
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::credits::{Balance, Statement};

/// Returns the balance of the client, which all its apps share.
///
/// # Errors
/// 401 and 503 of the error table.
#[utoipa::path(
    get, path = "/api/v1/credits", tag = "Credits", operation_id = "getCredits",
    summary = "Get the balance",
    description = "The credits of the client, which all its applications share.",
    responses((status = 200, body = Balance, description = "The balance."))
)]
pub(crate) async fn balance(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Query::parse(request.query_string()).finish()?;
    let balance = service.store.balance(caller.client).await?.ok_or(ServiceError::NotFound("client"))?;
    Ok(HttpResponse::Ok().json(Balance { balance }))
}

/// Lists every movement of the client's credits, oldest first.
///
/// # Errors
/// 400, 401 and 503 of the error table.
#[utoipa::path(
    get, path = "/api/v1/credits/statement", tag = "Credits", operation_id = "getCreditStatement",
    summary = "List credit movements",
    description = "Oldest first. Follow `next` until it is absent.",
    params(("page" = Option<u32>, Query, minimum = 1, description = "Default: 1."),
           ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Rows of a page. Default: 20."),
           ("from" = Option<String>, Query, format = "date-time", description = "Movements at this time or later (ISO \
               8601 with an offset; `+` is written `%2B` in a query)."),
           ("to" = Option<String>, Query, format = "date-time", description = "Movements before this time.")),
    responses((status = 200, body = Statement, description = "A page of movements."))
)]
pub(crate) async fn statement(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.count(&request, &caller.app.app_id)?;
    let mut query = Query::parse(request.query_string());
    let (page, from, to) = (query.page(), query.time("from"), query.time("to"));
    query.finish()?;
    let list = sakshi_service::statement::statement(&service.store, &caller.client, page, from, to).await?;
    let times = [("from", from), ("to", to)];
    let time_parameters: String =
        times.into_iter().filter_map(|(name, time)| Some(format!("&{name}={}", time?))).collect();
    let next = next_page(request.path(), page, list.total).map(|next| next + &time_parameters);
    Ok(HttpResponse::Ok().json(Statement::new(page.page, page.page_size, list.total, list.items, next)))
}
