//! An event's page for guests (specification, "Event"): the requested claims, and a start button.
//!
//! Opening the page is free, because link previews and cameras open it too. A verification starts, and costs a credit,
//! when a guest presses the button or the identity app requests an intent.

pub(super) mod calendar;
pub(super) mod refused;
pub(super) mod show;
pub(super) mod start;
pub(super) mod ticket;
pub(super) mod visit;

#[cfg(feature = "fuzzing")]
pub(crate) use visit::visit_cookies;

use std::sync::Arc;

use sakshi_domain::event::{Event, EventTerms};
use sakshi_domain::ids::EventId;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;

use crate::text::Texts;
use crate::time_left::date_and_time;

/// Returns the start and the place of an event as guests read them, without those that the organiser left out.
pub(super) fn start_and_place(terms: &EventTerms, texts: &Texts) -> Vec<String> {
    let at = terms.starts_at.map(|at| date_and_time(at, terms.time_zone, texts));
    at.into_iter().chain(terms.place.as_ref().map(|place| place.as_str().to_owned())).collect()
}

/// Returns the event that a path names.
///
/// # Errors
/// 404 for an unknown event, 503 while the store is unavailable.
pub(super) async fn find_event(service: &Service, path: &str) -> Result<Arc<Event>, ApiError> {
    let id: EventId = path.parse().map_err(|_| ServiceError::NotFound("event"))?;
    match service.events.get_recent(id).await? {
        Some(event) => Ok(event),
        None => Err(ApiError::Service(ServiceError::NotFound("event"))),
    }
}
