//! `/admin/v1/clients/{client_id}/keys` and `/admin/v1/keys/{key_id}` (specification,
//! "Authentication" 3 and 4). A key is shown once, when it is issued.

use std::time::Duration;

use actix_web::web::Json;
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::tenancy::ApiKeyRecord;
use sakshi_service::ServiceError;
use sakshi_service::api_key::ApiKey;
use sakshi_store::Store;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::keys::{
    IssueKeyRequest, IssueKeyResponse, KeyResponse, KeyText, KeysResponse, RotateKeyRequest, RotateKeyResponse,
};

use super::arguments::{Asked, Id};
use super::bearer::Operator;
use super::credits::balance_of;

pub(super) const NOT_ACTIVE: ServiceError =
    ServiceError::Conflict { code: "key_not_active", message: "The key is revoked or expired; issue a new one." };

/// What is said after the revocation of an imported client's key.
const REVOKE_THERE_TOO: &str = "The client came from another installation: revoke the key there too, where it still works.";
/// How long the old key stays valid after a rotation whose request does not say.
const DEFAULT_OVERLAP_S: u64 = 24 * 3_600;

pub(super) async fn issue(
    Operator(deps): Operator,
    Id(client_id): Id<ClientId>,
    Asked(asked): Asked<IssueKeyRequest>,
) -> Result<Json<IssueKeyResponse>, ApiError> {
    let IssueKeyRequest { label, environments, networks, expires_at } = asked;
    let record = ApiKeyRecord {
        key_id: KeyId::generate(),
        client_id,
        label: label.map(|label| label.0.0).unwrap_or_default(),
        environments: environments.unwrap_or_default().0,
        networks: networks.unwrap_or_default().0,
        created_at: deps.clock.now(),
        expires_at,
        revoked_at: None,
    };
    let (key_id, api_key) = create_key(&deps.store, record).await?;
    tracing::info!(key.id = %key_id, "key issued");
    Ok(Json(IssueKeyResponse { key_id, api_key }))
}

/// Makes a key for this record and stores its digest.
async fn create_key(store: &Store, record: ApiKeyRecord) -> Result<(KeyId, KeyText), ApiError> {
    let (key, digest) = ApiKey::issue().ok_or_else(|| ServiceError::Internal("the system gives no random bytes".to_owned()))?;
    let id = record.key_id.clone();
    if store.create_key(record, digest).await? {
        Ok((id, KeyText(key.reveal().to_owned())))
    } else {
        Err(ServiceError::NotFound("client").into())
    }
}

pub(super) async fn list(Operator(deps): Operator, Id(client): Id<ClientId>) -> Result<Json<KeysResponse>, ApiError> {
    balance_of(&deps.store, &client).await?;
    let keys = deps.store.list_keys(client).await?;
    Ok(Json(KeysResponse { keys: keys.into_iter().map(Into::into).collect() }))
}

pub(super) async fn revoke(Operator(deps): Operator, Id(id): Id<KeyId>) -> Result<Json<KeyResponse>, ApiError> {
    let record = deps.store.retire_key(id, Some(deps.clock.now()), None).await?.ok_or(ServiceError::NotFound("key"))?;
    tracing::info!(key.id = %record.key_id, "key revoked");
    let is_imported = deps.store.imported_at(record.client_id.clone()).await?.is_some();
    let note = is_imported.then(|| REVOKE_THERE_TOO.to_owned());
    Ok(Json(KeyResponse { note, ..record.into() }))
}

/// Issues a key with the old one's label, environments and networks, then lets the old one expire after the overlap: at no moment is the
/// client without a valid key.
pub(super) async fn rotate(
    Operator(deps): Operator,
    Id(id): Id<KeyId>,
    Asked(asked): Asked<RotateKeyRequest>,
) -> Result<Json<RotateKeyResponse>, ApiError> {
    let now = deps.clock.now();
    let overlap = asked.overlap_s.map_or(DEFAULT_OVERLAP_S, |overlap| overlap.0);
    // Without a time nothing is changed: this only reads the key.
    let old = deps.store.retire_key(id.clone(), None, None).await?.ok_or(ServiceError::NotFound("key"))?;
    if old.revoked_at.is_some() || old.expires_at.is_some_and(|end| end <= now) {
        return Err(NOT_ACTIVE.into());
    }
    let fresh = ApiKeyRecord { key_id: KeyId::generate(), created_at: now, expires_at: None, ..old };
    let (key_id, api_key) = create_key(&deps.store, fresh).await?;
    let end = now + Duration::from_secs(overlap);
    let old = deps.store.retire_key(id, None, Some(end)).await?.ok_or(ServiceError::NotFound("key"))?;
    tracing::info!(key.id = %key_id, key.previous_id = %old.key_id, "key rotated");
    Ok(Json(RotateKeyResponse { key_id, api_key, previous: old.into() }))
}
