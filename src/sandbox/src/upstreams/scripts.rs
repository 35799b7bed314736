//! The JSON side of the upstreams: one call plays a whole outcome of an order and tells what the
//! service answered to each report.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use serde::Deserialize;
use serde_json::{Value, json};

use super::SandboxUpstreams;
use super::case::{Reported, Upstream};
use super::error::FlowError;
use super::reporter::Heard;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutcomeRequest {
    outcome: String,
}

/// Plays an outcome. It fails only when nothing was decided, or when the service answered nothing.
pub(super) async fn play(
    state: Data<SandboxUpstreams>,
    path: Path<(String, String)>,
    request: Json<OutcomeRequest>,
) -> Result<HttpResponse, FlowError> {
    let (upstream, id) = path.into_inner();
    let case = state.book.find(Upstream::named(&upstream)?, &id)?;
    let reported = case.play(&request.outcome, &state.reporter, state.clock.now()).await?;
    let list: Vec<Value> = reported.iter().map(line).collect();
    if reported.iter().any(|reported| reported.heard == Heard::Nothing) {
        let mut body = FlowError::Unreachable.body();
        body["reported"] = list.into();
        return Ok(HttpResponse::BadGateway().json(body));
    }
    Ok(HttpResponse::Ok().json(json!({"reported": list})))
}

/// A report and its answer; `result` is the service's word for what it took, `code` that for a
/// refusal.
fn line(reported: &Reported) -> Value {
    let mut line = json!({"kind": reported.kind, "status": reported.heard.status(), "attempts": reported.attempts});
    for member in ["result", "code", "message"] {
        if let Some(said) = reported.heard.says(member) {
            line[member] = said.into();
        }
    }
    line
}
