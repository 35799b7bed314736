//! Use cases of flows that an upstream carries out: documents to be signed, locker documents, e-stamps and wealth-data consents.
//!
//! Each is ordered first and opened with the upstream's answer, so that the client's answer is kept under its idempotency key in
//! the step that opens. An order whose flow was never opened concerns nobody: its reports find no flow.

use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::request_id::RequestId;
use sakshi_store::{OpenFlow, OpenFlowOutcome};
use sakshi_wire::esign::EsignOutcome;
use serde::Serialize;

use crate::authentication::Caller;
use crate::error::ServiceError;
use crate::idempotency::{Answered, IdempotentRequest, written};
use crate::service::Service;

/// A flow whose order was taken, and the answer to the caller.
#[derive(Debug)]
pub struct Ordered<A> {
    /// The flow from now on.
    pub flow: FlowState,
    /// Of a document to be signed: what polls show until there is a report.
    pub payload: Option<EsignOutcome>,
    /// What the caller is told.
    pub answer: A,
}

/// Orders a flow and opens it, unless that was done before under the same key. `order` places the order with the upstream; of
/// requests under one key it runs for one at a time.
///
/// # Errors
/// When it is not opened: the key came with another request, the request before it hangs, the upstream did not take the order,
/// or the store does not say.
pub async fn open_flow<A: Serialize>(
    service: &Service,
    caller: Caller,
    request_id: RequestId,
    once: Option<IdempotentRequest>,
    order: impl AsyncFnOnce(FlowHeader) -> Result<Ordered<A>, ServiceError>,
) -> Result<Answered, ServiceError> {
    let _lock = match &once {
        Some(once) => Some(service.idempotency_locks.acquire(&service.store, once.scope).await?),
        None => None,
    };
    if let Some(once) = &once
        && let Some(json) = once.kept(service).await?
    {
        return Ok(Answered::Replayed(json));
    }
    caller.recheck().await?;
    let id = service.flows.new_id(&caller.client);
    let header = FlowHeader { id, client: caller.client, app: caller.app.app_id.clone(), opened_at: service.clock.now(), request_id };
    let Ordered { flow, payload, answer } = order(header).await?;

    let json = written(&answer)?;
    let now = flow.header().opened_at;
    let until = flow.kept_until(now + service.rules.flow_pending_ttl, now, service.rules.flow_result_ttl);
    let idempotency = once.map(|once| once.keep(&service.vault, &json, now));
    match service.flows.open(OpenFlow { flow, payload, until, idempotency }).await? {
        OpenFlowOutcome::Opened => Ok(Answered::New(json)),
        OpenFlowOutcome::Replayed(sealed) => IdempotentRequest::replayed(once.as_ref(), &service.vault, &sealed),
        OpenFlowOutcome::KeyReused => Err(ServiceError::IdempotencyKeyReused),
        OpenFlowOutcome::ClientNotFound => Err(ServiceError::Unauthorized),
    }
}
