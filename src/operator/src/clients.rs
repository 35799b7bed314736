//! `/admin/v1/clients` and `/admin/v1/clients/{client_id}`

use actix_web::web::Json;
use actix_web::{HttpMessage as _, HttpRequest};
use sakshi_domain::client_log::Action;
use sakshi_domain::ids::ClientId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::operator::Role;
use sakshi_domain::tenancy::{Client, ClientPatch};
use sakshi_service::ServiceError;
use sakshi_store::PageRequest;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::tenancy::{
    ClientResponse, ClientsPage, CreateClientRequest, CreateClientResponse, PatchClientRequest,
};

use super::arguments::{Id, Paged, RequestBody};
use super::bearer::{Caller, Operator};
use super::users::log;

const DAY_SECONDS: u64 = 24 * 3_600;

pub(super) async fn create(
    Operator(deps): Operator,
    RequestBody(body): RequestBody<CreateClientRequest>,
) -> Result<Json<CreateClientResponse>, ApiError> {
    let client_id = ClientId::generate();
    let client = Client::new(client_id.clone(), body.name.0.0, deps.clock.now());
    deps.store.create_client(client).await?;
    tracing::info!(client.id = %client_id, "client created");
    Ok(Json(CreateClientResponse { client_id }))
}

pub(super) async fn list(Operator(deps): Operator, paged: Paged) -> Result<Json<ClientsPage>, ApiError> {
    let list = deps.store.list_clients(paged.page).await?;
    let clients = list.items.into_iter().map(Into::into).collect();
    let PageRequest { page, page_size } = paged.page;
    Ok(Json(ClientsPage { page, page_size, total: list.total, clients, next: paged.next(list.total) }))
}

pub(super) async fn show(Operator(deps): Operator, Id(id): Id<ClientId>) -> Result<Json<ClientResponse>, ApiError> {
    let client = deps.store.load_client(id).await?.ok_or(ServiceError::NotFound("client"))?;
    Ok(Json(client.into()))
}

pub(super) async fn patch(
    Operator(deps): Operator,
    Id(id): Id<ClientId>,
    request: HttpRequest,
    RequestBody(body): RequestBody<PatchClientRequest>,
) -> Result<Json<ClientResponse>, ApiError> {
    let patch = body.patch();
    // Limits, retention and the ways into the portal are decisions of owners.
    let only_suspends = patch == ClientPatch { suspended: patch.suspended, ..ClientPatch::default() };
    let role = request.extensions().get::<Caller>().map(|caller| caller.role);
    if !only_suspends && role != Some(Role::Owner) {
        return Err(ApiError::Forbidden);
    }
    let mut invalid = Invalid::none();
    for (field, value, max) in [
        ("result_ttl_s", patch.result_ttl_s, deps.retention_max.result_ttl.as_secs()),
        (
            "registration_ttl_days",
            patch.registration_ttl_days,
            deps.retention_max.registration_ttl.as_secs() / DAY_SECONDS,
        ),
    ] {
        if value.flatten().is_some_and(|value| u64::from(value.get()) > max) {
            invalid.add(field, format!("must be at most {max}, as the settings say"));
        }
    }
    invalid.or_ok()?;
    let sign_in = patch.portal_key_sign_in;
    let changed = deps.store.patch_client(id, patch, deps.clock.now()).await?;
    let client = changed.ok_or(ServiceError::NotFound("client"))?;
    if let Some(is_allowed) = sign_in {
        let action = if is_allowed { Action::KeySignInAllowed } else { Action::KeySignInRefused };
        log(&deps, &request, client.client_id.clone(), action, None).await?;
    }
    tracing::info!(client.id = %client.client_id, client.is_suspended = client.suspended_at.is_some(),
        "client changed");
    Ok(Json(client.into()))
}
