//! `GET /api/v1/nationalid-ovse/result/{txnId}`: the outcome, or a stub while there is none.

use std::time::Duration;

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::limits::LONG_POLL_SECONDS_MAX;
use sakshi_service::service::Service;
use sakshi_service::transactions::{OwnTransaction, await_outcome, outcome_body};
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::ovse::{OvsePending, OvseResult};

use super::txn_of_path;

/// Answers with the webhook's body once the transaction is completed.
///
/// # Errors
/// 404 unless the app has such a transaction, 410 when it has expired.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/result/{txnId}", tag = "OVSE",
    params(("txnId" = String, Path, format = "uuid", description = "As returned by init."),
           ("wait" = Option<u32>, Query, minimum = 0, maximum = 30, description = "Seconds to wait for an outcome; default 0.")),
    responses((status = 200, body = OvseResult, description = "The outcome in the webhook's shape, or a stub with `pending: true`."),
              (status = 404, description = "No such transaction of this app, or its result is no longer kept."),
              (status = 410, description = "The transaction has expired."),
              (status = 429, description = "The app polls more often per second than it may; wait with `?wait=` instead.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn result(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.take(&caller.app.app_id)?;
    let mut query = Query::of(request.query_string());
    let wait = query.number(&["wait"], 0..=LONG_POLL_SECONDS_MAX, 0);
    query.finish()?;
    let id = txn_of_path(&path)?;
    match await_outcome(&service, &caller, id, Duration::from_secs(wait)).await? {
        OwnTransaction::Pending(_) => Ok(HttpResponse::Ok().json(OvsePending::of(id))),
        OwnTransaction::Completed(record) => {
            let (_, json) = outcome_body(&service, *record, &caller.app)?;
            Ok(HttpResponse::Ok().content_type("application/json").body(json))
        }
    }
}
