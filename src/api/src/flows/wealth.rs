//! `POST /api/v1/wealth/consents`: asks a person for a wealth-data consent.

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::request::wealth::{WealthDraft, WealthRequest};
use sakshi_domain::flow::text::ForeignId;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::wealth::AskedConsent;
use sakshi_outbound::upstream::{PageUrl, wealth};
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
use crate::flow_requests::WealthConsentRequest;

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
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let upstream = service.upstreams.wealth.as_ref().ok_or(ServiceError::NotOffered)?;
    let once = idempotency::of(&request, &caller, "wealth", &body.bytes)?;
    let Asked { request: asked, request_id } = read(body.fields, request_id(&request))?;
    request.extensions_mut().insert(request_id.clone());
    let order = async |header: FlowHeader| {
        let AskedConsent { handle, page } = wealth::order(upstream, &header, &asked.consent).await?;
        let answer = WealthConsentResponse { unique_identifier: header.id, consent_handle: handle.clone(), request_url: page };
        Ok(Ordered { flow: FlowState::Wealth(asked.open(header, handle)), payload: None, answer })
    };
    Ok(idempotency::answer(open_flow(&service, caller, request_id, once, order).await?))
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
