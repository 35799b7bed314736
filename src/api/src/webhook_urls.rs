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
use sakshi_domain::invalid::Invalid;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, text};
use sakshi_web::terms::webhook;
use serde::Serialize;

use crate::requests::RegisterWebhookRequest;
use crate::schema;

/// Where the webhooks of one API type go.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookSetting {
    #[schema(schema_with = schema::api_type)]
    api_type: ApiType,
    /// The URL; null when it was removed.
    #[schema(value_type = Option<String>, required = true)]
    webhook_url: Option<WebhookUrl>,
}

/// What was registered or removed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RegisterWebhookResponse {
    /// Always true.
    success: bool,
    /// The setting from now on.
    data: WebhookSetting,
}

/// Everything that is registered.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct WebhookSettings {
    /// Always true.
    success: bool,
    /// One entry for each API type that has a URL.
    data: Vec<WebhookSetting>,
}

fn read(mut fields: Fields, addresses: UrlPolicy) -> Result<(ApiType, Option<WebhookUrl>), ApiError> {
    let api_type = fields.required("apiType", text(str::parse::<ApiType>));
    let url = fields.replaced("webhookUrl", webhook(addresses));
    if url.is_none() {
        // Of two problems with one field the first is told: this one, when it was absent.
        fields.agreed::<()>(Err(Invalid::one("webhookUrl", "is required; null removes the URL")));
    }
    fields.finish(api_type.zip(url))
}

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
    let (api_type, webhook_url) = change(&service, &caller.app.app_id, body.fields).await?;
    Ok(HttpResponse::Ok().json(RegisterWebhookResponse { success: true, data: WebhookSetting { api_type, webhook_url } }))
}

/// Registers or removes what these fields say.
///
/// # Errors
/// As [`register`].
pub async fn change(service: &Service, app: &AppId, fields: Fields) -> Result<(ApiType, Option<WebhookUrl>), ApiError> {
    let (api_type, url) = read(fields, service.rules.urls)?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(body: &serde_json::Value) -> Vec<(String, String)> {
        let fields = Fields::of(body.to_string().as_bytes()).unwrap();
        match read(fields, UrlPolicy::PUBLIC) {
            Err(ApiError::Service(ServiceError::Invalid(invalid))) => {
                invalid.fields().iter().map(|problem| (problem.field.clone(), problem.message.clone())).collect()
            }
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn a_url_is_registered_or_removed_in_either_spelling() {
        for (api, url) in [("apiType", "webhookUrl"), ("api_type", "webhook_url")] {
            let body = json!({ api: "ESign", url: "https://client.example/hook" }).to_string();
            let (api_type, registered) = read(Fields::of(body.as_bytes()).unwrap(), UrlPolicy::PUBLIC).unwrap();
            assert_eq!((api_type, registered.unwrap().as_str()), (ApiType::ESign, "https://client.example/hook"));
            let body = json!({ api: "DocLocker", url: null }).to_string();
            let removed = read(Fields::of(body.as_bytes()).unwrap(), UrlPolicy::PUBLIC).unwrap();
            assert_eq!(removed, (ApiType::DocLocker, None));
        }
    }

    #[test]
    fn what_is_wrong_with_a_registration_is_told_field_by_field() {
        let (kinds, required) = ("must be one of ESign, DocLocker, RegistryEStamp, PhysicalEStamp", "is required; null removes the URL");
        let internal = "must not name a loopback, private, link-local or otherwise internal address";
        for (body, expected) in [
            (json!({}), vec![("apiType", "is required"), ("webhookUrl", required)]),
            (
                json!({"apiType": "OVSE", "webhookUrl": "http://client.example/"}),
                vec![("apiType", kinds), ("webhookUrl", "must be an https URL")],
            ),
            (json!({"apiType": 1, "webhook_url": ""}), vec![("apiType", "must be a string"), ("webhook_url", "must be an absolute URL")]),
            (json!({"apiType": "ESign", "webhookUrl": "https://10.0.0.1/"}), vec![("webhookUrl", internal)]),
            (json!({"apiType": "ESign", "webhookUrl": null, "url": null}), vec![("url", "is not a field of this request")]),
            (
                json!({"apiType": "ESign", "webhookUrl": null, "webhook_url": null}),
                vec![("webhookUrl", "is given as webhook_url too; give one of them")],
            ),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(field, message)| (field.to_owned(), message.to_owned())).collect();
            assert_eq!(told(&body), expected, "{body}");
        }
    }
}
