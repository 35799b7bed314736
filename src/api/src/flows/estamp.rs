//! `POST /api/v1/estamp/init`: a document to be stamped, of the registry or on paper.

use actix_web::web::{Data, Payload};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::request::estamp::{EStampDraft, EStampRequest, FileDraft, SignatoryDraft};
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::estamp;
use sakshi_service::error::ServiceError;
use sakshi_service::flows::{Ordered, open_flow};
use sakshi_service::service::Service;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::budget::{CpuBudget, MemoryBudgets};
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::fields::Fields;
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use serde::Serialize;

use super::asked::{Asked, asked};
use super::file_body::{WithFile, receive};
use crate::flow_requests::EStampInitRequest;

/// An e-stamp that is on its way.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EStampResponse {
    /// Identifies the e-stamp.
    #[schema(value_type = String, format = "uuid")]
    e_stamp_id: FlowId,
}

/// Asks for an e-stamp on a document, of the registry or on paper. The outcome comes by webhook, to the URL that is registered for the
/// same `apiType`.
///
/// # Errors
/// 400, 401, 408, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table; nothing is opened then.
#[utoipa::path(
    post, path = "/api/v1/estamp/init", tag = "E-stamp", operation_id = "estamp_init", request_body = EStampInitRequest,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = EStampResponse, description = "The e-stamp is on its way.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn init(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
    memory: Data<MemoryBudgets>,
    cpu: Data<CpuBudget>,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let upstream = service.upstreams.estamp.as_ref().ok_or(ServiceError::NotOffered)?;
    let minted = request_id(&request);
    let budgets = (memory, cpu);
    let received = receive((&request, payload), (&budgets, &caller), "estamp", move |fields| read(fields, minted));
    let WithFile { request: Asked { request: stamp, request_id }, once, _permit } = received.await?;
    request.extensions_mut().insert(request_id.clone());
    let order = async |header: FlowHeader| {
        let answer = EStampResponse { e_stamp_id: header.id };
        let flow = stamp.open(header);
        estamp::order(upstream, &flow.terms().header, stamp).await?;
        Ok(Ordered { flow: FlowState::EStamp(flow), payload: None, answer })
    };
    Ok(idempotency::answer(open_flow(&service, caller, request_id, once, order).await?))
}

/// Reads what is to be stamped.
///
/// # Errors
/// Every field that is not acceptable, at once.
fn read(mut fields: Fields, minted: RequestId) -> Result<Asked<EStampRequest>, ApiError> {
    let draft = EStampDraft {
        api_type: fields.text("apiType"),
        document: fields.object("document", |document| FileDraft {
            document_name: document.text("documentName"),
            file_data: document.text("base64FileData").map(String::into_boxed_str),
        }),
        signatories_info: fields.objects("signatoriesInfo", |signatory| SignatoryDraft {
            name: signatory.text("name"),
            email_id: signatory.text("emailID"),
            sign_type: signatory.text("signType"),
        }),
    };
    let request = fields.agreed(draft.check());
    asked(fields, request, minted)
}
