//! Use cases of polls of flows (specification, "Polling fallbacks"): the webhook's body if it exists, before that a
//! stub with `pending`.
//!
//! A response can hold a file of ten megabytes. The body of a webhook is sent as it was sealed, without being parsed
//! and serialised again. Slow work runs off the worker's thread. The memory of all responses is bounded, because
//! clients may read slowly.

use std::sync::Arc;

use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::EsignFlow;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::limits::PAYLOAD_INLINE_BYTES_MAX;
use sakshi_domain::tenancy::App;
use sakshi_store::{FlowRecord, SealedPayload};
use sakshi_wire::doclocker::DocLockerDetails;
use sakshi_wire::esign::{EsignOutcome, EsignStatus};
use sakshi_wire::read_report;
use serde::Serialize;
use tokio::task::spawn_blocking;

use crate::budget::{MemoryPermit, OwnerPath, Stage};
use crate::error::ServiceError;
use crate::service::Service;

/// The error for a missing flow: of another app or kind, or expired.
const NOT_FOUND: ServiceError = ServiceError::NotFound("flow");

/// The answer to a poll.
#[derive(Debug)]
pub struct PollAnswer {
    /// The JSON.
    pub json: Vec<u8>,
    /// Share of the memory budget, held until the answer was sent; `None` for an answer without a report.
    pub permit: Option<MemoryPermit>,
}

/// Returns the state of a document to be signed.
///
/// # Errors
/// [`ServiceError::NotFound`] unless the app has such a document; [`ServiceError::Overloaded`] without memory or a
/// permit for the read; any error of the store.
pub async fn poll_document(service: &Service, app: &App, id: &str) -> Result<PollAnswer, ServiceError> {
    let (_, record) = load_flow(service, app, id).await?;
    match (record.state, record.latest) {
        (FlowState::ESign(EsignFlow::Ended(_)), Some(report)) => build_answer(service, app, report, Ok).await,
        (FlowState::ESign(EsignFlow::Pending(_)), Some(latest)) => {
            let to_stub = |latest: Vec<u8>| {
                let latest: EsignOutcome = read_report(&latest).map_err(|_| unreadable_payload())?;
                to_json(&EsignStatus::from(latest))
            };
            build_answer(service, app, latest, to_stub).await
        }
        _ => Err(NOT_FOUND),
    }
}

/// Returns the result of an order to the document locker.
///
/// # Errors
/// As [`poll_document`].
pub async fn poll_locker(service: &Service, app: &App, id: &str) -> Result<PollAnswer, ServiceError> {
    let (id, record) = load_flow(service, app, id).await?;
    match (record.state, record.latest) {
        (FlowState::DocLocker(DocLockerFlow::Ended { .. }), Some(report)) => {
            build_answer(service, app, report, Ok).await
        }
        (FlowState::DocLocker(DocLockerFlow::Pending { .. }), Some(latest)) => {
            let to_stub = move |latest: Vec<u8>| {
                let latest = read_report(&latest).map_err(|_| unreadable_payload())?;
                to_json(&DocLockerDetails::new(id, Some(latest)))
            };
            build_answer(service, app, latest, to_stub).await
        }
        (FlowState::DocLocker(DocLockerFlow::Pending { .. }), None) => {
            Ok(PollAnswer { json: to_json(&DocLockerDetails::new(id, None))?, permit: None })
        }
        _ => Err(NOT_FOUND),
    }
}

/// Loads a flow of this app, with at most as many others at a time as [`Service::flow_fetches`] permits.
async fn load_flow(service: &Service, app: &App, id: &str) -> Result<(FlowId, FlowRecord), ServiceError> {
    let id: FlowId = id.parse().map_err(|_| NOT_FOUND)?;
    let permit = service.flow_fetches.acquire().await?;
    let record = service.flows.get(id, app.app_id.clone()).await?;
    drop(permit);
    Ok((id, record.ok_or(NOT_FOUND)?))
}

/// Decrypts a payload and writes the answer from it.
async fn build_answer(
    service: &Service,
    app: &App,
    latest: SealedPayload,
    write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, ServiceError> + Send + 'static,
) -> Result<PollAnswer, ServiceError> {
    let permit =
        service.memory.answers.take(OwnerPath::app(&app.client_id, &app.app_id), Stage::Leaving, latest.size())?;
    let (vault, is_small) = (Arc::clone(&service.vault), latest.size() <= PAYLOAD_INLINE_BYTES_MAX);
    let write_json = move || latest.open(&vault).map_err(ServiceError::internal).and_then(write);
    // A small payload takes less time than the start of work on another thread.
    let json =
        if is_small { write_json() } else { spawn_blocking(write_json).await.map_err(ServiceError::internal)? };
    Ok(PollAnswer { json: json?, permit: Some(permit) })
}

fn unreadable_payload() -> ServiceError {
    ServiceError::Internal("a stored payload cannot be read".to_owned())
}

fn to_json(answer: &impl Serialize) -> Result<Vec<u8>, ServiceError> {
    serde_json::to_vec(answer).map_err(ServiceError::internal)
}
