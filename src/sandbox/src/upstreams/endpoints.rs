//! The endpoints that accept the service's orders and respond like each upstream.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::{Bytes, Data, Path};
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
use super::order::{OrderDraft, parse_json};
use super::state::SandboxUpstreams;
use super::wealth::WealthDraft;

/// Proof that a request carries the upstreams' token. As an extractor, no handler can forget the check.
pub(super) struct AuthenticatedService;

impl FromRequest for AuthenticatedService {
    type Error = FlowError;
    type Future = Ready<Result<Self, FlowError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(if has_valid_token(request) { Ok(Self) } else { Err(FlowError::Unauthorized) })
    }
}

/// Returns true if the request carries the upstreams' token.
fn has_valid_token(request: &HttpRequest) -> bool {
    let Some(state) = request.app_data::<Data<SandboxUpstreams>>() else { return false };
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, token)) = header.and_then(|header| header.split_once(' ')) else { return false };
    // Comparing digests does not reveal the token's length either.
    let expected = digest(&SHA256, state.upstream_token.expose_secret().as_bytes());
    let actual = digest(&SHA256, token.trim().as_bytes());
    scheme.eq_ignore_ascii_case("bearer") && verify_slices_are_equal(actual.as_ref(), expected.as_ref()).is_ok()
}

/// Accepts a document to be signed.
pub(super) async fn esign(
    _: AuthenticatedService,
    state: Data<SandboxUpstreams>,
    body: Bytes,
) -> Result<HttpResponse, FlowError> {
    accept_order(&state, &body, "documentId", |draft: EsignDraft, invalid| draft.parse(invalid).map(Details::ESign))
        .await
}

/// Accepts a request for documents from a locker.
pub(super) async fn doclocker(
    _: AuthenticatedService,
    state: Data<SandboxUpstreams>,
    body: Bytes,
) -> Result<HttpResponse, FlowError> {
    accept_order(&state, &body, "transactionId", |draft: LockerDraft, invalid| {
        draft.parse(invalid).map(Details::DocLocker)
    })
    .await
}

/// Accepts a document to be stamped.
pub(super) async fn estamp(
    _: AuthenticatedService,
    state: Data<SandboxUpstreams>,
    body: Bytes,
) -> Result<HttpResponse, FlowError> {
    accept_order(&state, &body, "eStampId", |draft: EStampDraft, invalid| draft.parse(invalid).map(Details::EStamp))
        .await
}

/// Accepts a request for a wealth-data consent.
pub(super) async fn wealth(
    _: AuthenticatedService,
    state: Data<SandboxUpstreams>,
    body: Bytes,
) -> Result<HttpResponse, FlowError> {
    accept_order(&state, &body, "uniqueIdentifier", |draft: WealthDraft, invalid| {
        draft.parse(invalid).map(Details::Wealth)
    })
    .await
}

/// Answers a synchronous check.
pub(super) async fn check(
    _: AuthenticatedService,
    state: Data<SandboxUpstreams>,
    source: Path<String>,
    body: Bytes,
) -> Result<HttpResponse, FlowError> {
    Ok(HttpResponse::Ok().json(state.numbers.answer(&source, &body).await?))
}

/// Lists the numbers that the checks know.
pub(super) async fn list_known_numbers(state: Data<SandboxUpstreams>) -> HttpResponse {
    HttpResponse::Ok().json(state.numbers.entries())
}

/// Parses and stores an order, and responds like its upstream. `id_field` is the name of the flow's id in the order.
async fn accept_order<D: DeserializeOwned>(
    state: &SandboxUpstreams,
    body: &[u8],
    id_field: &str,
    parse_details: impl FnOnce(D, Invalid) -> Result<Details, Invalid>,
) -> Result<HttpResponse, FlowError> {
    let mut invalid = Invalid::none();
    // Two passes, because `flatten` would buffer the document.
    let order = parse_json::<OrderDraft>(body)?.parse(id_field, state.clock.now(), &mut invalid);
    let details = parse_details(parse_json(body)?, invalid)?;
    let order = order.ok_or_else(|| Invalid::one("body", "is incomplete"))?;
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, body).as_ref());
    let entry = state.orders.insert(OrderEntry::new(order, sha256, details))?;
    let (folder, id) = (entry.upstream.name(), entry.order.id.to_string());
    let page_url = || state.page_url(&[folder, &id]);
    Ok(HttpResponse::Ok().json(match &entry.progress().await.details {
        Details::ESign(esign) => {
            let signer_info =
                |signer: &str| json!({"signerId": signer, "signingUrl": state.page_url(&[folder, &id, signer])});
            let signers = esign.signers.iter().map(|signer| signer_info(signer.id.as_str()));
            json!({"signerInfo": signers.collect::<Vec<Value>>()})
        }
        Details::DocLocker(_) => json!({"requestUrl": page_url()}),
        Details::EStamp(_) => json!({}),
        Details::Wealth(wealth) => json!({"consentHandle": wealth.handle, "requestUrl": page_url()}),
    }))
}
