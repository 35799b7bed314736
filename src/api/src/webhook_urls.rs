//! `PUT` and `GET /api/v1/user/webhook`: where the webhooks of an app's flows go (specification,
//! "Webhook configuration").
//!
//! There is no actor in between: nobody keeps a copy, and what is registered holds for the next report
//! on every node.

use actix_web::HttpResponse;
use actix_web::web::Data;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::AppId;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_wire::Sent;
use sakshi_wire::webhook_urls::{RegisterWebhookRequest, RegisterWebhookResponse, WebhookSetting, WebhookSettings};

/// Registers where the webhooks of an API type go, for the calling app; `null` removes the URL. It holds from the next report on,
/// also for flows that are under way. What waits to be sent goes where it was going.
///
/// # Errors
/// 400 with every field that is not acceptable.
#[utoipa::path(
    put, path = "/api/v1/user/webhook", tag = "Webhook configuration", operation_id = "register_webhook", request_body = RegisterWebhookRequest,
    responses((status = 200, body = RegisterWebhookResponse, description = "It holds from now on.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn register(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let (api_type, webhook_url) = change(&service, &caller.app.app_id, body.sent).await?;
    Ok(HttpResponse::Ok().json(RegisterWebhookResponse { success: true, data: WebhookSetting { api_type, webhook_url } }))
}

/// Registers or removes what was sent.
///
/// # Errors
/// As [`register`].
pub async fn change(service: &Service, app: &AppId, sent: Sent) -> Result<(ApiType, Option<WebhookUrl>), ApiError> {
    let asked: RegisterWebhookRequest = sent.request(service.rules.urls.at(service.clock.now()))?;
    let (api_type, url) = (asked.api_type, asked.webhook_url.0);
    service.store.set_webhook_url(app.clone(), api_type, url.clone()).await?.ok_or(ServiceError::Unauthorized)?;
    tracing::info!(app.id = %app, webhook.api_type = %api_type, webhook.removed = url.is_none(), "webhook URL changed");
    Ok((api_type, url))
}

/// Lists what the calling app has registered.
///
/// # Errors
/// 401 and 503 of the error table.
#[utoipa::path(
    get, path = "/api/v1/user/webhook", tag = "Webhook configuration", operation_id = "registered_webhooks",
    responses((status = 200, body = WebhookSettings, description = "An entry for each API type that has a URL.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn list(Authenticated(caller): Authenticated, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let urls = service.store.webhook_urls(caller.app.app_id.clone()).await?.ok_or(ServiceError::Unauthorized)?;
    let data = urls.iter().map(|(api_type, url)| WebhookSetting { api_type, webhook_url: Some(url.clone()) }).collect();
    Ok(HttpResponse::Ok().json(WebhookSettings { success: true, data }))
}
