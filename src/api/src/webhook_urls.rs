//! `PUT` and `GET /api/v1/user/webhook`: the receivers of the webhooks of an app's flows (specification, "Webhook
//! configuration").

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::webhook_urls::register_webhook;
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::Authenticated;
use sakshi_web::authenticated::AuthenticatedBody;
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_wire::Always;
use sakshi_wire::webhook_urls::{RegisterWebhookRequest, RegisterWebhookResponse, WebhookSetting, WebhookSettings};

/// Sets the URL for the webhooks of an API type of the calling app; `null` removes the URL. The change applies from the
/// next report on, also to flows in flight. Queued webhooks keep their receiver.
///
/// # Errors
/// 400 with every invalid field.
#[utoipa::path(
    put, path = "/api/v1/user/webhook", tag = "Webhook configuration", operation_id = "setWebhookUrl",
    request_body = RegisterWebhookRequest,
    summary = "Set a webhook URL",
    description = "Applies from the next report on, also to flows in progress. `null` removes the URL. The URL for \
        verifications is a field of `openTransaction`.",
    responses((status = 200, body = RegisterWebhookResponse, description = "The current URL."))
)]
pub(crate) async fn register(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let data = register_webhook(&service, &caller.app.app_id, body.object).await?;
    Ok(HttpResponse::Ok().json(RegisterWebhookResponse { success: Always, data }))
}

/// Lists the receivers that the calling app has registered.
///
/// # Errors
/// 401 and 503 of the error table.
#[utoipa::path(
    get, path = "/api/v1/user/webhook", tag = "Webhook configuration", operation_id = "getWebhookUrls",
    summary = "List webhook URLs",
    description = "The URLs that this application has registered.",
    responses((status = 200, body = WebhookSettings, description = "One entry for each API type with a URL."))
)]
pub(crate) async fn list(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Query::parse(request.query_string()).finish()?;
    let urls = service.store.webhook_urls(caller.app.app_id.clone()).await?.ok_or(ServiceError::Unauthorized)?;
    let data = urls.iter().map(|(api_type, url)| WebhookSetting { api_type, webhook_url: Some(url.clone()) }).collect();
    Ok(HttpResponse::Ok().json(WebhookSettings { success: Always, data }))
}
