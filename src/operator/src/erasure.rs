//! `POST /admin/v1/erasures`

use actix_web::web::Json;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::invalid::Invalid;
use sakshi_store::Erased;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::erasure::{EraseRequest, EraseResponse};

use super::arguments::RequestBody;
use super::bearer::Operator;

pub(super) async fn erase(
    Operator(deps): Operator,
    RequestBody(body): RequestBody<EraseRequest>,
) -> Result<Json<EraseResponse>, ApiError> {
    let EraseRequest { kind, id } = body;
    let subject = ErasureSubject::parse(kind, &id.0)
        .ok_or_else(|| Invalid::one("id", format!("must be an id of the given kind, {kind}")))?;
    let Erased { transactions, registrations, events, flows, answers, refusals, users } =
        deps.store.erase(subject).await?;
    tracing::info!(%kind, transactions, registrations, events, flows, "erased");
    Ok(Json(EraseResponse { transactions, registrations, events, flows, answers, refusals, users }))
}
