//! `/admin/v1/clients/{client_id}/export` and `/admin/v1/clients/import`: one client at several installations
//! (specification, "Authentication" 3).

use actix_web::web::Json;
use sakshi_domain::client_transfer::{ClientTransfer, ImportOutcome};
use sakshi_domain::ids::ClientId;
use sakshi_domain::limits::{TRANSFERRED_APPS_MAX, TRANSFERRED_KEYS_MAX};
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::transfer::{ExportedClient, ImportClientResponse};

use super::arguments::{Id, RequestBody};
use super::bearer::Operator;

pub(super) const TOO_LARGE: ServiceError = ServiceError::Conflict {
    code: "client_too_large",
    message: "The client has more than 100 apps or 500 keys, which is more than an import takes.",
};

pub(super) async fn export(Operator(deps): Operator, Id(id): Id<ClientId>) -> Result<Json<ExportedClient>, ApiError> {
    let transfer = deps.store.export_client(id).await?.ok_or(ServiceError::NotFound("client"))?;
    // Every import would refuse such an export.
    if transfer.apps.len() > TRANSFERRED_APPS_MAX || transfer.keys.len() > TRANSFERRED_KEYS_MAX {
        return Err(TOO_LARGE.into());
    }
    tracing::info!(client.id = %transfer.client.client_id, "client exported");
    Ok(Json(transfer.into()))
}

pub(super) async fn import(
    Operator(deps): Operator,
    RequestBody(body): RequestBody<ExportedClient>,
) -> Result<Json<ImportClientResponse>, ApiError> {
    let transfer = ClientTransfer::from(body);
    transfer.check()?;
    let client_id = transfer.client.client_id.clone();
    let records = deps.store.import_client(transfer, deps.clock.now()).await??;
    let changed = records.iter().filter(|record| record.outcome != ImportOutcome::Unchanged).count();
    tracing::info!(client.id = %client_id, import.records = records.len(), import.changed = changed, "client imported");
    Ok(Json(ImportClientResponse { client_id, records: records.into_iter().map(Into::into).collect() }))
}
