//! `PUT` and `GET /api/v1/user/webhook`: where the webhooks of an app's flows go (specification,
//! "Webhook configuration").

use actix_web::HttpResponse;
use actix_web::web::Data;
use sakshi_service::webhook_urls::register_webhook;
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::Authenticated;
use sakshi_web::authenticated::AuthenticatedBody;
use sakshi_web::error::ApiError;
use sakshi_wire::Always;
use sakshi_wire::webhook_urls::{RegisterWebhookRequest, RegisterWebhookResponse, WebhookSetting, WebhookSettings};

/// Registers where the webhooks of an API type go, for the calling app; `null` removes the URL. It holds from the next report on,
/// also for flows that are under way. What waits to be sent goes where it was going.
///
/// # Errors
/// 400 with every field that is not acceptable.
#[utoipa::path(
    put, path = "/api/v1/user/webhook", tag = "Webhook configuration", operation_id = "setWebhookUrl", request_body = RegisterWebhookRequest,
    responses((status = 200, body = RegisterWebhookResponse, description = "It holds from now on."))
)]
pub(crate) async fn register(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let data = register_webhook(&service, &caller.app.app_id, body.sent).await?;
    Ok(HttpResponse::Ok().json(RegisterWebhookResponse { success: Always, data }))
}

/// Lists what the calling app has registered.
///
/// # Errors
/// 401 and 503 of the error table.
#[utoipa::path(
    get, path = "/api/v1/user/webhook", tag = "Webhook configuration", operation_id = "getWebhookUrls",
    responses((status = 200, body = WebhookSettings, description = "An entry for each API type that has a URL."))
)]
pub(crate) async fn list(Authenticated(caller): Authenticated, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let urls = service.store.webhook_urls(caller.app.app_id.clone()).await?.ok_or(ServiceError::Unauthorized)?;
    let data = urls.iter().map(|(api_type, url)| WebhookSetting { api_type, webhook_url: Some(url.clone()) }).collect();
    Ok(HttpResponse::Ok().json(WebhookSettings { success: Always, data }))
}
