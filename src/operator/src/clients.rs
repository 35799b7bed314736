//! `/admin/v1/clients`

use actix_web::web::Json;
use sakshi_domain::ids::ClientId;
use sakshi_domain::tenancy::Client;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::tenancy::{ClientsPage, CreateClientRequest, CreateClientResponse};

use super::arguments::{Asked, Paged};
use super::bearer::Operator;

pub(super) async fn create(
    Operator(deps): Operator,
    Asked(asked): Asked<CreateClientRequest>,
) -> Result<Json<CreateClientResponse>, ApiError> {
    let client_id = ClientId::generate();
    let client = Client { client_id: client_id.clone(), name: asked.name.0.0, created_at: deps.clock.now() };
    deps.store.create_client(client).await?;
    tracing::info!(client.id = %client_id, "client created");
    Ok(Json(CreateClientResponse { client_id }))
}

pub(super) async fn list(Operator(deps): Operator, Paged(page): Paged) -> Result<Json<ClientsPage>, ApiError> {
    let found = deps.store.list_clients(page).await?;
    let clients = found.items.into_iter().map(Into::into).collect();
    Ok(Json(ClientsPage { page: page.page, page_size: page.page_size, total: found.total, clients }))
}
