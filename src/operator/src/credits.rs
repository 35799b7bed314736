//! `/admin/v1/clients/{client_id}/credits`, its statement, and the audit of all ledgers.

use actix_web::HttpRequest;
use actix_web::web::Json;
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_service::ServiceError;
use sakshi_store::{Audit, CreditOutcome, PageRequest, Store};
use sakshi_web::error::ApiError;
use sakshi_wire::credits::{Balance, Statement};
use sakshi_wire::operator::credits::{AuditResponse, AuditedClient, MoveCreditsRequest, MoveCreditsResponse};

use super::arguments::{Id, Paged, RequestBody};
use super::bearer::Operator;
use super::{InternalDeps, grants};

pub(super) const REFERENCE_REUSED: ServiceError = ServiceError::Conflict {
    code: "reference_reused",
    message: "This reference was used for another amount; use a new one.",
};
const OUT_OF_RANGE: ServiceError = ServiceError::Conflict {
    code: "balance_out_of_range",
    message: "The balance would be negative or too large to count.",
};

/// Grants or corrects credits, or stores the movement for a second operator to confirm.
pub(super) async fn change(
    Operator(deps): Operator,
    request: HttpRequest,
    Id(client): Id<ClientId>,
    RequestBody(body): RequestBody<MoveCreditsRequest>,
) -> Result<Json<MoveCreditsResponse>, ApiError> {
    let movement = body.movement();
    if grants::needs_second_person(&deps, &client, &movement).await? {
        return grants::request_movement(&deps, &request, client, movement).await;
    }
    move_credits(&deps, client, movement).await
}

/// Moves credits through the ledger.
pub(super) async fn move_credits(
    deps: &InternalDeps,
    client: ClientId,
    movement: CreditMove,
) -> Result<Json<MoveCreditsResponse>, ApiError> {
    match deps.credits.move_credits(client.clone(), movement).await? {
        CreditOutcome::Moved(entry) => {
            let balance = balance_of(&deps.store, &client).await?;
            tracing::info!(client.id = %client, entry.kind = entry.kind.as_str(), entry.amount = entry.amount,
                "credits moved");
            Ok(Json(MoveCreditsResponse { balance, entry: Some(entry.into()), request: None }))
        }
        CreditOutcome::ReferenceReused => Err(REFERENCE_REUSED.into()),
        CreditOutcome::OutOfRange => Err(OUT_OF_RANGE.into()),
        CreditOutcome::NotFound => Err(ServiceError::NotFound("client").into()),
    }
}

pub(super) async fn balance(Operator(deps): Operator, Id(client): Id<ClientId>) -> Result<Json<Balance>, ApiError> {
    Ok(Json(Balance { balance: balance_of(&deps.store, &client).await? }))
}

/// Fails with 404 if a client does not exist.
pub(super) async fn require_client(store: &Store, client: &ClientId) -> Result<(), ApiError> {
    balance_of(store, client).await.map(drop)
}

/// Returns the balance of a client; fails with 404 if it does not exist.
pub(super) async fn balance_of(store: &Store, client: &ClientId) -> Result<u64, ApiError> {
    Ok(store.balance(client.clone()).await?.ok_or(ServiceError::NotFound("client"))?)
}

pub(super) async fn statement(
    Operator(deps): Operator,
    Id(client): Id<ClientId>,
    paged: Paged,
) -> Result<Json<Statement>, ApiError> {
    require_client(&deps.store, &client).await?;
    let entries = deps.store.statement(client, paged.page).await?;
    let (PageRequest { page, page_size }, next) = (paged.page, paged.next(entries.total));
    Ok(Json(Statement::new(page, page_size, entries.total, entries.items, next)))
}

/// Recomputes the balance of every client from its ledger.
pub(super) async fn audit(Operator(deps): Operator) -> Result<Json<AuditResponse>, ApiError> {
    let audited_client = |audit: Audit| {
        let clean = audit.is_clean();
        let Audit { client, balance, sum, entries, faults } = audit;
        AuditedClient { client_id: client, balance, sum, entries, faults, clean }
    };
    let clients: Vec<AuditedClient> = deps.store.audit().await?.into_iter().map(audited_client).collect();
    Ok(Json(AuditResponse { clean: clients.iter().all(|client| client.clean), clients }))
}
