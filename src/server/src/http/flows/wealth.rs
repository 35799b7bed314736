//! `POST /api/v1/wealth/consents`: asks a person for a wealth-data consent.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::request::wealth::{WealthDraft, WealthRequest};
use sakshi_domain::flow::text::ForeignId;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::wealth::AskedConsent;
use sakshi_outbound::upstream::{PageUrl, wealth};
use serde::Serialize;

use super::opening::{Asked, Begun, Ordered, asked, begin, open};
use crate::http::body::Body;
use crate::http::called::Called;
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::flow_requests::WealthConsentRequest;
use crate::http::idempotency::OnceOnly;
use crate::http::rate::Rates;
use crate::http::request_id::request_id;
use crate::service::Service;

/// A consent that the person is asked for.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WealthConsentResponse {
    /// Identifies the flow.
    #[schema(value_type = String, format = "uuid")]
    unique_identifier: FlowId,
    /// What the webhooks name the consent by, besides its id.
    #[schema(value_type = String)]
    consent_handle: ForeignId,
    /// Where the person decides, if the upstream has a page for it. Whoever has it may, so give it to nobody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uri")]
    request_url: Option<PageUrl>,
}

/// Asks a person to consent to the sharing of wealth data. Each change of the consent, and the data under it, come by webhook to the URLs
/// that the operator has set for the app.
///
/// # Errors
/// 400, 401, 413, 415, 422, 429, 501, 502, 503 and 504 of the error table; nothing is opened then.
#[utoipa::path(
    post, path = "/api/v1/wealth/consents", tag = "Wealth data", operation_id = "wealth_consent", request_body = WealthConsentRequest,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = WealthConsentResponse, description = "The person is asked.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn consents(
    called: Called<Body>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<Rates>,
) -> Result<HttpResponse, ApiError> {
    let Called { caller, sent: body } = called;
    rates.init.take(&caller.app.app_id)?;
    let upstream = service.upstreams.wealth()?;
    let once = OnceOnly::of(&request, &caller, "wealth", &body.bytes)?;
    let Asked { request: asked, request_id } = read(body.fields, request_id(&request))?;
    let Begun { opened, turn } = match begin(&service, &request, caller, request_id, once).await? {
        Ok(begun) => begun,
        Err(kept) => return Ok(kept),
    };
    let AskedConsent { handle, page } = wealth::order(upstream, &opened, &asked.consent).await?;
    let answer = WealthConsentResponse { unique_identifier: opened.id, consent_handle: handle.clone(), request_url: page };
    open(&service, Ordered { flow: FlowState::Wealth(asked.open(opened, handle)), payload: None, answer }, turn).await
}

/// Reads the consent to being asked.
///
/// # Errors
/// Every field that is not acceptable, at once.
fn read(mut fields: Fields, minted: RequestId) -> Result<Asked<WealthRequest>, ApiError> {
    let draft = WealthDraft { consent: fields.text("consent"), consent_text: fields.text("consent_text") };
    let request = fields.agreed(draft.check());
    asked(fields, request, minted)
}
