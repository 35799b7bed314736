//! A signer's page: sign, reject with a reason, or let the invitation expire.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;

use super::{Log, PageError, PageLocation, decide as carry_out, people, words};
use crate::page::page;
use crate::residents::Resident;
use crate::upstreams::entry::{Details, Upstream};
use crate::upstreams::error::FlowError;
use crate::upstreams::esign::{Signer, SignerState};
use crate::upstreams::person;
use crate::upstreams::state::SandboxUpstreams;

#[derive(Deserialize)]
pub(in crate::upstreams) struct SignerForm {
    action: String,
    resident: Option<String>,
    reason: Option<String>,
}

#[derive(Template)]
#[template(path = "flows/esign.html")]
struct SignerPage<'a> {
    up: &'a str,
    here: &'a str,
    id: String,
    document: &'a str,
    name: &'a str,
    until: Timestamp,
    signers: Vec<SignerRow<'a>>,
    summary: &'static str,
    open: bool,
    signed: bool,
    turn: bool,
    /// Who signs first, while somebody else does.
    before: Option<SignerRow<'a>>,
    has_document: bool,
    people: Vec<&'static Resident>,
    log: Log,
}

#[derive(Clone)]
struct SignerRow<'a> {
    id: &'a str,
    name: &'a str,
    here: bool,
    state: String,
}

impl<'a> SignerRow<'a> {
    fn of(signer: &'a Signer, here: &str) -> Self {
        let state = match &signer.state {
            SignerState::Waiting => format!("has not signed; invited until {}", signer.until),
            SignerState::Signed { resident, at } => format!("signed at {at} as {}", resident.name),
            SignerState::Rejected { reason } => format!("rejected: {}", reason.as_str()),
            SignerState::Expired => "the invitation expired".to_owned(),
        };
        Self { id: signer.id.as_str(), name: signer.name.as_str(), here: signer.id.as_str() == here, state }
    }
}

/// Shows a signer's page.
pub(in crate::upstreams) async fn show(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::of(&request);
    let (document, signer) = path.into_inner();
    let entry = location.find(&state, Upstream::ESign, &document)?;
    let (progress, now) = (entry.progress().await, state.clock.now());
    let Details::ESign(esign) = &progress.details else { return Err(location.problem(FlowError::NoSuchFlow)) };
    let shown = esign.signers.iter().find(|known| known.id.as_str() == signer);
    let shown = shown.ok_or_else(|| location.problem(FlowError::NoSuchSigner))?;
    let (summary, open) = esign.summary(now);
    let signed = matches!(shown.state, SignerState::Signed { .. });
    let next = esign.next().filter(|_| open);
    let turn = next.is_some_and(|next| next.id == shown.id);
    let page_of_signer = SignerPage {
        up: &location.up,
        here: &location.here,
        id: entry.order.id.to_string(),
        document: esign.document_name.as_str(),
        name: shown.name.as_str(),
        until: shown.until,
        signers: esign.signers.iter().map(|known| SignerRow::of(known, &signer)).collect(),
        summary,
        open,
        signed,
        turn,
        before: next.filter(|_| !turn && !signed).map(|next| SignerRow::of(next, &signer)),
        has_document: esign.content().is_some(),
        people: people(now),
        log: Log::of(&progress),
    };
    Ok(page(StatusCode::OK, &page_of_signer))
}

/// Carries out the signer's decision.
pub(in crate::upstreams) async fn decide(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<(String, String)>,
    form: Form<SignerForm>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::of(&request);
    let ((document, signer), form) = (path.into_inner(), form.into_inner());
    let entry = location.find(&state, Upstream::ESign, &document)?;
    let order = &entry.order;
    carry_out(&state, &location, &entry, &form.action, |details, now| {
        let Details::ESign(esign) = details else { return Err(FlowError::NoSuchFlow) };
        match form.action.as_str() {
            "sign" => esign.sign(order, &signer, person::adult(form.resident.as_deref().unwrap_or_default(), now)?, now),
            "reject" => esign.reject(order, &signer, words(form.reason.as_deref())?, now),
            "expire" => esign.expire(order, now),
            _ => Err(FlowError::UnknownOutcome("sign, reject, expire".to_owned())),
        }
    })
    .await
}

/// Hands the document out as it was ordered. It is a client's file and is never displayed inline.
pub(in crate::upstreams) async fn document(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::below(&request);
    let entry = location.find(&state, Upstream::ESign, &path.0)?;
    let progress = entry.progress().await;
    let Details::ESign(esign) = &progress.details else { return Err(location.problem(FlowError::NoSuchFlow)) };
    let known = esign.signers.iter().any(|signer| signer.id.as_str() == path.1);
    let content = esign.content().filter(|_| known).and_then(|content| STANDARD.decode(content.as_str()).ok());
    let Some(content) = content else { return Err(location.problem(FlowError::NotNow("The document is not held any more."))) };
    Ok(HttpResponse::Ok()
        .content_type("application/octet-stream")
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"document.pdf\""))
        .insert_header((CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(content))
}
