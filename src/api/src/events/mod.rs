//! Events for organisers (specification, "Event"): create, read, list, change, and the registered
//! guests.

pub mod create;
pub mod guest_list;
pub mod patch;
pub mod read;
pub mod registrations;

use sakshi_domain::event::Event;
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_service::authority::AuthorityContext;
use serde::Serialize;

/// An event as its organiser sees it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EventResponse {
    /// Identifies the event.
    #[schema(value_type = String)]
    pub(crate) event_id: EventId,
    /// The label shown to guests.
    pub(crate) name: String,
    /// `active`, `disabled`, `expired` or `at_capacity`; the first that holds of disabled, expired, at capacity.
    pub(crate) status: &'static str,
    /// False once it was disabled.
    pub(crate) is_active: bool,
    /// The claims that each guest is asked to share.
    pub(crate) claims: Vec<&'static str>,
    /// The language of its pages.
    pub(crate) language: &'static str,
    /// Caps registrations, not scans.
    pub(crate) max_guests: u32,
    /// Guests verified and registered.
    pub(crate) registration_count: u32,
    /// Places left.
    pub(crate) remaining: u32,
    /// Scans so far; each cost a credit.
    pub(crate) scan_count: u64,
    /// Scans whose window passed without an answer.
    pub(crate) abandoned_count: u64,
    /// Receives one webhook per registered guest.
    #[schema(value_type = Option<String>)]
    pub(crate) webhook_url: Option<HttpUrl>,
    /// To be printed as a QR code.
    pub(crate) qr_url: String,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) expires_at: Timestamp,
}

impl EventResponse {
    /// The event as it stands at `now`.
    #[must_use]
    pub fn new(event: &Event, agreement: &AuthorityContext, now: Timestamp) -> Self {
        let terms = &event.terms;
        Self {
            event_id: event.id,
            name: terms.name.as_str().to_owned(),
            status: event.status(now).as_str(),
            is_active: terms.is_active,
            claims: terms.claims.iter().map(sakshi_domain::claims::Claim::name).collect(),
            language: terms.language.name(),
            max_guests: terms.max_guests.get(),
            registration_count: event.counts.registrations,
            remaining: event.remaining(),
            scan_count: event.counts.scans,
            abandoned_count: event.counts.abandoned,
            webhook_url: terms.webhook_url.clone(),
            qr_url: agreement.event_url(event.id),
            created_at: event.created_at,
            expires_at: terms.expires_at,
        }
    }
}
