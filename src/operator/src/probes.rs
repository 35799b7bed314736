//! `/livez`, `/readyz` and `/metrics`.

use actix_web::body::BoxBody;
use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, HttpResponse, Responder};
use metrics::gauge;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::views::ProbeResponse;

use super::InternalDeps;

pub(super) async fn livez(deps: Data<InternalDeps>) -> Result<Json<ProbeResponse>, ApiError> {
    answer(deps.health.livez())
}

pub(super) async fn readyz(deps: Data<InternalDeps>) -> Result<Json<ProbeResponse>, ApiError> {
    answer(deps.health.readyz())
}

fn answer(health: Result<(), String>) -> Result<Json<ProbeResponse>, ApiError> {
    health.map(|()| Json(ProbeResponse { status: "ok".into() })).map_err(ApiError::Unhealthy)
}

pub(super) async fn metrics(deps: Data<InternalDeps>) -> MetricsPage {
    process();
    MetricsPage((deps.metrics)())
}

/// The text that Prometheus reads.
pub(super) struct MetricsPage(String);

impl Responder for MetricsPage {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(self.0)
    }
}

/// Memory and threads as the kernel counts them; elsewhere than on Linux these are absent.
fn process() {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    let number = |name: &str| -> Option<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    if let Some(kibibytes) = number("VmRSS:") {
        gauge!("process_resident_memory_bytes").set(f64::from(kibibytes) * 1_024.0);
    }
    if let Some(threads) = number("Threads:") {
        gauge!("process_threads").set(threads);
    }
}
