//! `POST /api/v1/esign/request` requests signatures of a document; `POST /api/v1/esign/status` returns its state.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::flow_polls::poll_document;
use sakshi_service::flows::{FlowCall, request_signatures};
use sakshi_service::idempotency::replay_refused;
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::{Authenticated, AuthenticatedBody};
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::esign::{EsignRequest, EsignResponse, EsignStatus, EsignStatusRequest};

use super::file_body::{FileRequest, receive_file_request};
use crate::poll::poll_response;

/// Requests the signatures of one or more people, in the order of `signerInfo`. The outcome comes by webhook, to
/// `responseUrl` or else to the URL registered for `ESign`, and by polling.
///
/// # Errors
/// 400, 401, 408, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table. On an error, no flow is opened.
#[utoipa::path(
    post, path = "/api/v1/esign/request", tag = "eSign", operation_id = "requestEsign", request_body = EsignRequest,
    summary = "Request signatures",
    description = "Invites the signers in the order of `signerInfo`. The outcome comes by webhook, to `responseUrl` \
        or else to the URL registered for `ESign`, and by polling.",
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = EsignResponse, description = "The signers are invited."))
)]
pub(crate) async fn request(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    rates.init.count(&request, &caller.app.app_id)?;
    rates.orders.count(&request, &caller.client)?;
    let upstream = service.upstreams.esign.as_ref().ok_or(ServiceError::NotOffered)?;
    let FileRequest { order, idempotent, _permit } =
        receive_file_request::<EsignRequest>(&service, &caller, &request, payload, "esign").await?;
    let order = match order {
        Ok(order) => order,
        Err(refusal) => {
            let answer = replay_refused::<EsignResponse>(&service, &caller, idempotent.as_ref(), refusal).await?;
            return Ok(idempotency::creation_response(answer));
        }
    };
    let request_id = adopt_request_id(&request, order.request_id.clone());
    let call = FlowCall { caller, request_id, idempotent };
    Ok(idempotency::creation_response(request_signatures(&service, upstream, call, order).await?))
}

/// Returns the body of the webhook, with the signed PDF, once the document has ended.
///
/// # Errors
/// 404 unless the app has a document with this id.
#[utoipa::path(
    post, path = "/api/v1/esign/status", tag = "eSign", operation_id = "getEsignStatus",
    request_body = EsignStatusRequest,
    summary = "Get a signed document",
    description = "Returns the body of the webhook, with the signed PDF, once the document has ended. Before that, \
        returns a stub.",
    responses((status = 200, body = EsignStatus, description = "The outcome, or a stub."),
              (status = 404, description = "The application has no such document, or its result was deleted."))
)]
pub(crate) async fn status(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    let query: EsignStatusRequest = body.object.into_request(service.request_context())?;
    rates.polls.count(&request, &caller.app.app_id)?;
    Ok(poll_response(&request, poll_document(&service, &caller.app, &query.document_id).await?))
}
