//! `POST /api/v1/esign/request`: a document and the people who are to sign it.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::error::ServiceError;
use sakshi_service::flows::{FlowCall, request_signatures};
use sakshi_service::service::Service;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::budget::{CpuBudget, MemoryBudgets};
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::esign::{EsignRequest, EsignResponse};

use super::file_body::{WithFile, receive};

/// Asks for the signatures of one or more people under a document, in the order of `signerInfo`. The outcome comes by webhook, to
/// `responseUrl` or else to the URL that is registered for `ESign`, and by polling.
///
/// # Errors
/// 400, 401, 408, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table; nothing is opened then.
#[utoipa::path(
    post, path = "/api/v1/esign/request", tag = "eSign", operation_id = "esign_request", request_body = EsignRequest,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = EsignResponse, description = "The document waits for its signers.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn request(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
    memory: Data<MemoryBudgets>,
    cpu: Data<CpuBudget>,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let upstream = service.upstreams.esign.as_ref().ok_or(ServiceError::NotOffered)?;
    let budgets = (memory, cpu);
    let url_rules = (service.rules.urls, service.clock.now());
    let received = receive::<EsignRequest>((&request, payload), (&budgets, &caller), "esign", url_rules);
    let WithFile { request: order, once, _permit } = received.await?;
    let request_id = adopt_request_id(&request, order.request_id.clone());
    let call = FlowCall { caller, request_id, once };
    Ok(idempotency::answer(request_signatures(&service, upstream, call, order).await?))
}
