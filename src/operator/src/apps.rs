//! `/admin/v1/clients/{client_id}/apps` and `/admin/v1/apps/{app_id}`

use actix_web::{HttpResponse, web};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::{App, KeyCase};
use sakshi_service::error::ServiceError;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::{CreateAppRequest, PatchAppRequest};
use serde_json::json;

use super::bearer::Operator;
use super::fields;

pub(super) async fn create(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let client_id: ClientId = fields::id(&path, "client")?;
    let asked: CreateAppRequest = body.sent.request(deps.urls.at(deps.clock.now()))?;
    let app = App {
        app_id: AppId::generate(),
        client_id,
        name: asked.name.0.0,
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

pub(super) async fn patch(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let id: AppId = fields::id(&path, "app")?;
    let asked: PatchAppRequest = body.sent.request(deps.urls.at(deps.clock.now()))?;
    let app = deps.store.patch_app(id, asked.patch()).await?.ok_or(ServiceError::NotFound("app"))?;
    tracing::info!(app.id = %app.app_id, "app changed");
    Ok(HttpResponse::Ok().json(app))
}
