//! `/admin/v1/clients`

use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::ids::ClientId;
use sakshi_domain::tenancy::Client;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::query::page_of;
use sakshi_wire::operator::CreateClientRequest;
use serde_json::json;

use super::bearer::Operator;

pub(super) async fn create(operator: Operator, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let asked: CreateClientRequest = body.sent.request(deps.urls.at(deps.clock.now()))?;
    let client = Client { client_id: ClientId::generate(), name: asked.name.0.0, created_at: deps.clock.now() };
    let id = client.client_id.clone();
    deps.store.create_client(client).await?;
    tracing::info!(client.id = %id, "client created");
    Ok(HttpResponse::Ok().json(json!({ "client_id": id })))
}

pub(super) async fn list(operator: Operator, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let page = page_of(request.query_string())?;
    let found = operator.0.store.list_clients(page).await?;
    let body = json!({ "page": page.page, "page_size": page.page_size, "total": found.total, "clients": found.items });
    Ok(HttpResponse::Ok().json(body))
}
