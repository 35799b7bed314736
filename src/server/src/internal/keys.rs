//! `/admin/v1/clients/{client_id}/keys` and `/admin/v1/keys/{key_id}` (specification,
//! "Authentication" 3 and 4). A key is shown once, when it is issued.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::ApiKeyRecord;
use sakshi_domain::time::Timestamp;
use sakshi_store::Store;
use serde::Deserialize;
use serde_json::json;

use super::fields;
use super::operator::Operator;
use crate::http::api_key::ApiKey;
use crate::http::body::Body;
use crate::http::error::ApiError;

/// How long the old key works on after a rotation that does not say.
const OVERLAP_DEFAULT_S: u64 = 24 * 3_600;
/// The longest overlap: a year.
const OVERLAP_MAX_S: u64 = 366 * 24 * 3_600;

#[derive(Debug, Deserialize)]
pub(super) struct Issue {
    label: Option<String>,
    environments: Option<Vec<String>>,
    #[serde(alias = "expiresAt")]
    expires_at: Option<String>,
}

impl Issue {
    fn checked(self, client_id: ClientId, now: Timestamp) -> Result<ApiKeyRecord, Invalid> {
        let mut invalid = Invalid::none();
        let label = self.label.and_then(|label| fields::label(&mut invalid, "label", Some(label))).unwrap_or_default();
        let mut environments = Vec::new();
        for (index, word) in self.environments.unwrap_or_default().iter().enumerate() {
            if let Some(profile) = invalid.check(&format!("environments[{index}]"), word.parse::<Profile>()) {
                environments.push(profile);
            }
        }
        let expires_at = self.expires_at.and_then(|text| {
            let time = Timestamp::parse_rfc3339(&text).filter(|end| *end > now);
            invalid.check("expires_at", time.ok_or("must be an RFC 3339 timestamp in the future"))
        });
        invalid.or_ok()?;
        Ok(ApiKeyRecord { key_id: KeyId::generate(), client_id, label, environments, created_at: now, expires_at, revoked_at: None })
    }
}

pub(super) async fn issue(operator: Operator, path: web::Path<String>, body: Body<Issue>) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let record = body.value.checked(fields::id(&path, "client")?, deps.clock.now())?;
    let (id, key) = store_fresh(deps.store.as_ref(), record).await?;
    tracing::info!(key.id = %id, "key issued");
    Ok(HttpResponse::Ok().json(json!({ "key_id": id, "api_key": key.reveal() })))
}

async fn store_fresh(store: &dyn Store, record: ApiKeyRecord) -> Result<(KeyId, ApiKey), ApiError> {
    let (key, digest) = ApiKey::issue().ok_or_else(|| ApiError::Internal("the system gives no random bytes".to_owned()))?;
    let id = record.key_id.clone();
    if store.create_key(record, digest).await? { Ok((id, key)) } else { Err(ApiError::NotFound("client")) }
}

pub(super) async fn list(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let store = &operator.0.store;
    let (client, _) = fields::known_client(store.as_ref(), &path).await?;
    Ok(HttpResponse::Ok().json(json!({ "keys": store.list_keys(client).await? })))
}

pub(super) async fn revoke(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let id: KeyId = fields::id(&path, "key")?;
    let record = deps.store.retire_key(id, Some(deps.clock.now()), None).await?.ok_or(ApiError::NotFound("key"))?;
    tracing::info!(key.id = %record.key_id, "key revoked");
    Ok(HttpResponse::Ok().json(record))
}

#[derive(Debug, Deserialize)]
pub(super) struct Rotate {
    #[serde(alias = "overlapS")]
    overlap_s: Option<u64>,
}

/// Issues a key like the old one, then lets the old one end after the overlap: at no moment is the
/// client without a good key.
pub(super) async fn rotate(operator: Operator, path: web::Path<String>, body: Body<Rotate>) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let overlap = body.value.overlap_s.unwrap_or(OVERLAP_DEFAULT_S);
    if overlap > OVERLAP_MAX_S {
        return Err(Invalid::one("overlap_s", format!("must be a whole number from 0 to {OVERLAP_MAX_S}")).into());
    }
    let now = deps.clock.now();
    let id: KeyId = fields::id(&path, "key")?;
    let old = deps.store.retire_key(id.clone(), None, None).await?.ok_or(ApiError::NotFound("key"))?;
    if old.revoked_at.is_some() || old.expires_at.is_some_and(|end| end <= now) {
        return Err(ApiError::Conflict { code: "key_not_active", message: "The key is revoked or expired; issue a new one." });
    }
    let fresh = ApiKeyRecord { key_id: KeyId::generate(), created_at: now, expires_at: None, ..old };
    let (fresh_id, key) = store_fresh(deps.store.as_ref(), fresh).await?;
    let end = now + Duration::from_secs(overlap);
    let old = deps.store.retire_key(id, None, Some(end)).await?.ok_or(ApiError::NotFound("key"))?;
    tracing::info!(key.id = %fresh_id, key.previous_id = %old.key_id, "key rotated");
    Ok(HttpResponse::Ok().json(json!({ "key_id": fresh_id, "api_key": key.reveal(), "previous": old })))
}
