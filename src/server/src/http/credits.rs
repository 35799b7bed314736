//! `GET /api/v1/credits` and `/api/v1/credits/statement`: a client looks at its own ledger.
//!
//! The operator sees the same rows through the same answers.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::credits::LedgerEntry;
use sakshi_store::{Page, PageRequest};
use serde::Serialize;

use super::caller::Caller;
use super::error::ApiError;
use super::query::{Query, page_of};
use crate::service::Service;

/// What a client has left.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Balance {
    /// Credits; a verification costs one.
    balance: u64,
}

impl Balance {
    /// The answer.
    #[must_use]
    pub fn answer(balance: u64) -> HttpResponse {
        HttpResponse::Ok().json(Self { balance })
    }
}

/// One page of a ledger, oldest entry first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Statement {
    /// The page, from 1.
    page: u32,
    /// Entries of a full page.
    page_size: u32,
    /// Entries on all pages.
    total: u64,
    /// The entries.
    #[schema(value_type = Vec<super::schema::StatementEntry>)]
    entries: Vec<LedgerEntry>,
}

impl Statement {
    /// The answer.
    #[must_use]
    pub fn answer(page: PageRequest, found: Page<LedgerEntry>) -> HttpResponse {
        let PageRequest { page, page_size } = page;
        HttpResponse::Ok().json(Self { page, page_size, total: found.total, entries: found.items })
    }
}

/// Tells how many credits the client has left; all its apps draw on them.
///
/// # Errors
/// 401 and 503 of the error table.
#[utoipa::path(
    get, path = "/api/v1/credits", tag = "Credits", operation_id = "credit_balance",
    responses((status = 200, body = Balance, description = "The balance.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn balance(caller: Caller, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    Query::of(request.query_string()).finish()?;
    let balance = service.store.balance(caller.client).await?.ok_or(ApiError::NotFound("client"))?;
    Ok(Balance::answer(balance))
}

/// Lists every movement of the client's credits, oldest first.
///
/// # Errors
/// 400, 401 and 503 of the error table.
#[utoipa::path(
    get, path = "/api/v1/credits/statement", tag = "Credits", operation_id = "credit_statement",
    params(("page" = Option<u32>, Query, minimum = 1, description = "From 1; default 1."),
           ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Entries of a page; default 20.")),
    responses((status = 200, body = Statement, description = "The page; beyond the last one it has no entries.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn statement(caller: Caller, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let page = page_of(request.query_string())?;
    let found = service.store.statement(caller.client, page).await?;
    Ok(Statement::answer(page, found))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::live::LiveNode;

    #[actix_rt::test]
    async fn a_client_reads_its_own_balance_and_statement_and_the_operator_the_same_rows() {
        let live = LiveNode::start().await;
        assert_eq!(live.get("/api/v1/credits").await, (200, json!({ "balance": 1_000 })));
        let init = json!({ "claims": ["name"], "channel": "qr" });
        let (_, opened) = live.post("/api/v1/nationalid-ovse/init", &init).await;
        assert_eq!(live.get("/api/v1/credits").await.1, json!({ "balance": 999 }));

        let (status, page) = live.get("/api/v1/credits/statement?page=2&page_size=1").await;
        let mut entry = page["entries"][0].clone();
        assert!(entry["at"].take().is_string());
        let debit = json!({ "seq": 2, "kind": "debit", "amount": 1, "balance_after": 999, "reference": opened["txnId"], "at": null });
        assert_eq!((status, &page["page"], &page["page_size"], &page["total"]), (200, &json!(2), &json!(1), &json!(2)));
        assert_eq!((entry, page["entries"].as_array().map(Vec::len)), (debit, Some(1)));

        let seen = live.get("/api/v1/credits/statement").await.1;
        let client = live.first.client.clone();
        assert_eq!(live.admin(&format!("/admin/v1/clients/{client}/statement")).await, (200, seen));
        assert_eq!(live.admin(&format!("/admin/v1/clients/{client}/credits")).await, (200, json!({ "balance": 999 })));
        live.stop().await;
    }

    #[actix_rt::test]
    async fn credits_are_shown_to_nobody_else_and_a_bad_page_is_a_400() {
        let live = LiveNode::start().await;
        for path in ["/api/v1/credits", "/api/v1/credits/statement"] {
            let (status, refused) = live.stranger(path).await;
            assert_eq!((status, &refused["code"]), (401, &json!("unauthorized")), "{path}");
        }
        for (path, field) in [("/api/v1/credits?page=1", "page"), ("/api/v1/credits/statement?page_size=101", "page_size")] {
            let (status, refused) = live.get(path).await;
            assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!(field)), "{path}");
        }
        live.stop().await;
    }
}
