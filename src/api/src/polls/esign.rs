//! `POST /api/v1/esign/status`: how a document to be signed stands.

use actix_web::HttpResponse;
use actix_web::web::Data;
use sakshi_domain::flow::esign::EsignFlow;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::esign::{EsignOutcome, EsignStatus, EsignStatusRequest};
use sakshi_wire::read_report;

use super::{Polls, WHAT, flow_of, unreadable, written};

/// Answers with the webhook's body, signed PDF included, once the document has ended.
///
/// # Errors
/// 404 unless the app has such a document.
#[utoipa::path(
    post, path = "/api/v1/esign/status", tag = "eSign", operation_id = "esign_status", request_body = EsignStatusRequest,
    responses((status = 200, body = EsignStatus, description = "The body of the webhook, or a stub with `pending: true`."),
              (status = 404, description = "No such document of this app, or its result is no longer kept."),
              (status = 429, description = "The app polls more often per second than it may.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn status(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    service: Data<Service>,
    rates: Data<RateLimits>,
    polls: Data<Polls>,
) -> Result<HttpResponse, ApiError> {
    let asked: EsignStatusRequest = body.sent.request(service.rules.urls.at(service.clock.now()))?;
    let (_, record) = flow_of(&caller, &service, &rates, &polls, &asked.document_id).await?;
    let app = &caller.app;
    match (record.state, record.latest) {
        (FlowState::ESign(EsignFlow::Ended(_)), Some(sent)) => polls.answer(&service.vault, app, sent, Ok).await,
        (FlowState::ESign(EsignFlow::Pending(_)), Some(latest)) => polls.answer(&service.vault, app, latest, |latest| stub(&latest)).await,
        _ => Err(ApiError::Service(ServiceError::NotFound(WHAT))),
    }
}

fn stub(latest: &[u8]) -> Result<Vec<u8>, ApiError> {
    let latest: EsignOutcome = read_report(latest).map_err(|_| unreadable())?;
    written(&EsignStatus::from(latest))
}
