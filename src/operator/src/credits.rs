//! `/admin/v1/clients/{client_id}/credits`, its statement, and the audit of all ledgers.

use actix_web::HttpRequest;
use actix_web::web::{Json, Path};
use sakshi_domain::ids::ClientId;
use sakshi_service::ServiceError;
use sakshi_store::{Audit, CreditOutcome};
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::query::page_of;
use sakshi_wire::credits::{Balance, Statement};
use sakshi_wire::operator::credits::{AuditResponse, AuditedClient, MoveCreditsRequest, MoveCreditsResponse};

use super::bearer::Operator;
use super::fields;

pub(super) async fn change(Operator(deps): Operator, path: Path<String>, body: Body) -> Result<Json<MoveCreditsResponse>, ApiError> {
    let client: ClientId = fields::id(&path, "client")?;
    let asked: MoveCreditsRequest = body.sent.request(deps.urls.at(deps.clock.now()))?;
    match deps.credits.move_credits(client.clone(), asked.movement()).await? {
        CreditOutcome::Moved(entry) => {
            let balance = deps.store.balance(client.clone()).await?.ok_or(ServiceError::NotFound("client"))?;
            tracing::info!(client.id = %client, entry.kind = entry.kind.as_str(), entry.amount = entry.amount, "credits moved");
            Ok(Json(MoveCreditsResponse { balance, entry: entry.into() }))
        }
        CreditOutcome::ReferenceReused => Err(ApiError::Service(ServiceError::Conflict {
            code: "reference_reused",
            message: "This reference came before with another amount; use a new one.",
        })),
        CreditOutcome::OutOfRange => Err(ApiError::Service(ServiceError::Conflict {
            code: "balance_out_of_range",
            message: "The balance would be negative or too large to count.",
        })),
        CreditOutcome::NotFound => Err(ApiError::Service(ServiceError::NotFound("client"))),
    }
}

pub(super) async fn balance(Operator(deps): Operator, path: Path<String>) -> Result<Json<Balance>, ApiError> {
    let (_, balance) = fields::known_client(deps.store.as_ref(), &path).await?;
    Ok(Json(Balance { balance }))
}

pub(super) async fn statement(Operator(deps): Operator, path: Path<String>, request: HttpRequest) -> Result<Json<Statement>, ApiError> {
    let page = page_of(request.query_string())?;
    let (client, _) = fields::known_client(deps.store.as_ref(), &path).await?;
    let found = deps.store.statement(client, page).await?;
    Ok(Json(Statement::new(page.page, page.page_size, found.total, found.items)))
}

pub(super) async fn audit(Operator(deps): Operator) -> Result<Json<AuditResponse>, ApiError> {
    let row = |audit: Audit| {
        let clean = audit.is_clean();
        let Audit { client, balance, sum, entries, faults } = audit;
        AuditedClient { client_id: client, balance, sum, entries, faults, clean }
    };
    let clients: Vec<AuditedClient> = deps.store.audit().await?.into_iter().map(row).collect();
    Ok(Json(AuditResponse { clean: clients.iter().all(|client| client.clean), clients }))
}
