//! `/admin/v1/clients/{client_id}/apps` and `/admin/v1/apps/{app_id}`

use actix_web::{HttpResponse, web};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::tenancy::{App, AppPatch, Spelling};
use sakshi_domain::web_address::{Schemes, WebAddress};
use serde::Deserialize;
use serde_json::json;

use super::clients::Named;
use super::fields;
use super::operator::Operator;
use crate::http::body::Body;
use crate::http::error::ApiError;

pub(super) async fn create(operator: Operator, path: web::Path<String>, body: Body<Named>) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let client_id: ClientId = fields::id(&path, "client")?;
    let mut invalid = Invalid::none();
    let name = fields::label(&mut invalid, "name", body.value.name);
    invalid.or_ok()?;
    let app = App {
        app_id: AppId::generate(),
        client_id,
        name: name.ok_or_else(fields::incomplete)?,
        payload_spelling: Spelling::default(),
        consent_webhook_url: None,
        data_webhook_url: None,
        historical_webhook_url: None,
        created_at: deps.clock.now(),
    };
    let id = app.app_id.clone();
    if !deps.store.create_app(app).await? {
        return Err(ApiError::NotFound("client"));
    }
    tracing::info!(app.id = %id, "app created");
    Ok(HttpResponse::Ok().json(json!({ "app_id": id })))
}

pub(super) async fn list(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let store = &operator.0.store;
    let (client, _) = fields::known_client(store.as_ref(), &path).await?;
    Ok(HttpResponse::Ok().json(json!({ "apps": store.list_apps(client).await? })))
}

pub(super) async fn show(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let app = operator.0.store.load_app(fields::id(&path, "app")?).await?;
    app.map(|app| HttpResponse::Ok().json(app)).ok_or(ApiError::NotFound("app"))
}

/// Absent fields stay as they are; `null` removes a URL.
#[derive(Debug, Deserialize)]
pub(super) struct Change {
    #[serde(alias = "payloadSpelling")]
    payload_spelling: Option<String>,
    #[serde(default, alias = "consentWebhookUrl", deserialize_with = "fields::nullable")]
    consent_webhook_url: Option<Option<String>>,
    #[serde(default, alias = "dataWebhookUrl", deserialize_with = "fields::nullable")]
    data_webhook_url: Option<Option<String>>,
    #[serde(default, alias = "historicalWebhookUrl", deserialize_with = "fields::nullable")]
    historical_webhook_url: Option<Option<String>>,
}

impl Change {
    fn checked(self, schemes: Schemes) -> Result<AppPatch, Invalid> {
        let mut invalid = Invalid::none();
        let spelling = self.payload_spelling.and_then(|word| {
            let known = match word.as_str() {
                "snake_case" => Ok(Spelling::SnakeCase),
                "camelCase" => Ok(Spelling::CamelCase),
                _ => Err("must be snake_case or camelCase"),
            };
            invalid.check("payload_spelling", known)
        });
        let mut url = |field: &str, text: Option<Option<String>>| -> Option<Option<WebAddress>> {
            match text? {
                None => Some(None),
                Some(text) => invalid.check(field, WebAddress::parse(&text, schemes)).map(Some),
            }
        };
        let patch = AppPatch {
            payload_spelling: spelling,
            consent_webhook_url: url("consent_webhook_url", self.consent_webhook_url),
            data_webhook_url: url("data_webhook_url", self.data_webhook_url),
            historical_webhook_url: url("historical_webhook_url", self.historical_webhook_url),
        };
        invalid.or_ok().map(|()| patch)
    }
}

pub(super) async fn patch(operator: Operator, path: web::Path<String>, body: Body<Change>) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let id: AppId = fields::id(&path, "app")?;
    let patch = body.value.checked(deps.schemes)?;
    let app = deps.store.patch_app(id, patch).await?.ok_or(ApiError::NotFound("app"))?;
    tracing::info!(app.id = %app.app_id, "app changed");
    Ok(HttpResponse::Ok().json(app))
}
