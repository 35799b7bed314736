//! `/admin/v1/clients/{client_id}/keys` and `/admin/v1/keys/{key_id}` (specification,
//! "Authentication" 3 and 4). A key is shown once, when it is issued.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::tenancy::ApiKeyRecord;
use sakshi_service::api_key::ApiKey;
use sakshi_service::error::ServiceError;
use sakshi_store::Store;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::{IssueKeyRequest, RotateKeyRequest};
use serde_json::json;

use super::bearer::Operator;
use super::fields;

/// How long the old key works on after a rotation that does not say.
const OVERLAP_DEFAULT_S: u64 = 24 * 3_600;
pub(super) async fn issue(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let client_id: ClientId = fields::id(&path, "client")?;
    let now = deps.clock.now();
    let IssueKeyRequest { label, environments, expires_at } = body.sent.request(deps.urls.at(now))?;
    let record = ApiKeyRecord {
        key_id: KeyId::generate(),
        client_id,
        label: label.map(|label| label.0.0).unwrap_or_default(),
        environments: environments.unwrap_or_default().0,
        created_at: now,
        expires_at,
        revoked_at: None,
    };
    let (id, key) = store_fresh(deps.store.as_ref(), record).await?;
    tracing::info!(key.id = %id, "key issued");
    Ok(HttpResponse::Ok().json(json!({ "key_id": id, "api_key": key.reveal() })))
}

async fn store_fresh(store: &dyn Store, record: ApiKeyRecord) -> Result<(KeyId, ApiKey), ApiError> {
    let (key, digest) =
        ApiKey::issue().ok_or_else(|| ApiError::Service(ServiceError::Internal("the system gives no random bytes".to_owned())))?;
    let id = record.key_id.clone();
    if store.create_key(record, digest).await? { Ok((id, key)) } else { Err(ApiError::Service(ServiceError::NotFound("client"))) }
}

pub(super) async fn list(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let store = &operator.0.store;
    let (client, _) = fields::known_client(store.as_ref(), &path).await?;
    Ok(HttpResponse::Ok().json(json!({ "keys": store.list_keys(client).await? })))
}

pub(super) async fn revoke(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let id: KeyId = fields::id(&path, "key")?;
    let record = deps.store.retire_key(id, Some(deps.clock.now()), None).await?.ok_or(ServiceError::NotFound("key"))?;
    tracing::info!(key.id = %record.key_id, "key revoked");
    Ok(HttpResponse::Ok().json(record))
}

/// Issues a key like the old one, then lets the old one end after the overlap: at no moment is the
/// client without a good key.
pub(super) async fn rotate(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let now = deps.clock.now();
    let asked: RotateKeyRequest = body.sent.request(deps.urls.at(now))?;
    let overlap = asked.overlap_s.map_or(OVERLAP_DEFAULT_S, |overlap| overlap.0);
    let id: KeyId = fields::id(&path, "key")?;
    let old = deps.store.retire_key(id.clone(), None, None).await?.ok_or(ServiceError::NotFound("key"))?;
    if old.revoked_at.is_some() || old.expires_at.is_some_and(|end| end <= now) {
        return Err(ApiError::Service(ServiceError::Conflict {
            code: "key_not_active",
            message: "The key is revoked or expired; issue a new one.",
        }));
    }
    let fresh = ApiKeyRecord { key_id: KeyId::generate(), created_at: now, expires_at: None, ..old };
    let (fresh_id, key) = store_fresh(deps.store.as_ref(), fresh).await?;
    let end = now + Duration::from_secs(overlap);
    let old = deps.store.retire_key(id, None, Some(end)).await?.ok_or(ServiceError::NotFound("key"))?;
    tracing::info!(key.id = %fresh_id, key.previous_id = %old.key_id, "key rotated");
    Ok(HttpResponse::Ok().json(json!({ "key_id": fresh_id, "api_key": key.reveal(), "previous": old })))
}
