//! `/admin/v1/clients/{client_id}/credits`, its statement, and the audit of all ledgers.

use actix_web::{HttpRequest, HttpResponse, web};
use sakshi_api::credits::{Balance, Statement};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::ClientId;
use sakshi_domain::limits::{CLIENT_REFERENCE_CHARS_MAX, CREDITS_PER_MOVE_MAX};
use sakshi_service::error::ServiceError;
use sakshi_store::CreditOutcome;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, Problem, one_of, words};
use sakshi_web::json::Json;
use sakshi_web::query::page_of;
use serde_json::json;

use super::bearer::Operator;
use super::fields;

/// Reads a movement of credits; a grant unless it says otherwise.
fn movement(mut fields: Fields) -> Result<CreditMove, ApiError> {
    let kind = fields.optional("kind", one_of([("grant", EntryKind::Grant), ("adjust", EntryKind::Adjust)])).unwrap_or(EntryKind::Grant);
    let amount = fields.required("amount", |value| amount(value, kind));
    let reference = fields.required("reference", words(CLIENT_REFERENCE_CHARS_MAX));
    fields.finish(amount.zip(reference).map(|(amount, reference)| CreditMove { kind, amount, reference }))
}

fn amount(value: &Json, kind: EntryKind) -> Result<i64, Problem> {
    let amount = if let Json::Whole(amount) = value { i64::try_from(*amount).unwrap_or(0) } else { 0 };
    let least = if kind == EntryKind::Adjust { i64::MIN } else { 1 };
    if amount >= least && (1..=CREDITS_PER_MOVE_MAX).contains(&amount.unsigned_abs()) {
        return Ok(amount);
    }
    Err(format!("must be a whole number from 1 to {CREDITS_PER_MOVE_MAX}, or below zero for an adjustment").into())
}

pub(super) async fn change(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let client: ClientId = fields::id(&path, "client")?;
    let movement = movement(body.fields)?;
    match deps.credits.move_credits(client.clone(), movement).await? {
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
    Ok(Balance::answer(balance))
}

pub(super) async fn statement(operator: Operator, path: web::Path<String>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let page = page_of(request.query_string())?;
    let store = &operator.0.store;
    let (client, _) = fields::known_client(store.as_ref(), &path).await?;
    let found = store.statement(client, page).await?;
    Ok(Statement::answer(page, found))
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
