//! An event's page for guests (specification, "Event"): the claims that are requested, and a start button.
//!
//! Opening the page is free, because link previews and cameras open it too; only the button, or the
//! identity app asking for an intent, starts a verification and costs a credit.

pub(super) mod refused;
pub(super) mod show;
pub(super) mod start;
pub(super) mod ticket;
pub(super) mod visit;

#[cfg(feature = "fuzzing")]
pub(crate) use visit::in_cookies as visits_in_cookies;

use std::sync::Arc;

use sakshi_domain::event::Event;
use sakshi_domain::ids::{AppId, EventId};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;

/// The event that a path names.
///
/// # Errors
/// 404 when there is none, 503 when that cannot be told now.
pub(super) async fn find_event(service: &Service, path: &str) -> Result<Arc<Event>, ApiError> {
    let id: EventId = path.parse().map_err(|_| ServiceError::NotFound("event"))?;
    match service.events.get(id).await? {
        Some(event) => Ok(event),
        None => Err(ApiError::Service(ServiceError::NotFound("event"))),
    }
}

/// Who asks: the organiser of the event, or else the app. A page without the name is better than none, so a store in
/// trouble does not matter here.
pub(super) async fn requester(service: &Service, app: &AppId, event: Option<&Event>) -> Option<String> {
    match event.and_then(|event| event.terms.organiser.as_ref()) {
        Some(organiser) => Some(organiser.as_str().to_owned()),
        None => service.store.load_app(app.clone()).await.ok().flatten().map(|app| app.name),
    }
}

/// Whether the organiser's credits cover one more guest at this moment. Only the debit decides; this
/// spares a guest a button that would lead nowhere.
///
/// # Errors
/// When that cannot be told now.
pub(super) async fn is_funded(service: &Service, event: &Event) -> Result<bool, ApiError> {
    let balance = service.store.balance(event.client.clone()).await?;
    Ok(balance.is_some_and(|balance| balance >= CREDITS_PER_VERIFICATION))
}
