//! The endpoints that take the service's orders, and what each upstream answers to one.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::{Bytes, Data};
use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::invalid::Invalid;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::SandboxUpstreams;
use super::bearer::Service;
use super::case::{Case, Matter};
use super::doclocker::LockerDraft;
use super::error::FlowError;
use super::esign::EsignDraft;
use super::estamp::EStampDraft;
use super::intake::{OrderDraft, json as read};
use super::pan::{PanAnswer, PanOrder};
use super::wealth::WealthDraft;

/// Takes a document to be signed.
pub(super) async fn esign(_: Service, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    let case = take(&state, &body, "documentId", |draft: EsignDraft, invalid| draft.check(invalid).map(Matter::ESign))?;
    let desk = case.desk().await;
    let Matter::ESign(esign) = &desk.matter else { return Err(FlowError::OrderedOtherwise) };
    let id = case.order.id.to_string();
    let signer = |signer: &str| json!({"signerId": signer, "signingUrl": state.page_url(&["esign", &id, signer])});
    let signers: Vec<Value> = esign.signers.iter().map(|known| signer(known.id.as_str())).collect();
    Ok(HttpResponse::Ok().json(json!({"signerInfo": signers})))
}

/// Takes a request for documents of the locker.
pub(super) async fn doclocker(_: Service, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    let case = take(&state, &body, "transactionId", |draft: LockerDraft, invalid| draft.check(invalid).map(Matter::DocLocker))?;
    let url = state.page_url(&["doclocker", &case.order.id.to_string()]);
    Ok(HttpResponse::Ok().json(json!({"requestUrl": url})))
}

/// Takes a paper to be stamped.
pub(super) async fn estamp(_: Service, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    take(&state, &body, "eStampId", |draft: EStampDraft, invalid| draft.check(invalid).map(Matter::EStamp))?;
    Ok(HttpResponse::Ok().json(json!({})))
}

/// Takes a request for a wealth-data consent.
pub(super) async fn wealth(_: Service, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    let case = take(&state, &body, "uniqueIdentifier", |draft: WealthDraft, invalid| draft.check(invalid).map(Matter::Wealth))?;
    let desk = case.desk().await;
    let Matter::Wealth(wealth) = &desk.matter else { return Err(FlowError::OrderedOtherwise) };
    let url = state.page_url(&["wealth", &case.order.id.to_string()]);
    Ok(HttpResponse::Ok().json(json!({"consentHandle": wealth.handle, "requestUrl": url})))
}

/// Answers what is known of a PAN.
pub(super) async fn pan(_: Service, state: Data<SandboxUpstreams>, body: Bytes) -> Result<HttpResponse, FlowError> {
    let order: PanOrder = read(&body)?;
    match state.pans.answer(order.check()?).await {
        PanAnswer::Known(answer) => Ok(HttpResponse::Ok().json(answer)),
        PanAnswer::Failure => Err(FlowError::PanSource),
    }
}

/// Reads an order and enters it in the book.
fn take<D: DeserializeOwned>(
    state: &SandboxUpstreams,
    body: &[u8],
    id_field: &str,
    check: impl FnOnce(D, Invalid) -> Result<Matter, Invalid>,
) -> Result<Arc<Case>, FlowError> {
    let mut invalid = Invalid::none();
    // In two passes, so that neither copies the document only to tell its members apart.
    let order = read::<OrderDraft>(body)?.check(id_field, state.clock.now(), &mut invalid);
    let matter = check(read(body)?, invalid)?;
    let order = order.ok_or_else(|| Invalid::one("body", "is incomplete"))?;
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, body).as_ref());
    state.book.take(Case::new(order, sha256, matter))
}
