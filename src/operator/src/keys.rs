//! `/admin/v1/clients/{client_id}/keys` and `/admin/v1/keys/{key_id}` (specification,
//! "Authentication" 3 and 4). A key is shown once, when it is issued.

use actix_web::HttpRequest;
use actix_web::web::Json;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_service::keys;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::keys::{
    IssueKeyRequest, IssueKeyResponse, KeyResponse, KeyText, KeysResponse, RotateKeyRequest, RotateKeyResponse,
};

use super::arguments::{Id, RequestBody};
use super::bearer::Operator;
use super::credits::require_client;
use super::users::log;

/// Note in the response when a key of an imported client is revoked.
const IMPORTED_KEY_NOTE: &str =
    "The client came from another installation: revoke the key there too, where it still works.";

pub(super) async fn issue(
    Operator(deps): Operator,
    Id(client): Id<ClientId>,
    request: HttpRequest,
    RequestBody(body): RequestBody<IssueKeyRequest>,
) -> Result<Json<IssueKeyResponse>, ApiError> {
    require_client(&deps.store, &client).await?;
    // The entry comes first: a failure after the key exists would lose its text.
    let id = KeyId::generate();
    log(&deps, &request, client.clone(), Action::KeyIssued, Some(Subject::Key(id.clone()))).await?;
    let issued = keys::issue(&deps.store, &*deps.clock, (client, id), body).await?;
    Ok(Json(IssueKeyResponse { key_id: issued.key_id, api_key: KeyText(issued.key.reveal().to_owned()) }))
}

pub(super) async fn list(Operator(deps): Operator, Id(client): Id<ClientId>) -> Result<Json<KeysResponse>, ApiError> {
    require_client(&deps.store, &client).await?;
    Ok(Json(KeysResponse { keys: keys::list(&deps.store, client).await? }))
}

pub(super) async fn revoke(
    Operator(deps): Operator,
    Id(id): Id<KeyId>,
    request: HttpRequest,
) -> Result<Json<KeyResponse>, ApiError> {
    let record = keys::revoke(&deps.store, &*deps.clock, id).await?;
    log(&deps, &request, record.client_id.clone(), Action::KeyRevoked, Some(Subject::Key(record.key_id.clone())))
        .await?;
    let is_imported = deps.store.imported_at(record.client_id.clone()).await?.is_some();
    let note = is_imported.then(|| IMPORTED_KEY_NOTE.to_owned());
    Ok(Json(KeyResponse { note, ..record.into() }))
}

pub(super) async fn rotate(
    Operator(deps): Operator,
    Id(id): Id<KeyId>,
    request: HttpRequest,
    RequestBody(body): RequestBody<RotateKeyRequest>,
) -> Result<Json<RotateKeyResponse>, ApiError> {
    let old = keys::load_active(&deps.store, &*deps.clock, id).await?;
    log(&deps, &request, old.client_id.clone(), Action::KeyRotated, Some(Subject::Key(old.key_id.clone()))).await?;
    let (issued, old) = keys::rotate(&deps.store, &*deps.clock, old, body.overlap_s.map(|overlap| overlap.0)).await?;
    Ok(Json(RotateKeyResponse {
        key_id: issued.key_id,
        api_key: KeyText(issued.key.reveal().to_owned()),
        previous: old.into(),
    }))
}
