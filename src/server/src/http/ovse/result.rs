//! `GET /api/v1/nationalid-ovse/result/{txnId}`: the outcome, or a stub while there is none.

use std::time::Duration;

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_actors::View;
use sakshi_domain::limits::LONG_POLL_SECONDS_MAX;
use sakshi_domain::payload::{OvsePayload, PendingStub};
use sakshi_domain::tenancy::App;
use sakshi_domain::transaction::Completed;
use sakshi_store::CompletedRecord;

use super::txn_of_path;
use crate::http::caller::Caller;
use crate::http::error::ApiError;
use crate::http::query::Query;
use crate::http::rate::Rates;
use crate::service::Service;

/// Answers with the webhook's body once the transaction is completed.
///
/// # Errors
/// 404 unless the app has such a transaction, 410 when it has expired.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/result/{txnId}", tag = "OVSE",
    params(("txnId" = String, Path, format = "uuid", description = "As returned by init."),
           ("wait" = Option<u32>, Query, minimum = 0, maximum = 30, description = "Seconds to wait for an outcome; default 0.")),
    responses((status = 200, body = crate::http::schema::OvseResult, description = "The outcome in the webhook's shape, or a stub with `pending: true`."),
              (status = 404, description = "No such transaction of this app, or its result is no longer kept."),
              (status = 410, description = "The transaction has expired."),
              (status = 429, description = "The app polls more often per second than it may; wait with `?wait=` instead.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn result(
    caller: Caller,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<Rates>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.take(&caller.app.app_id)?;
    let mut query = Query::of(request.query_string());
    let wait = query.number(&["wait"], 0..=LONG_POLL_SECONDS_MAX, 0);
    query.finish()?;
    let id = txn_of_path(&path)?;
    let app = &caller.app;
    let mut view = service.transactions.look(id).await?;
    if wait > 0 && matches!(&view, View::Pending(pending) if pending.app == app.app_id) {
        let changed = service.transactions.look_when_changed(id, Duration::from_secs(wait));
        tokio::select! {
            later = changed => view = later?,
            () = service.drain.begun() => {}
            () = caller.until_revoked() => return Err(ApiError::Unauthorized),
        }
        caller.judge_again().await?;
    }
    match view {
        View::Pending(pending) if pending.app == app.app_id => Ok(HttpResponse::Ok().json(PendingStub(id))),
        View::Completed(record) if record.opened.app == app.app_id => {
            let (_, json) = finished(&service, *record, app)?;
            Ok(HttpResponse::Ok().content_type("application/json").body(json))
        }
        View::Expired(opened) if opened.app == app.app_id => Err(ApiError::TransactionExpired),
        _ => Err(ApiError::TransactionNotFound),
    }
}

/// A completed transaction, and the body that its webhook carries and its polls are answered with.
///
/// # Errors
/// An outcome that does not open.
pub(crate) fn finished(service: &Service, record: CompletedRecord, app: &App) -> Result<(Completed, Vec<u8>), ApiError> {
    let broken = |error: String| ApiError::Internal(error);
    let completed = service.transactions.reveal(record).map_err(|error| broken(error.to_string()))?;
    let json = serde_json::to_vec(&OvsePayload::new(&completed, app.payload_spelling)).map_err(|error| broken(error.to_string()))?;
    Ok((completed, json))
}
