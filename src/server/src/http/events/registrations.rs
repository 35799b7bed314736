//! `GET /api/v1/nationalid-ovse/events/{eventId}/registrations`: the guests with their claims.

use std::sync::Arc;

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_actors::reveal_outcome;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Outcome, VerifiedClaims};
use sakshi_store::PageRequest;
use serde::Serialize;

use super::own_event;
use crate::http::caller::Caller;
use crate::http::error::ApiError;
use crate::http::query::page_of;
use crate::service::Service;

/// A page of registered guests.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RegistrationsPage {
    /// The event.
    #[schema(value_type = String)]
    event_id: EventId,
    /// From 1.
    page: u32,
    /// Rows of a page.
    page_size: u32,
    /// Guests on all pages.
    pub(crate) total: u64,
    /// Oldest first; a guest's place never changes.
    pub(crate) registrations: Vec<RegistrationRow>,
}

/// A registered guest.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RegistrationRow {
    /// The guest's transaction.
    #[schema(value_type = String)]
    pub(crate) txn_id: TxnId,
    /// When the guest was verified.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) verified_at: Timestamp,
    /// Always true.
    verification_passed: bool,
    /// The claims by their credential names.
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub(crate) verified_claims: Arc<VerifiedClaims>,
}

/// The registered guests of an event.
///
/// # Errors
/// 404 unless the app has such an event, 400 when the page is out of bounds.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/registrations", tag = "Events",
    params(("eventId" = String, Path), ("page" = Option<u32>, Query, minimum = 1),
           ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100)),
    responses((status = 200, body = RegistrationsPage, description = "Oldest first; stable while guests are added."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn list(caller: Caller, path: Path<String>, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let page = page_of(request.query_string())?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    Ok(HttpResponse::Ok().json(of_event(&service, event.id, page).await?))
}

/// A page of the registered guests of an event.
///
/// # Errors
/// What a store says, or a registration that does not open.
pub(crate) async fn of_event(service: &Service, event_id: EventId, page: PageRequest) -> Result<RegistrationsPage, ApiError> {
    let found = service.store.list_registrations(event_id, page).await?;
    let mut registrations = Vec::with_capacity(found.items.len());
    for guest in found.items {
        let outcome = reveal_outcome(&service.vault, guest.txn, &guest.outcome).map_err(|error| ApiError::Internal(error.to_string()))?;
        let Outcome::Verified(verified_claims) = outcome else {
            return Err(ApiError::Internal("a registration without a verification".to_owned()));
        };
        registrations.push(RegistrationRow {
            txn_id: guest.txn,
            verified_at: guest.verified_at,
            verification_passed: true,
            verified_claims,
        });
    }
    Ok(RegistrationsPage { event_id, page: page.page, page_size: page.page_size, total: found.total, registrations })
}
