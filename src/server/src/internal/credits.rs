//! `/admin/v1/clients/{client_id}/credits`, its statement, and the audit of all ledgers.

use actix_web::{HttpRequest, HttpResponse, web};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::ClientId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::CREDITS_PER_MOVE_MAX;
use sakshi_store::CreditOutcome;
use serde::Deserialize;
use serde_json::json;

use super::fields;
use super::operator::Operator;
use crate::http::body::Body;
use crate::http::credits::{Balance, Statement};
use crate::http::error::ApiError;
use crate::http::query::page_of;

#[derive(Debug, Deserialize)]
pub(super) struct Movement {
    kind: Option<String>,
    amount: Option<i64>,
    reference: Option<String>,
}

impl Movement {
    fn checked(self) -> Result<CreditMove, ApiError> {
        let mut invalid = Invalid::none();
        let kind = match self.kind.as_deref() {
            None | Some("grant") => Ok(EntryKind::Grant),
            Some("adjust") => Ok(EntryKind::Adjust),
            Some(_) => Err("must be grant or adjust"),
        };
        let kind = invalid.check("kind", kind);
        let amount = self.amount.unwrap_or(0);
        let good = match kind {
            Some(EntryKind::Adjust) => amount != 0 && amount.unsigned_abs() <= CREDITS_PER_MOVE_MAX,
            _ => u64::try_from(amount).is_ok_and(|amount| (1..=CREDITS_PER_MOVE_MAX).contains(&amount)),
        };
        if !good {
            invalid.add("amount", "must be a whole number from 1 to 1000000000000, or below zero for an adjustment");
        }
        let reference = fields::reference(&mut invalid, self.reference);
        invalid.or_ok()?;
        let (Some(kind), Some(reference)) = (kind, reference) else { return Err(fields::incomplete()) };
        Ok(CreditMove { kind, amount, reference })
    }
}

pub(super) async fn change(operator: Operator, path: web::Path<String>, body: Body<Movement>) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let client: ClientId = fields::id(&path, "client")?;
    let movement = body.value.checked()?;
    match deps.credits.move_credits(client.clone(), movement).await? {
        CreditOutcome::Moved(entry) => {
            let balance = deps.store.balance(client.clone()).await?.ok_or(ApiError::NotFound("client"))?;
            tracing::info!(client.id = %client, entry.kind = entry.kind.as_str(), entry.amount = entry.amount, "credits moved");
            Ok(HttpResponse::Ok().json(json!({ "balance": balance, "entry": entry })))
        }
        CreditOutcome::ReferenceReused => {
            Err(ApiError::Conflict { code: "reference_reused", message: "This reference came before with another amount; use a new one." })
        }
        CreditOutcome::OutOfRange => {
            Err(ApiError::Conflict { code: "balance_out_of_range", message: "The balance would be negative or too large to count." })
        }
        CreditOutcome::NotFound => Err(ApiError::NotFound("client")),
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
