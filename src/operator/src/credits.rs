//! `/admin/v1/clients/{client_id}/credits`, its statement, and the audit of all ledgers.

use actix_web::{HttpRequest, HttpResponse, web};
use sakshi_domain::ids::ClientId;
use sakshi_service::error::ServiceError;
use sakshi_store::CreditOutcome;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::query::page_of;
use sakshi_wire::credits::{Balance, Statement};
use sakshi_wire::operator::MoveCreditsRequest;
use serde_json::json;

use super::bearer::Operator;
use super::fields;

pub(super) async fn change(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let client: ClientId = fields::id(&path, "client")?;
    let asked: MoveCreditsRequest = body.sent.request(deps.urls.at(deps.clock.now()))?;
    match deps.credits.move_credits(client.clone(), asked.movement()).await? {
        CreditOutcome::Moved(entry) => {
            let balance = deps.store.balance(client.clone()).await?.ok_or(ServiceError::NotFound("client"))?;
            tracing::info!(client.id = %client, entry.kind = entry.kind.as_str(), entry.amount = entry.amount, "credits moved");
            Ok(HttpResponse::Ok().json(json!({ "balance": balance, "entry": entry })))
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

pub(super) async fn balance(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (_, balance) = fields::known_client(operator.0.store.as_ref(), &path).await?;
    Ok(HttpResponse::Ok().json(Balance { balance }))
}

pub(super) async fn statement(operator: Operator, path: web::Path<String>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let page = page_of(request.query_string())?;
    let store = &operator.0.store;
    let (client, _) = fields::known_client(store.as_ref(), &path).await?;
    let found = store.statement(client, page).await?;
    Ok(HttpResponse::Ok().json(Statement::new(page.page, page.page_size, found.total, found.items)))
}

pub(super) async fn audit(operator: Operator) -> Result<HttpResponse, ApiError> {
    let audits = operator.0.store.audit().await?;
    let clean = audits.iter().all(sakshi_store::Audit::is_clean);
    let row = |audit: &sakshi_store::Audit| {
        json!({ "client_id": audit.client, "balance": audit.balance, "sum": audit.sum,
            "entries": audit.entries, "faults": audit.faults, "clean": audit.is_clean() })
    };
    Ok(HttpResponse::Ok().json(json!({ "clean": clean, "clients": audits.iter().map(row).collect::<Vec<_>>() })))
}
