//! The API keys of a client: issue, rotate with an overlap, revoke. Operators and the client's admins use the same
//! functions.

use std::time::Duration;

use sakshi_domain::clock::Clock;
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::tenancy::ApiKeyRecord;
use sakshi_store::{KeyEnd, Store};
use sakshi_wire::operator::keys::{IssueKeyRequest, KeyResponse};

use crate::api_key::ApiKey;
use crate::error::ServiceError;

/// The error for rotating a key that is revoked or expired.
pub const NOT_ACTIVE: ServiceError =
    ServiceError::Conflict { code: "key_not_active", message: "The key is revoked or expired; issue a new one." };
/// Seconds for which the old key stays valid after a rotation whose request names no overlap.
const DEFAULT_OVERLAP_S: u64 = 24 * 3_600;

/// A new key, whose text is shown once.
#[derive(Debug)]
pub struct IssuedKey {
    /// Id of the key.
    pub key_id: KeyId,
    /// The key itself.
    pub key: ApiKey,
}

/// Issues a key of a client under an id that the caller has generated, so that the key can be logged before it exists.
///
/// # Errors
/// [`ServiceError::NotFound`] without such a client; any error of the store.
pub async fn issue(
    store: &Store,
    clock: &dyn Clock,
    (client_id, key_id): (ClientId, KeyId),
    request: IssueKeyRequest,
) -> Result<IssuedKey, ServiceError> {
    let IssueKeyRequest { label, environments, networks, expires_at } = request;
    let record = ApiKeyRecord {
        key_id,
        client_id,
        label: label.map(|label| label.0.0).unwrap_or_default(),
        environments: environments.unwrap_or_default().0,
        networks: networks.unwrap_or_default().0,
        created_at: clock.now(),
        expires_at,
        revoked_at: None,
    };
    let issued = create(store, record).await?;
    tracing::info!(key.id = %issued.key_id, "key issued");
    Ok(issued)
}

/// Generates a key for this record and stores its digest.
async fn create(store: &Store, record: ApiKeyRecord) -> Result<IssuedKey, ServiceError> {
    let (key, digest) =
        ApiKey::issue().ok_or_else(|| ServiceError::Internal("the system gives no random bytes".to_owned()))?;
    let key_id = record.key_id.clone();
    if store.create_key(record, digest).await? {
        Ok(IssuedKey { key_id, key })
    } else {
        Err(ServiceError::NotFound("client"))
    }
}

/// Loads a key that can be rotated.
///
/// # Errors
/// [`ServiceError::NotFound`] without such a key; [`NOT_ACTIVE`] when it is revoked or expired; any error of the store.
pub async fn load_active(store: &Store, clock: &dyn Clock, id: KeyId) -> Result<ApiKeyRecord, ServiceError> {
    let key = load(store, id).await?;
    if key.revoked_at.is_some() || key.expires_at.is_some_and(|end| end <= clock.now()) {
        return Err(NOT_ACTIVE);
    }
    Ok(key)
}

/// Issues a replacement for an active key, with the same label, environments and networks. The old key stays valid
/// during the overlap. Also returns the old key.
///
/// # Errors
/// Any error of the store.
pub async fn rotate(
    store: &Store,
    clock: &dyn Clock,
    old: ApiKeyRecord,
    overlap_s: Option<u64>,
) -> Result<(IssuedKey, ApiKeyRecord), ServiceError> {
    let (now, overlap) = (clock.now(), Duration::from_secs(overlap_s.unwrap_or(DEFAULT_OVERLAP_S)));
    let id = old.key_id.clone();
    let issued =
        create(store, ApiKeyRecord { key_id: KeyId::generate(), created_at: now, expires_at: None, ..old }).await?;
    let old = store.retire_key(id, KeyEnd::Expires(now + overlap)).await?.ok_or(ServiceError::NotFound("key"))?;
    tracing::info!(key.id = %issued.key_id, key.previous_id = %old.key_id, "key rotated");
    Ok((issued, old))
}

/// Revokes a key; the time of the first revocation stays.
///
/// # Errors
/// [`ServiceError::NotFound`] without such a key; any error of the store.
pub async fn revoke(store: &Store, clock: &dyn Clock, id: KeyId) -> Result<ApiKeyRecord, ServiceError> {
    let record = store.retire_key(id, KeyEnd::Revoked(clock.now())).await?.ok_or(ServiceError::NotFound("key"))?;
    tracing::info!(key.id = %record.key_id, "key revoked");
    Ok(record)
}

/// Loads a key.
///
/// # Errors
/// [`ServiceError::NotFound`] without such a key; any error of the store.
pub async fn load(store: &Store, id: KeyId) -> Result<ApiKeyRecord, ServiceError> {
    store.load_key(id).await?.ok_or(ServiceError::NotFound("key"))
}

/// Lists the keys of a client with their last use, revoked ones included.
///
/// # Errors
/// Any error of the store.
pub async fn list(store: &Store, client: ClientId) -> Result<Vec<KeyResponse>, ServiceError> {
    let uses = store.key_uses(client.clone()).await?;
    let to_response = |key: ApiKeyRecord| {
        let last_used_at = uses.iter().find(|(id, _)| *id == key.key_id).map(|(_, at)| *at);
        KeyResponse { last_used_at, ..key.into() }
    };
    Ok(store.list_keys(client).await?.into_iter().map(to_response).collect())
}
