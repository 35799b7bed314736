//! The steps that all flows are opened by.

use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::payload::esign::EsignPayload;
use sakshi_domain::request_id::RequestId;
use sakshi_store::{OpenFlow, OpenFlowOutcome};
use serde::Serialize;

use super::turns::Turn;
use crate::http::caller::Caller;
use crate::http::error::ApiError;
use crate::http::fields::{Fields, text};
use crate::http::idempotency::{Answered, OnceOnly};
use crate::service::Service;

/// A request with the correlation id that it is carried out under.
pub(super) struct Asked<T> {
    pub(super) request: T,
    pub(super) request_id: RequestId,
}

/// Ends the reading of a request that opens a flow; all of them may name their correlation id.
///
/// # Errors
/// Every field that is not acceptable, at once.
pub(super) fn asked<T>(mut fields: Fields, request: Option<T>, minted: RequestId) -> Result<Asked<T>, ApiError> {
    let request_id = fields.optional("request_id", text(RequestId::parse)).unwrap_or(minted);
    fields.finish(request.map(|request| Asked { request, request_id }))
}

/// A flow that may be ordered.
pub(super) struct Begun {
    pub(super) opened: FlowHeader,
    /// Of a request with a key: the only one under it, until it is answered.
    pub(super) turn: Option<OnlyOne>,
}

/// A request with a key, whose turn it is.
pub(super) struct OnlyOne {
    once: OnceOnly,
    _turn: Turn,
}

/// What is true of the flow from now on, unless the client's key has an answer already, or gets one
/// from a request that is under way.
///
/// # Errors
/// The key came with another request, the request before it hangs, or the store does not say.
pub(super) async fn begin(
    service: &Service,
    request: &HttpRequest,
    caller: Caller,
    request_id: RequestId,
    once: Option<OnceOnly>,
) -> Result<Result<Begun, HttpResponse>, ApiError> {
    request.extensions_mut().insert(request_id.clone());
    let turn = match once {
        Some(once) => Some(OnlyOne { once, _turn: service.turns.take(&service.store, once.scope).await? }),
        None => None,
    };
    if let Some(OnlyOne { once, .. }) = &turn
        && let Some(json) = once.kept(service).await?
    {
        return Ok(Err(Answered::Before(json).into()));
    }
    caller.judge_again().await?;
    let id = service.flows.new_id(&caller.client);
    let opened = FlowHeader { id, client: caller.client, app: caller.app.app_id.clone(), opened_at: service.clock.now(), request_id };
    Ok(Ok(Begun { opened, turn }))
}

/// A flow whose order was taken.
pub(super) struct Ordered<A> {
    pub(super) flow: FlowState,
    /// Of a document to be signed: what polls show until there is a report.
    pub(super) payload: Option<EsignPayload>,
    pub(super) answer: A,
}

/// Opens the flow and answers.
///
/// # Errors
/// When it is not opened.
pub(super) async fn open<A: Serialize>(service: &Service, ordered: Ordered<A>, turn: Option<OnlyOne>) -> Result<HttpResponse, ApiError> {
    let Ordered { flow, payload, answer } = ordered;
    let json = serde_json::to_vec(&answer).map_err(|error| ApiError::Internal(error.to_string()))?;
    let now = flow.header().opened_at;
    let until = flow.kept_until(now + service.rules.flow_pending_ttl, now, service.rules.flow_result_ttl);
    let once = turn.as_ref().map(|turn| turn.once);
    let idempotency = once.map(|once| once.keep(&service.vault, &json, now));
    match service.flows.open(OpenFlow { flow, payload, until, idempotency }).await? {
        OpenFlowOutcome::Opened => Ok(Answered::Now(json).into()),
        OpenFlowOutcome::Replayed(sealed) => match once {
            Some(once) => Ok(Answered::Before(once.reveal(&service.vault, &sealed)?).into()),
            None => Err(ApiError::Internal("a replay without a key".to_owned())),
        },
        OpenFlowOutcome::KeyReused => Err(ApiError::IdempotencyKeyReused),
        OpenFlowOutcome::ClientNotFound => Err(ApiError::Unauthorized),
    }
}
