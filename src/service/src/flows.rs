//! Use cases of flows that an upstream carries out: documents to be signed, locker documents, e-stamps and wealth-data
//! consents.
//!
//! A flow is first ordered, then opened with the upstream's answer. So the step that opens it also stores the client's
//! response under its idempotency key. An order whose flow was never opened has no effect: its reports find no flow.

use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::estamp::{EStampFlow, EStampTerms};
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::wealth_consent::{WealthConsent, WealthTerms};
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::wealth::RequestedConsent;
use sakshi_outbound::upstream::{Upstream, doclocker, esign, estamp, wealth};
use sakshi_store::{CreateOutcome, OpenFlow};
use sakshi_wire::doclocker::{DocLockerInitRequest, DocLockerResponse};
use sakshi_wire::esign::{EsignOutcome, EsignRequest, EsignResponse, OpenedEsign};
use sakshi_wire::estamp::{EStampInitRequest, EStampResponse};
use sakshi_wire::wealth::{WealthConsentRequest, WealthConsentResponse};
use serde::Serialize;

use crate::authentication::Caller;
use crate::consents::{self, ConsentDeclaration};
use crate::idempotency::{CreationAnswer, IdempotentRequest};
use crate::{Service, ServiceError};

/// The caller of a flow request, with its correlation id.
#[derive(Debug)]
pub struct FlowCall {
    /// The caller.
    pub caller: Caller,
    /// The correlation id.
    pub request_id: RequestId,
    /// The request, if it has an idempotency key.
    pub idempotent: Option<IdempotentRequest>,
}

/// Orders the signatures of one or more people under a document.
///
/// # Errors
/// As [`open_flow`].
pub async fn request_signatures(
    service: &Service,
    upstream: &Upstream,
    call: FlowCall,
    request: EsignRequest,
) -> Result<CreationAnswer<EsignResponse>, ServiceError> {
    let order = async |header| {
        let OpenedEsign { flow, latest, document } = request.open(header);
        let pages = esign::order(upstream, &flow.terms().header, document, &latest).await?;
        let answer = EsignResponse::new(&latest, pages);
        Ok(AcceptedOrder { flow: FlowState::ESign(flow), payload: Some(latest), answer })
    };
    open_flow(service, call, order).await
}

/// Orders documents from a person's locker.
///
/// # Errors
/// As [`open_flow`].
pub async fn request_documents(
    service: &Service,
    upstream: &Upstream,
    call: FlowCall,
    request: &DocLockerInitRequest,
) -> Result<CreationAnswer<DocLockerResponse>, ServiceError> {
    let order = async |header: FlowHeader| {
        let kinds = request.docs.0.iter().map(|kind| kind.as_str().to_owned()).collect();
        consents::store_consent(service, declare_consent("doclocker", &header, kinds, &request.consent.0)).await?;
        let request_url = doclocker::order(upstream, &header, request).await?;
        let answer = DocLockerResponse { transaction_id: header.id, request_url };
        Ok(AcceptedOrder { flow: FlowState::DocLocker(DocLockerFlow::new(header)), payload: None, answer })
    };
    open_flow(service, call, order).await
}

/// Orders an e-stamp on a document.
///
/// # Errors
/// As [`open_flow`].
pub async fn request_stamp(
    service: &Service,
    upstream: &Upstream,
    call: FlowCall,
    request: EStampInitRequest,
) -> Result<CreationAnswer<EStampResponse>, ServiceError> {
    let order = async |header: FlowHeader| {
        let answer = EStampResponse { e_stamp_id: header.id };
        let flow = EStampFlow::new(EStampTerms { header, kind: request.api_type });
        estamp::order(upstream, &flow.terms().header, request).await?;
        Ok(AcceptedOrder { flow: FlowState::EStamp(flow), payload: None, answer })
    };
    open_flow(service, call, order).await
}

