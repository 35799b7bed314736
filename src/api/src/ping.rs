//! `GET /api/ping`

use actix_web::HttpResponse;
use sakshi_wire::Always;
use sakshi_wire::refusal::Pong;

/// Confirms that the service answers. Calls no other server.
#[utoipa::path(get, path = "/api/ping", tag = "Service", operation_id = "ping",
    summary = "Check that the service answers", description = "Needs no credentials and calls no other server.",
    responses((status = 200, body = Pong, description = "The service answers.")), security(()))]
pub(crate) async fn ping() -> HttpResponse {
    HttpResponse::Ok().json(Pong { success: Always, message: "pong".into() })
}
