//! `POST /api/v1/doclocker/init` requests documents from a person's locker; `GET
//! /api/v1/doclocker/details/{transactionId}` returns them.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::flow_polls::poll_locker;
use sakshi_service::flows::{FlowCall, request_documents};
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::{Authenticated, AuthenticatedBody};
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::doclocker::{DocLockerDetails, DocLockerInitRequest, DocLockerResponse};

use crate::poll::poll_response;

/// Requests documents from a person's locker. The outcome comes by webhook, to the URL registered for `DocLocker`, and
/// by polling.
///
/// # Errors
/// 400, 401, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table. On an error, no flow is opened.
#[utoipa::path(
    post, path = "/api/v1/doclocker/init", tag = "Document locker", operation_id = "initDocLocker",
    request_body = DocLockerInitRequest,
    summary = "Request locker documents",
    description = "Send the person to `requestUrl`. The outcome comes by webhook, to the URL registered for \
        `DocLocker`, and by polling.",
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = DocLockerResponse, description = "The person can open the locker."))
)]
pub(crate) async fn init(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.count(&request, &caller.app.app_id)?;
    rates.orders.count(&request, &caller.client)?;
    let upstream = service.upstreams.doclocker.as_ref().ok_or(ServiceError::NotOffered)?;
    let idempotent = idempotency::idempotent_request(&request, &caller, "doclocker", &body.bytes)?;
    let order: DocLockerInitRequest = body.object.into_request(service.request_context())?;
    let request_id = adopt_request_id(&request, order.request_id.clone());
    let call = FlowCall { caller, request_id, idempotent };
    Ok(idempotency::creation_response(request_documents(&service, upstream, call, &order).await?))
}

/// Returns the body of the webhook, with its documents, when no further document is expected. Before that, returns the
/// documents that have arrived.
///
/// # Errors
/// 404 unless the app has requested documents with this id.
#[utoipa::path(
    get, path = "/api/v1/doclocker/details/{transactionId}", tag = "Document locker",
    operation_id = "getDocLockerDetails",
    summary = "Get locker documents",
    description = "Returns the body of the webhook when no further document is expected. Before that, returns a stub \
        with the documents that have arrived.",
    params(("transactionId" = String, Path, format = "uuid", description = "The `transactionId` of `initDocLocker`.")),
    responses((status = 200, body = DocLockerDetails, description = "The outcome, or a stub."),
              (status = 404, description = "The application has no such fetch, or its result was deleted."))
)]
pub(crate) async fn details(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    Query::parse(request.query_string()).finish()?;
    rates.polls.count(&request, &caller.app.app_id)?;
    Ok(poll_response(&request, poll_locker(&service, &caller.app, &path).await?))
}
