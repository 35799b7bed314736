//! `POST /api/v1/doclocker/init`: which documents to fetch from a person's locker.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::error::ServiceError;
use sakshi_service::flows::{FlowCall, request_documents};
use sakshi_service::service::Service;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::doclocker::{DocLockerInitRequest, DocLockerResponse};

/// Asks for documents from a person's locker. The outcome comes by webhook, to the URL that is registered for `DocLocker`, and by polling.
///
/// # Errors
/// 400, 401, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table; nothing is opened then.
#[utoipa::path(
    post, path = "/api/v1/doclocker/init", tag = "Document locker", operation_id = "doclocker_init", request_body = DocLockerInitRequest,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = DocLockerResponse, description = "The person is awaited at the locker.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn init(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let upstream = service.upstreams.doclocker.as_ref().ok_or(ServiceError::NotOffered)?;
    let once = idempotency::of(&request, &caller, "doclocker", &body.bytes)?;
    let asked: DocLockerInitRequest = body.sent.request(service.rules.urls.at(service.clock.now()))?;
    let request_id = adopt_request_id(&request, asked.request_id.clone());
    let call = FlowCall { caller, request_id, once };
    Ok(idempotency::answer(request_documents(&service, upstream, call, &asked).await?))
}
