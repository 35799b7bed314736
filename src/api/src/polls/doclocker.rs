//! `GET /api/v1/doclocker/details/{transactionId}`: what has come out of the document locker.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::doclocker::DocLockerDetails;
use sakshi_wire::read_report;

use super::{Polls, WHAT, flow_of, unreadable, written};

/// Answers with the webhook's body, documents included, once none is awaited any more; until then with those that have come.
///
/// # Errors
/// 404 unless the app has such a fetch.
#[utoipa::path(
    get, path = "/api/v1/doclocker/details/{transactionId}", tag = "Document locker", operation_id = "doclocker_details",
    params(("transactionId" = String, Path, format = "uuid", description = "As returned when the fetch was begun.")),
    responses((status = 200, body = DocLockerDetails, description = "The body of the webhook, or a stub with `pending: true`."),
              (status = 404, description = "No such fetch of this app, or its result is no longer kept."),
              (status = 429, description = "The app polls more often per second than it may.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn details(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    service: Data<Service>,
    rates: Data<RateLimits>,
    polls: Data<Polls>,
) -> Result<HttpResponse, ApiError> {
    let (id, record) = flow_of(&caller, &service, &rates, &polls, &path).await?;
    let app = &caller.app;
    match (record.state, record.latest) {
        (FlowState::DocLocker(DocLockerFlow::Ended { .. }), Some(sent)) => polls.answer(&service.vault, app, sent, Ok).await,
        (FlowState::DocLocker(DocLockerFlow::Pending { .. }), Some(latest)) => {
            let stub = move |latest: Vec<u8>| {
                let latest = read_report(&latest).map_err(|_| unreadable())?;
                written(&DocLockerDetails::of(id, Some(latest)))
            };
            polls.answer(&service.vault, app, latest, stub).await
        }
        (FlowState::DocLocker(DocLockerFlow::Pending { .. }), None) => Ok(HttpResponse::Ok().json(DocLockerDetails::of(id, None))),
        _ => Err(ApiError::Service(ServiceError::NotFound(WHAT))),
    }
}
