//! `POST /api/v1/doclocker/init`: which documents to fetch from a person's locker.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::request::doclocker::{DocLockerDraft, DocLockerRequest};
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::{PageUrl, doclocker};
use serde::Serialize;

use super::opening::{Asked, Begun, Ordered, asked, begin, open};
use crate::http::body::Body;
use crate::http::called::Called;
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::flow_requests::DocLockerInitRequest;
use crate::http::idempotency::OnceOnly;
use crate::http::rate::Rates;
use crate::http::request_id::request_id;
use crate::service::Service;

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
    called: Called<Body>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<Rates>,
) -> Result<HttpResponse, ApiError> {
    let Called { caller, sent: body } = called;
    rates.init.take(&caller.app.app_id)?;
    let upstream = service.upstreams.doclocker()?;
    let once = OnceOnly::of(&request, &caller, "doclocker", &body.bytes)?;
    let Asked { request: documents, request_id } = read(body.fields, request_id(&request))?;
    let Begun { opened, turn } = match begin(&service, &request, caller, request_id, once).await? {
        Ok(begun) => begun,
        Err(kept) => return Ok(kept),
    };
    let request_url = doclocker::order(upstream, &opened, &documents).await?;
    let answer = DocLockerResponse { transaction_id: opened.id, request_url };
    open(&service, Ordered { flow: FlowState::DocLocker(documents.open(opened)), payload: None, answer }, turn).await
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
