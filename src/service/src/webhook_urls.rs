//! Use cases of the registered URLs for the webhooks of an app's flows.
//!
//! No actor has a copy of them: a registered URL applies to the next report on every node.

use sakshi_domain::ids::AppId;
use sakshi_wire::ReceivedObject;
use sakshi_wire::webhook_urls::{RegisterWebhookRequest, WebhookSetting};

use crate::{Service, ServiceError};

/// Registers or removes the URL for one API type.
///
/// # Errors
/// [`ServiceError::Invalid`] with every field that is not acceptable; [`ServiceError::Unauthorized`] without such an
/// app.
pub async fn register_webhook(
    service: &Service,
    app: &AppId,
    body: ReceivedObject,
) -> Result<WebhookSetting, ServiceError> {
    let request: RegisterWebhookRequest = body.into_request(service.request_context())?;
    let (api_type, webhook_url) = (request.api_type, request.webhook_url.0);
    service
        .store
        .set_webhook_url(app.clone(), api_type, webhook_url.clone())
        .await?
        .ok_or(ServiceError::Unauthorized)?;
    tracing::info!(app.id = %app, webhook.api_type = %api_type, webhook.removed = webhook_url.is_none(),
        "webhook URL changed");
    Ok(WebhookSetting { api_type, webhook_url })
}
