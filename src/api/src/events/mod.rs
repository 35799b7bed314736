//! Events for organisers (specification, "Event"): create, read, list, change, and the registered
//! guests.

pub mod create;
pub mod patch;
pub mod read;
pub mod registrations;

use sakshi_domain::event::Event;
use sakshi_service::service::Service;
use sakshi_wire::events::EventResponse;

/// The event as it is now.
fn event_response(service: &Service, event: &Event) -> EventResponse {
    EventResponse::new(event, service.authority.event_url(event.id), service.clock.now())
}
