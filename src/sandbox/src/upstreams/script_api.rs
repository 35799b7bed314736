//! The JSON API of the upstreams for scripts: one call plays a whole outcome of an order and returns the service's
//! answer to each report.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::{SentReport, Upstream};
use super::error::FlowError;
use super::reporter::ReportAnswer;
use super::state::SandboxUpstreams;

/// The request of a script that plays an outcome.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutcomeRequest {
    outcome: String,
}

/// Brings an order to the outcome that a script names, and returns the service's answers to its reports.
pub(super) async fn play(
    state: Data<SandboxUpstreams>,
    path: Path<(String, String)>,
    request: Json<OutcomeRequest>,
) -> Result<HttpResponse, FlowError> {
    let (upstream, id) = path.into_inner();
    let entry = state.orders.find(Upstream::from_name(&upstream)?, &id)?;
    let sent = entry.play(&request.outcome, &state.reporter, state.clock.now()).await?;
    let reported: Vec<Value> = sent.iter().map(describe).collect();
    if sent.iter().any(|report| report.answer == ReportAnswer::NoAnswer) {
        let mut body = FlowError::Unreachable.body();
        body["reported"] = reported.into();
        return Ok(HttpResponse::BadGateway().json(body));
    }
    Ok(HttpResponse::Ok().json(json!({"reported": reported})))
}

/// Describes a report and its answer: `result` if the service accepted the report, `code` if the service refused it.
fn describe(report: &SentReport) -> Value {
    let mut line = json!({"kind": report.kind, "status": report.answer.status(), "attempts": report.attempts});
    for member in ["result", "code", "message"] {
        if let Some(text) = report.answer.member(member) {
            line[member] = text.into();
        }
    }
    line
}
