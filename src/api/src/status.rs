//! `GET /api/v1/status`: shows whether a fault is in the service, the authority, an upstream, or the client's own
//! receiver.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::Service;
use sakshi_service::authority_answers::AnswerCounts;
use sakshi_service::status::{Status, Webhooks, status};
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::status::{AuthorityStatus, ServiceStatus, UpstreamStatus, WebhookCounts};

/// Returns the status of the service.
///
/// # Errors
/// 401, 429 and 503 of the error table.
#[utoipa::path(
    get, path = "/api/v1/status", tag = "Service", operation_id = "getStatus",
    summary = "Get the status",
    description = "The answers of the authority and the upstreams to this node in the last half hour, and the delivery \
        counts of the application's newest webhooks.",
    responses((status = 200, body = ServiceStatus, description = "The status."))
)]
pub(crate) async fn show(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.count(&request, &caller.app.app_id)?;
    Query::parse(request.query_string()).finish()?;
    let Status { authority, upstreams, webhooks } = status(&service, &caller).await?;
    let AnswerCounts { answers, service_down, http_errors, last_at } = authority;
    let Webhooks { delivered, failed, waiting } = webhooks;
    let upstream =
        |(kind, [answered, failed]): (&str, [u64; 2])| UpstreamStatus { kind: kind.to_owned(), answered, failed };
    Ok(HttpResponse::Ok().json(ServiceStatus {
        authority: AuthorityStatus { answers, service_down, http_errors, last_answer_at: last_at },
        upstreams: upstreams.into_iter().map(upstream).collect(),
        webhooks: WebhookCounts { delivered, failed, waiting },
    }))
}
