//! `/admin/v1/clients/{client_id}/keys` and `/admin/v1/keys/{key_id}` (specification,
//! "Authentication" 3 and 4). A key is shown once, when it is issued.

use actix_web::{HttpResponse, web};
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::ApiKeyRecord;
use sakshi_domain::time::Timestamp;
use sakshi_service::api_key::ApiKey;
use sakshi_service::error::ServiceError;
use sakshi_store::Store;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, Problem, whole};
use sakshi_web::json::Json;
use sakshi_web::terms::timestamp;
use serde_json::json;
use std::time::Duration;

use super::bearer::Operator;
use super::fields;

/// How long the old key works on after a rotation that does not say.
const OVERLAP_DEFAULT_S: u64 = 24 * 3_600;
/// The longest overlap: a year.
const OVERLAP_MAX_S: u64 = 366 * 24 * 3_600;
/// What is said to a list of environments that names none.
const SOME_ENVIRONMENTS: &str = "must be an array that names some of sandbox, stage and production; leave it out for all";

/// Reads what a new key is to be.
fn fresh(mut fields: Fields, client_id: ClientId, now: Timestamp) -> Result<ApiKeyRecord, ApiError> {
    let label = fields.optional("label", fields::label).unwrap_or_default();
    let environments = fields.optional("environments", environments).unwrap_or_default();
    let expires_at = fields.optional("expires_at", |value| {
        let end = timestamp(value)?;
        if end > now { Ok(end) } else { Err("must be in the future".into()) }
    });
    let key_id = KeyId::generate();
    fields.finish(Some(ApiKeyRecord { key_id, client_id, label, environments, created_at: now, expires_at, revoked_at: None }))
}

/// Where a key works. A list that names nothing is refused: it would mean everywhere to the one who
/// reads it here, and nowhere to the one who wrote it.
fn environments(value: &Json) -> Result<Vec<Profile>, Problem> {
    let Json::List(words) = value else { return Err(SOME_ENVIRONMENTS.into()) };
    if words.is_empty() {
        return Err(SOME_ENVIRONMENTS.into());
    }
    let mut invalid = Invalid::none();
    let mut environments = Vec::new();
    for (index, word) in words.iter().enumerate() {
        // What is no text names no environment either, as the empty one does not.
        let word = if let Json::Text(word) = word { word } else { "" };
        if let Some(profile) = invalid.check(&format!("environments[{index}]"), word.parse::<Profile>()) {
            environments.push(profile);
        }
    }
    invalid.or_ok()?;
    Ok(environments)
}

pub(super) async fn issue(operator: Operator, path: web::Path<String>, body: Body) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let record = fresh(body.fields, fields::id(&path, "client")?, deps.clock.now())?;
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
    let mut fields = body.fields;
    let overlap = fields.optional("overlap_s", whole(0..=OVERLAP_MAX_S)).unwrap_or(OVERLAP_DEFAULT_S);
    fields.finish(Some(()))?;
    let now = deps.clock.now();
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
