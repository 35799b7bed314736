//! Use cases of polls of flows (specification, "Polling fallbacks"): the webhook's body once there is one, a stub with
//! `pending` until then.
//!
//! A response can hold a file of ten megabytes. The body of a webhook is sent as it was sealed, never parsed and
//! written again. Slow work runs off the worker's thread. The memory of all responses is bounded, because clients read
//! as slowly as they like.

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

/// The error for a flow of another app, another kind, or of long ago.
const NOT_FOUND: ServiceError = ServiceError::NotFound("flow");

/// The answer to a poll.
#[derive(Debug)]
pub struct PollAnswer {
    /// The JSON.
    pub json: Vec<u8>,
    /// Its share of the memory budget, kept until the answer was sent. A stub that holds nothing of the flow has none.
    pub permit: Option<MemoryPermit>,
}

/// Returns the state of a document to be signed.
///
/// # Errors
/// [`ServiceError::NotFound`] unless the app has such a document; errors when it cannot be fetched, or there is no
/// memory for it.
pub async fn poll_document(service: &Service, app: &App, id: &str) -> Result<PollAnswer, ServiceError> {
    let (_, record) = fetch(service, app, id).await?;
    match (record.state, record.latest) {
        (FlowState::ESign(EsignFlow::Ended(_)), Some(sent)) => answer(service, app, sent, Ok).await,
        (FlowState::ESign(EsignFlow::Pending(_)), Some(latest)) => {
            let stub = |latest: Vec<u8>| {
                let latest: EsignOutcome = read_report(&latest).map_err(|_| unreadable())?;
                written(&EsignStatus::from(latest))
            };
            answer(service, app, latest, stub).await
        }
        _ => Err(NOT_FOUND),
    }
}

/// Returns the result of an order to the document locker.
///
/// # Errors
/// As [`poll_document`].
pub async fn poll_locker(service: &Service, app: &App, id: &str) -> Result<PollAnswer, ServiceError> {
    let (id, record) = fetch(service, app, id).await?;
    match (record.state, record.latest) {
        (FlowState::DocLocker(DocLockerFlow::Ended { .. }), Some(sent)) => answer(service, app, sent, Ok).await,
        (FlowState::DocLocker(DocLockerFlow::Pending { .. }), Some(latest)) => {
            let stub = move |latest: Vec<u8>| {
                let latest = read_report(&latest).map_err(|_| unreadable())?;
                written(&DocLockerDetails::new(id, Some(latest)))
            };
            answer(service, app, latest, stub).await
        }
        (FlowState::DocLocker(DocLockerFlow::Pending { .. }), None) => {
            Ok(PollAnswer { json: written(&DocLockerDetails::new(id, None))?, permit: None })
        }
        _ => Err(NOT_FOUND),
    }
}

async fn fetch(service: &Service, app: &App, id: &str) -> Result<(FlowId, FlowRecord), ServiceError> {
    let id: FlowId = id.parse().map_err(|_| NOT_FOUND)?;
    let permit = service.flow_fetches.acquire().await?;
    let record = service.flows.get(id, app.app_id.clone()).await?;
    drop(permit);
    Ok((id, record.ok_or(NOT_FOUND)?))
}

/// Writes the answer from a payload.
async fn answer(
    service: &Service,
    app: &App,
    latest: SealedPayload,
    write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, ServiceError> + Send + 'static,
) -> Result<PollAnswer, ServiceError> {
    let permit =
        service.memory.answers.take(OwnerPath::app(&app.client_id, &app.app_id), Stage::Leaving, latest.size())?;
    let (vault, is_small) = (Arc::clone(&service.vault), latest.size() <= PAYLOAD_INLINE_BYTES_MAX);
    let written = move || latest.open(&vault).map_err(ServiceError::internal).and_then(write);
    // Another thread takes longer to begin than a small payload takes.
    let json = if is_small { written() } else { spawn_blocking(written).await.map_err(ServiceError::internal)? };
    Ok(PollAnswer { json: json?, permit: Some(permit) })
}

fn unreadable() -> ServiceError {
    ServiceError::Internal("a stored payload cannot be read".to_owned())
}

fn written(answer: &impl Serialize) -> Result<Vec<u8>, ServiceError> {
    serde_json::to_vec(answer).map_err(ServiceError::internal)
}
