//! `GET /.well-known/jwks.json`: the keys that verify the intents of this service.

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::Data;
use sakshi_service::Service;
use serde_json::json;

/// `Cache-Control` of the response. Clients must learn a new key soon.
const CACHING: &str = "public, max-age=300";

/// Lists the public halves of the keys that sign intents, as a JWK set (RFC 7517). The `kid` in the header of an intent
/// names its key.
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "Service", operation_id = "getIntentKeys",
    summary = "Get the intent keys",
    description = "The public keys that verify intents, as a JWK set (RFC 7517).",
    responses((status = 200, body = Object, description = "The keys. Cache them for five minutes at most.")),
    security(())
)]
pub(crate) async fn list(service: Data<Service>) -> HttpResponse {
    let keys = service.authority.signer.public_jwks();
    HttpResponse::Ok().insert_header((CACHE_CONTROL, CACHING)).json(json!({ "keys": keys }))
}
