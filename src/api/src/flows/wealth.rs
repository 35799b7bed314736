//! `POST /api/v1/wealth/consents`: requests a person's consent to share wealth data.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::flows::{FlowCall, request_consent};
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::AuthenticatedBody;
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::wealth::{WealthConsentRequest, WealthConsentResponse};

/// Requests a person's consent to share wealth data. Changes of the consent, and the shared data, come by webhook to
/// the URLs that the operator has set for the app.
///
/// # Errors
/// 400, 401, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table. On an error, no flow is opened.
#[utoipa::path(
    post, path = "/api/v1/wealth/consents", tag = "Wealth data", operation_id = "requestWealthConsent",
    request_body = WealthConsentRequest,
    summary = "Request a wealth consent",
    description = "Send the person to `requestUrl`. Changes of the consent and the data come by webhook only, to the \
        URLs set by the operator.",
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = WealthConsentResponse, description = "The person can consent."))
)]
pub(crate) async fn consents(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.count(&request, &caller.app.app_id)?;
    rates.orders.count(&request, &caller.client)?;
    let upstream = service.upstreams.wealth.as_ref().ok_or(ServiceError::NotOffered)?;
    let idempotent = idempotency::idempotent_request(&request, &caller, "wealth", &body.bytes)?;
    let order: WealthConsentRequest = body.object.into_request(service.request_context())?;
    let request_id = adopt_request_id(&request, order.request_id.clone());
    let call = FlowCall { caller, request_id, idempotent };
    Ok(idempotency::creation_response(request_consent(&service, upstream, call, &order).await?))
}
