//! A signer's page: sign, reject with a reason, or let the invitation expire.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::time::Timestamp;

use super::{OrderView, PageError, PageLocation, RequestedOrder, people};
use crate::page::render_page;
use crate::residents::Resident;
use crate::upstreams::entry::Details;
use crate::upstreams::error::FlowError;
use crate::upstreams::esign::{Esign, Signer, SignerState};

#[derive(Template)]
#[template(path = "flows/esign.html")]
struct SignerPage<'a> {
    location: &'a PageLocation,
    order: OrderView,
    esign: &'a Esign,
    signer: &'a Signer,
    /// The signer whose turn it is, while signatures are missing.
    next: Option<&'a Signer>,
    people: Vec<&'static Resident>,
}

impl SignerPage<'_> {
    /// Returns true if it is this signer's turn.
    fn is_turn(&self) -> bool {
        self.next.is_some_and(|next| next.id == self.signer.id)
    }
}

impl Signer {
    fn has_signed(&self) -> bool {
        matches!(self.state, SignerState::Signed { .. })
    }

    /// Describes the signer's state.
    fn description(&self) -> String {
        match &self.state {
            SignerState::Waiting => format!("has not signed; invited until {}", self.invited_until),
            SignerState::Signed { resident, at } => format!("signed at {at} as {}", resident.name),
            SignerState::Rejected { reason } => format!("rejected: {}", reason.as_str()),
            SignerState::Expired => "the invitation expired".to_owned(),
        }
    }
}

/// Shows a signer's page.
pub(super) fn show(
    location: &PageLocation,
    order: OrderView,
    esign: &Esign,
    signer: &str,
    now: Timestamp,
) -> Result<HttpResponse, PageError> {
    let signer = esign.signers.iter().find(|entry| entry.id.as_str() == signer);
    let signer = signer.ok_or_else(|| location.error_page(FlowError::NoSuchSigner))?;
    let next = esign.next_signer().filter(|_| order.open);
    Ok(render_page(StatusCode::OK, &SignerPage { location, order, esign, signer, next, people: people(now) }))
}

/// Serves the document as ordered. A client's file is never displayed inline.
pub(in crate::upstreams) async fn document(
    request: HttpRequest,
    requested: RequestedOrder,
) -> Result<HttpResponse, PageError> {
    let progress = requested.entry.progress().await;
    let content = match &progress.details {
        Details::ESign(esign) if esign.signers.iter().any(|signer| signer.id.as_str() == requested.signer) => {
            esign.content()
        }
        _ => None,
    };
    let Some(content) = content.and_then(|content| STANDARD.decode(content.as_str()).ok()) else {
        return Err(PageLocation::from_request_below_page(&request)
            .error_page(FlowError::NotNow("The document is no longer kept.")));
    };
    Ok(HttpResponse::Ok()
        .content_type("application/octet-stream")
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"document.pdf\""))
        .insert_header((CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(content))
}
