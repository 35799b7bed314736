//! `POST /api/v1/esign/request`: a document and who shall sign it.

use actix_web::web::{Data, Payload};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::request::esign::{DocumentDraft, EsignDraft, EsignRequest, OpenedEsign, SignerDraft};
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::payload::esign::Signer;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_outbound::upstream::{PageUrl, esign};
use sakshi_service::error::ServiceError;
use sakshi_service::flows::{Ordered, open_flow};
use sakshi_service::service::Service;
use sakshi_service::url_policy::UrlPolicy;
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
use crate::flow_requests::EsignRequestBody;

/// A document that waits for its signers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EsignResponse {
    /// Identifies the document.
    #[schema(value_type = String, format = "uuid")]
    document_id: FlowId,
    /// As given; null when it was not.
    #[schema(value_type = Option<String>, required = true)]
    document_reference_id: Option<Text>,
    /// The signers in the order of signing.
    signer_info: Vec<InvitedSigner>,
}

/// Somebody who is invited to sign.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitedSigner {
    /// Identifies the signer in webhooks and polls.
    #[schema(value_type = String)]
    signer_id: ForeignId,
    /// As given; null when it was not.
    #[schema(value_type = Option<String>, required = true)]
    signer_ref_id: Option<Text>,
    /// Where the signer signs. Whoever has it may, so give it to nobody else.
    #[schema(value_type = String, format = "uri")]
    signing_url: PageUrl,
}

/// Asks for the signatures of one or more people under a document, in the order of `signerInfo`. The outcome comes by webhook, to
/// `responseUrl` or else to the URL that is registered for `ESign`, and by polling.
///
/// # Errors
/// 400, 401, 408, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table; nothing is opened then.
#[utoipa::path(
    post, path = "/api/v1/esign/request", tag = "eSign", operation_id = "esign_request", request_body = EsignRequestBody,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = EsignResponse, description = "The document waits for its signers.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn request(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
    memory: Data<MemoryBudgets>,
    cpu: Data<CpuBudget>,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let upstream = service.upstreams.esign.as_ref().ok_or(ServiceError::NotOffered)?;
    let (minted, addresses, now) = (request_id(&request), service.rules.urls, service.clock.now());
    let budgets = (memory, cpu);
    let received = receive((&request, payload), (&budgets, &caller), "esign", move |fields| read(fields, minted, addresses, now));
    let WithFile { request: Asked { request: document, request_id }, once, _permit } = received.await?;
    request.extensions_mut().insert(request_id.clone());
    let order = async |header: FlowHeader| {
        let OpenedEsign { flow, latest, document } = document.open(header);
        let pages = esign::order(upstream, &flow.terms().header, document, &latest).await?;
        let invited = |(signer, signing_url): (&Signer, PageUrl)| InvitedSigner {
            signer_id: signer.signer_id.clone(),
            signer_ref_id: signer.signer_ref_id.clone(),
            signing_url,
        };
        let answer = EsignResponse {
            document_id: latest.document_id,
            document_reference_id: latest.document_reference_id.clone(),
            signer_info: latest.signer_info.iter().zip(pages).map(invited).collect(),
        };
        Ok(Ordered { flow: FlowState::ESign(flow), payload: Some(latest), answer })
    };
    Ok(idempotency::answer(open_flow(&service, caller, request_id, once, order).await?))
}

/// Reads what is to be signed by whom.
///
/// # Errors
/// Every field that is not acceptable, at once.
fn read(mut fields: Fields, minted: RequestId, addresses: UrlPolicy, now: Timestamp) -> Result<Asked<EsignRequest>, ApiError> {
    let draft = EsignDraft {
        document_info: fields.object("documentInfo", |document| DocumentDraft {
            name: document.text("name"),
            content: document.text("content").map(String::into_boxed_str),
        }),
        signer_info: fields.objects("signerInfo", |signer| SignerDraft {
            signer_name: signer.text("signerName"),
            signer_ref_id: signer.text("signerRefId"),
            invitation_expire_time_stamp: signer.text("invitationExpireTimeStamp"),
        }),
        response_url: fields.text("responseUrl"),
        document_reference_id: fields.text("documentReferenceId"),
    };
    let request = fields.agreed(draft.check(|url| addresses.webhook(url), now));
    asked(fields, request, minted)
}
