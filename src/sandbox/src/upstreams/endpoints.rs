//! The endpoints that accept the service's orders, and the answer of each upstream.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::{Bytes, Data};
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::invalid::Invalid;
use secrecy::ExposeSecret as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::doclocker::LockerDraft;
use super::entry::{Details, OrderEntry};
use super::error::FlowError;
use super::esign::EsignDraft;
use super::estamp::EStampDraft;
use super::order::{OrderDraft, json as read};
use super::pan::{PanAnswer, PanOrder};
use super::state::SandboxUpstreams;
use super::wealth::WealthDraft;

/// Extracted from requests with the upstreams' token, so that no handler can forget to check it.
pub(super) struct AuthenticatedService;

impl FromRequest for AuthenticatedService {
    type Error = FlowError;
    type Future = Ready<Result<Self, FlowError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(if has_valid_token(request) { Ok(Self) } else { Err(FlowError::Unauthorized) })
    }
}

fn has_valid_token(request: &HttpRequest) -> bool {
    let Some(state) = request.app_data::<Data<SandboxUpstreams>>() else { return false };
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, token)) = given.and_then(|given| given.split_once(' ')) else { return false };
    // Comparing digests does not reveal the token's length either.
    let expected = digest(&SHA256, state.upstream_token.expose_secret().as_bytes());
    let given = digest(&SHA256, token.trim().as_bytes());
    scheme.eq_ignore_ascii_case("bearer") && verify_slices_are_equal(given.as_ref(), expected.as_ref()).is_ok()
}

/// Accepts a document to be signed.
pub(super) async fn esign(_: AuthenticatedService, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    let entry = take(&state, &body, "documentId", |draft: EsignDraft, invalid| draft.check(invalid).map(Details::ESign))?;
    let progress = entry.progress().await;
    let Details::ESign(esign) = &progress.details else { return Err(FlowError::OrderedOtherwise) };
    let id = entry.order.id.to_string();
    let signer = |signer: &str| json!({"signerId": signer, "signingUrl": state.page_url(&["esign", &id, signer])});
    let signers: Vec<Value> = esign.signers.iter().map(|known| signer(known.id.as_str())).collect();
    Ok(HttpResponse::Ok().json(json!({"signerInfo": signers})))
}

/// Accepts a request for documents from a locker.
pub(super) async fn doclocker(_: AuthenticatedService, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    let entry = take(&state, &body, "transactionId", |draft: LockerDraft, invalid| draft.check(invalid).map(Details::DocLocker))?;
    let url = state.page_url(&["doclocker", &entry.order.id.to_string()]);
    Ok(HttpResponse::Ok().json(json!({"requestUrl": url})))
}

/// Accepts a document to be stamped.
pub(super) async fn estamp(_: AuthenticatedService, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    take(&state, &body, "eStampId", |draft: EStampDraft, invalid| draft.check(invalid).map(Details::EStamp))?;
    Ok(HttpResponse::Ok().json(json!({})))
}

/// Accepts a request for a wealth-data consent.
pub(super) async fn wealth(_: AuthenticatedService, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    let entry = take(&state, &body, "uniqueIdentifier", |draft: WealthDraft, invalid| draft.check(invalid).map(Details::Wealth))?;
    let progress = entry.progress().await;
    let Details::Wealth(wealth) = &progress.details else { return Err(FlowError::OrderedOtherwise) };
    let url = state.page_url(&["wealth", &entry.order.id.to_string()]);
    Ok(HttpResponse::Ok().json(json!({"consentHandle": wealth.handle, "requestUrl": url})))
}

/// Answers a question about a PAN.
pub(super) async fn pan(_: AuthenticatedService, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    let order: PanOrder = read(&body)?;
    match state.pans.answer(order.check()?).await {
        PanAnswer::Known(answer) => Ok(HttpResponse::Ok().json(answer)),
        PanAnswer::Failure => Err(FlowError::PanSource),
    }
}

/// Reads an order and stores it.
fn take<D: DeserializeOwned>(
    state: &SandboxUpstreams,
    body: &[u8],
    id_field: &str,
    check: impl FnOnce(D, Invalid) -> Result<Details, Invalid>,
) -> Result<Arc<OrderEntry>, FlowError> {
    let mut invalid = Invalid::none();
    // Two passes, because `flatten` would buffer and so copy the document.
    let order = read::<OrderDraft>(body)?.check(id_field, state.clock.now(), &mut invalid);
    let details = check(read(body)?, invalid)?;
    let order = order.ok_or_else(|| Invalid::one("body", "is incomplete"))?;
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, body).as_ref());
    state.orders.take(OrderEntry::new(order, sha256, details))
}
