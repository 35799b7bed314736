//! `POST /api/v1/estamp/init`: requests an e-stamp on a document, of the registry or on paper.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::flows::{FlowCall, request_stamp};
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::Authenticated;
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::estamp::{EStampInitRequest, EStampResponse};

use super::file_body::{FileRequest, receive_file_request};

/// Requests an e-stamp on a document, of the registry or on paper. The outcome comes by webhook, to the URL registered
/// for the `apiType` of the request.
///
/// # Errors
/// 400, 401, 408, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table. On an error, no flow is opened.
#[utoipa::path(
    post, path = "/api/v1/estamp/init", tag = "E-stamp", operation_id = "initEStamp", request_body = EStampInitRequest,
    summary = "Request an e-stamp",
    description = "The outcome comes by webhook only, to the URL registered for the `apiType` of the request.",
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = EStampResponse, description = "The e-stamp is ordered."))
)]
pub(crate) async fn init(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    rates.init.count(&request, &caller.app.app_id)?;
    rates.orders.count(&request, &caller.client)?;
    let upstream = service.upstreams.estamp.as_ref().ok_or(ServiceError::NotOffered)?;
    let FileRequest { order, idempotent, _permit } =
        receive_file_request::<EStampInitRequest>(&service, &caller, &request, payload, "estamp").await?;
    let order = order?;
    let request_id = adopt_request_id(&request, order.request_id.clone());
    let call = FlowCall { caller, request_id, idempotent };
    Ok(idempotency::creation_response(request_stamp(&service, upstream, call, order).await?))
}
