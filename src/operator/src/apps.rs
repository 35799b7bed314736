//! `/admin/v1/clients/{client_id}/apps` and `/admin/v1/apps/{app_id}`

use actix_web::{HttpResponse, web};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::{App, AppPatch, KeyCase};
use sakshi_service::error::ServiceError;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, one_of};
use sakshi_web::terms::webhook;
use serde_json::json;

use super::bearer::Operator;
use super::fields;

pub(super) async fn create(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let client_id: ClientId = fields::id(&path, "client")?;
    let name = fields::name(body)?;
    let app = App {
        app_id: AppId::generate(),
        client_id,
        name,
        payload_spelling: KeyCase::default(),
        consent_webhook_url: None,
        data_webhook_url: None,
        historical_webhook_url: None,
        created_at: deps.clock.now(),
    };
    let id = app.app_id.clone();
    if !deps.store.create_app(app).await? {
        return Err(ApiError::Service(ServiceError::NotFound("client")));
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
    app.map(|app| HttpResponse::Ok().json(app)).ok_or(ApiError::Service(ServiceError::NotFound("app")))
}

/// Absent fields stay as they are; `null` removes a URL.
fn change(mut fields: Fields, addresses: UrlPolicy) -> Result<AppPatch, ApiError> {
    let spellings = [("snake_case", KeyCase::SnakeCase), ("camelCase", KeyCase::CamelCase)];
    let patch = AppPatch {
        payload_spelling: fields.changed("payload_spelling", one_of(spellings)),
        consent_webhook_url: fields.replaced("consent_webhook_url", webhook(addresses)),
        data_webhook_url: fields.replaced("data_webhook_url", webhook(addresses)),
        historical_webhook_url: fields.replaced("historical_webhook_url", webhook(addresses)),
    };
    fields.finish(Some(patch))
}

pub(super) async fn patch(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let id: AppId = fields::id(&path, "app")?;
    let patch = change(body.fields, deps.urls)?;
    let app = deps.store.patch_app(id, patch).await?.ok_or(ServiceError::NotFound("app"))?;
    tracing::info!(app.id = %app.app_id, "app changed");
    Ok(HttpResponse::Ok().json(app))
}
