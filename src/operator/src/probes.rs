//! `/livez`, `/readyz` and `/metrics`.

use actix_web::body::BoxBody;
use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, HttpResponse, Responder};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::views::ProbeResponse;

use super::InternalDeps;

pub(super) async fn livez(deps: Data<InternalDeps>) -> Result<Json<ProbeResponse>, ApiError> {
    probe_response(deps.health.livez())
}

pub(super) async fn readyz(deps: Data<InternalDeps>) -> Result<Json<ProbeResponse>, ApiError> {
    deps.health.refresh_readiness().await;
    probe_response(deps.health.readyz())
}

fn probe_response(health: Result<(), String>) -> Result<Json<ProbeResponse>, ApiError> {
    health.map(|()| Json(ProbeResponse { status: "ok".into() })).map_err(ApiError::Unhealthy)
}

pub(super) async fn metrics(deps: Data<InternalDeps>) -> MetricsPage {
    MetricsPage((deps.metrics)())
}

/// The metrics in Prometheus' text format.
pub(super) struct MetricsPage(String);

impl Responder for MetricsPage {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(self.0)
    }
}