/// Orders a person's consent to share wealth data.
///
/// # Errors
/// As [`open_flow`].
pub async fn request_consent(
    service: &Service,
    upstream: &Upstream,
    call: FlowCall,
    request: &WealthConsentRequest,
) -> Result<CreationAnswer<WealthConsentResponse>, ServiceError> {
    let order = async |header: FlowHeader| {
        consents::store_consent(service, declare_consent("wealth", &header, vec![], &request.consent.0)).await?;
        let RequestedConsent { handle, page } = wealth::order(upstream, &header, &request.consent.0).await?;
        let answer =
            WealthConsentResponse { unique_identifier: header.id, consent_handle: handle.clone(), request_url: page };
        Ok(AcceptedOrder {
            flow: FlowState::Wealth(WealthConsent::Requested(WealthTerms { header, consent_handle: handle })),
            payload: None,
            answer,
        })
    };
    open_flow(service, call, order).await
}

/// Builds the consent of a request that opens a flow.
fn declare_consent<'a>(
    kind: &'a str,
    header: &'a FlowHeader,
    details: Vec<String>,
    consent: &'a ConsentGiven,
) -> ConsentDeclaration<'a> {
    ConsentDeclaration { client: &header.client, app: &header.app, kind, id: header.id.to_string(), details, consent }
}

/// A flow whose order the upstream has accepted, and the answer to the caller.
#[derive(Debug)]
struct AcceptedOrder<A> {
    /// The flow to open.
    flow: FlowState,
    /// The state of a document to be signed, which polls return until the first report.
    payload: Option<EsignOutcome>,
    /// The response to the caller.
    answer: A,
}

/// Orders a flow and opens it, unless an earlier request under the same key has opened one. `order` places the order
/// with the upstream; for requests under one key it runs one at a time.
///
/// # Errors
/// Any [`ServiceError`]; the flow is not opened. The key was used for another request, an earlier request under the key
/// hangs, the upstream did not accept the order, or the store failed.
async fn open_flow<A: Serialize>(
    service: &Service,
    FlowCall { caller, request_id, idempotent }: FlowCall,
    order: impl AsyncFnOnce(FlowHeader) -> Result<AcceptedOrder<A>, ServiceError>,
) -> Result<CreationAnswer<A>, ServiceError> {
    let mut _lock = None;
    if let Some(idempotent) = &idempotent {
        // A stored response needs no lease; the lease of a killed node may still last for long.
        if let Some(answer) = idempotent.find_answer(service, &caller).await? {
            return Ok(answer);
        }
        _lock = Some(service.idempotency_locks.acquire(&service.store, &caller.client, idempotent.scope).await?);
        if let Some(answer) = idempotent.find_answer(service, &caller).await? {
            return Ok(answer);
        }
    }
    caller.recheck().await?;
    let id = service.flows.new_id(&caller.client);
    let (app, opened_at, retention) = (caller.app.app_id.clone(), service.clock.now(), caller.limits.retention);
    let header = FlowHeader { id, client: caller.client, app, opened_at, request_id, retention };
    let AcceptedOrder { flow, payload, answer } = order(header).await?;

    let response = CreationAnswer::new(answer)?;
    let now = flow.header().opened_at;
    let until =
        flow.kept_until(now + service.rules.flow_pending_ttl, now, retention.result(service.rules.flow_result_ttl));
    let idempotency = idempotent.map(|idempotent| idempotent.to_record(&service.vault, response.json(), now));
    match service.flows.open(OpenFlow { flow, payload, until, idempotency }).await? {
        CreateOutcome::Created => Ok(response),
        CreateOutcome::Replayed(sealed) => IdempotentRequest::replay(idempotent.as_ref(), &service.vault, &sealed),
        CreateOutcome::KeyReused => Err(ServiceError::IdempotencyKeyReused),
        CreateOutcome::ClientNotFound => Err(ServiceError::Unauthorized),
        CreateOutcome::LimitReached => Err(ServiceError::LIMIT_REACHED),
    }
}
