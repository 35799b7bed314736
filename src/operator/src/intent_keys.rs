//! `/admin/v1/intent-keys`: the choice of the key that signs intents.

use actix_web::web::Json;
use sakshi_domain::invalid::Invalid;
use sakshi_store::ChosenIntentKey;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::intent_keys::{IntentKeyResponse, IntentKeysResponse, UseIntentKeyRequest};

use super::InternalDeps;
use super::arguments::RequestBody;
use super::bearer::Operator;

pub(super) async fn list(Operator(deps): Operator) -> Result<Json<IntentKeysResponse>, ApiError> {
    let chosen = deps.store.chosen_intent_key().await?;
    Ok(Json(keys_response(&deps, chosen)))
}

pub(super) async fn choose(
    Operator(deps): Operator,
    RequestBody(body): RequestBody<UseIntentKeyRequest>,
) -> Result<Json<IntentKeysResponse>, ApiError> {
    let chosen = body.kid.map(|kid| ChosenIntentKey { kid: kid.0, since: deps.clock.now() });
    if chosen.as_ref().is_some_and(|chosen| !deps.signer.has_key(&chosen.kid)) {
        return Err(Invalid::one("kid", "must be the id of an intent key that this node has").into());
    }
    deps.store.choose_intent_key(chosen.clone()).await?;
    deps.signer.choose(chosen.as_ref().map(|chosen| &*chosen.kid));
    tracing::info!(intent.kid = chosen.as_ref().map(|chosen| &*chosen.kid), "intent key chosen");
    Ok(Json(keys_response(&deps, chosen)))
}

/// Describes the node's intent keys, and marks the key that signs.
fn keys_response(deps: &InternalDeps, chosen: Option<ChosenIntentKey>) -> IntentKeysResponse {
    let keys = deps.signer.keys(deps.clock.now()).into_iter().map(|key| IntentKeyResponse {
        kid: key.kid,
        algorithm: key.algorithm.to_owned(),
        setting: if key.is_first { "authority.intent_key" } else { "authority.further_intent_keys" }.to_owned(),
        signs_from: key.signs_from,
        signs: key.signs,
    });
    let (chosen, chosen_at) = chosen.map(|chosen| (chosen.kid, chosen.since)).unzip();
    IntentKeysResponse { keys: keys.collect(), chosen, chosen_at }
}
