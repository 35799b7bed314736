//! `POST /api/v1/doclocker/init`: which documents to fetch from a person's locker.

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::request::doclocker::{DocLockerDraft, DocLockerRequest};
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::{PageUrl, doclocker};
use sakshi_service::error::ServiceError;
use sakshi_service::flows::{Ordered, open_flow};
use sakshi_service::service::Service;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::fields::Fields;
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use serde::Serialize;

use super::asked::{Asked, asked};
use crate::flow_requests::DocLockerInitRequest;

/// Documents that wait for the person's consent at the locker.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocLockerResponse {
    /// Identifies the request.
    #[schema(value_type = String, format = "uuid")]
    transaction_id: FlowId,
    /// Where the person agrees. Whoever has it may, so give it to nobody else.
    #[schema(value_type = String, format = "uri")]
    request_url: PageUrl,
}

/// Asks for documents from a person's locker. The outcome comes by webhook, to the URL that is registered for `DocLocker`, and by polling.
///
/// # Errors
/// 400, 401, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table; nothing is opened then.
#[utoipa::path(
    post, path = "/api/v1/doclocker/init", tag = "Document locker", operation_id = "doclocker_init", request_body = DocLockerInitRequest,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = DocLockerResponse, description = "The person is awaited at the locker.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn init(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let upstream = service.upstreams.doclocker.as_ref().ok_or(ServiceError::NotOffered)?;
    let once = idempotency::of(&request, &caller, "doclocker", &body.bytes)?;
    let Asked { request: documents, request_id } = read(body.fields, request_id(&request))?;
    request.extensions_mut().insert(request_id.clone());
    let order = async |header: FlowHeader| {
        let request_url = doclocker::order(upstream, &header, &documents).await?;
        let answer = DocLockerResponse { transaction_id: header.id, request_url };
        Ok(Ordered { flow: FlowState::DocLocker(documents.open(header)), payload: None, answer })
    };
    Ok(idempotency::answer(open_flow(&service, caller, request_id, once, order).await?))
}

/// Reads which documents are asked for.
///
/// # Errors
/// Every field that is not acceptable, at once.
fn read(mut fields: Fields, minted: RequestId) -> Result<Asked<DocLockerRequest>, ApiError> {
    let draft = DocLockerDraft { docs: fields.texts("docs"), consent: fields.text("consent"), consent_text: fields.text("consent_text") };
    let request = fields.agreed(draft.check());
    asked(fields, request, minted)
}
