//! `GET /.well-known/jwks.json`: with which keys the intents of this service can be verified.

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::Data;
use sakshi_service::Service;
use serde_json::json;

/// How long anybody may keep the answer: a new key is to be known soon.
const CACHED: &str = "public, max-age=300";

/// Lists the public halves of the keys that sign intents, as a JWK set (RFC 7517). The `kid` in the header of an intent names its key.
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "Service", operation_id = "getIntentKeys",
    summary = "Get the intent keys",
    description = "The public keys that verify intents, as a JWK set (RFC 7517).",
    responses((status = 200, body = Object, description = "The keys. Cache them for five minutes at most.")), security(())
)]
pub(crate) async fn list(service: Data<Service>) -> HttpResponse {
    let keys = service.authority.signer.public_jwks();
    HttpResponse::Ok().insert_header((CACHE_CONTROL, CACHED)).json(json!({ "keys": keys }))
}
