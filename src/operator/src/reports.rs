//! `POST /internal/v1/flows/{kind}`: the reports of upstreams, by their connectors.
//!
//! A body can contain a file of ten megabytes, so its memory is budgeted. A large body is parsed off the thread that
//! serves the probes. Neither responses nor logs contain any value of it.

use actix_web::HttpRequest;
use actix_web::web::{self, Json, Payload};
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::limits::{PAYLOAD_INLINE_BYTES_MAX, REPORT_ARRIVAL_MAX, REPORT_BYTES_MAX};
use sakshi_service::ServiceError;
use sakshi_service::budget::{Owner, OwnerPath};
use sakshi_store::ReportFlowOutcome;
use sakshi_web::body::check_json;
use sakshi_web::body_reader::{BodyReader, ReceivedBody, declared_length};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::views::ReportResponse;
use sakshi_wire::reports::FlowReport;

use super::InternalDeps;
use super::arguments::Id;
use super::bearer::Connector;

/// Accepts an upstream's report about a flow (such as an e-signature) from its connector.
pub(super) async fn receive(
    connector: Connector,
    Id(kind): Id<ReportKind>,
    request: HttpRequest,
    body: Payload,
) -> Result<Json<ReportResponse>, ApiError> {
    let outcome = accept_report(&connector.0, kind, &request, body).await;
    let result = match &outcome {
        Ok(result) => result,
        Err(refusal) => refusal.code(),
    };
    metrics::counter!("sakshi_connector_reports_total", "kind" => kind.as_str(), "result" => result).increment(1);
    tracing::info!(report.kind = kind.as_str(), report.result = result, "report answered");
    outcome.map(|result| Json(ReportResponse { success: true, result: result.into() }))
}

/// Reads, parses and stores a report. Returns the word for its result.
async fn accept_report(
    deps: &InternalDeps,
    kind: ReportKind,
    request: &HttpRequest,
    body: Payload,
) -> Result<&'static str, ApiError> {
    check_json(request.headers())?;
    let budget = &deps.memory.reports;
    let reader = BodyReader { budget, limit: REPORT_BYTES_MAX, timeout: REPORT_ARRIVAL_MAX };
    let received =
        reader.read(OwnerPath::new([Owner::Connector(kind)]), declared_length(request.headers()), body).await;
    let ReceivedBody { bytes, mut permit } = received.map_err(|error| error.to_api_error(REPORT_BYTES_MAX))?;
    // The permit is held until the report is stored: parsing and storing take up to three times its bytes.
    permit.pin()?;
    let is_small = bytes.len() <= PAYLOAD_INLINE_BYTES_MAX;
    let parse = move || FlowReport::parse(kind, &bytes);
    let report = if is_small { parse() } else { web::block(parse).await.map_err(ApiError::internal)? };
    match deps.flows.report(report?).await? {
        ReportFlowOutcome::Accepted { .. } => Ok("accepted"),
        ReportFlowOutcome::Repeated => Ok("repeated"),
        ReportFlowOutcome::Refused(refusal) => Err(ApiError::Service(ServiceError::ReportRefused(refusal))),
        ReportFlowOutcome::NotFound => Err(ApiError::Service(ServiceError::NotFound("flow of this app"))),
    }
}
