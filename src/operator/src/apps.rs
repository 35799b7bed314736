//! `/admin/v1/clients/{client_id}/apps` and `/admin/v1/apps/{app_id}`

use actix_web::HttpRequest;
use actix_web::web::Json;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::{App, KeyCase};
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::tenancy::{AppResponse, AppsResponse, CreateAppRequest, CreateAppResponse, PatchAppRequest};

use super::arguments::{Id, RequestBody};
use super::bearer::{Operator, is_owner};
use super::credits::require_client;

pub(super) async fn create(
    Operator(deps): Operator,
    Id(client_id): Id<ClientId>,
    RequestBody(body): RequestBody<CreateAppRequest>,
) -> Result<Json<CreateAppResponse>, ApiError> {
    let app = App {
        app_id: AppId::generate(),
        client_id,
        name: body.name.0.0,
        payload_spelling: KeyCase::default(),
        evidence: false,
        consent_webhook_url: None,
        data_webhook_url: None,
        historical_webhook_url: None,
        created_at: deps.clock.now(),
    };
    let app_id = app.app_id.clone();
    if !deps.store.create_app(app).await? {
        return Err(ServiceError::NotFound("client").into());
    }
    tracing::info!(app.id = %app_id, "app created");
    Ok(Json(CreateAppResponse { app_id }))
}

pub(super) async fn list(
    Operator(deps): Operator,
    request: HttpRequest,
    Id(client): Id<ClientId>,
) -> Result<Json<AppsResponse>, ApiError> {
    require_client(&deps.store, &client).await?;
    let apps = deps.store.list_apps(client).await?;
    Ok(Json(AppsResponse { apps: apps.into_iter().map(|app| visible_to_caller(app, &request)).collect() }))
}

pub(super) async fn show(
    Operator(deps): Operator,
    request: HttpRequest,
    Id(app): Id<AppId>,
) -> Result<Json<AppResponse>, ApiError> {
    let app = deps.store.load_app(app).await?;
    Ok(Json(visible_to_caller(app.ok_or(ServiceError::NotFound("app"))?, &request)))
}

/// Returns the fields of an app that the caller may see. Paths and queries of URLs often contain secrets.
fn visible_to_caller(app: App, request: &HttpRequest) -> AppResponse {
    let app = AppResponse::from(app);
    if is_owner(request) { app } else { app.without_paths() }
}

pub(super) async fn patch(
    Operator(deps): Operator,
    Id(id): Id<AppId>,
    RequestBody(body): RequestBody<PatchAppRequest>,
) -> Result<Json<AppResponse>, ApiError> {
    let app = deps.store.patch_app(id, body.patch()).await?.ok_or(ServiceError::NotFound("app"))?;
    tracing::info!(app.id = %app.app_id, "app changed");
    Ok(Json(app.into()))
}
