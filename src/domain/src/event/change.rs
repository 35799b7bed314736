//! Changes of an event, and the bounds of its start and end.

use super::guests::{self, DoorChange, OnDuplicate};
use super::{CreditBudget, Event, EventEntry, EventTerms, EventText, MaxGuests};
use crate::brand::BrandPatch;
use crate::http_url::WebhookUrl;
use crate::invalid::Invalid;
use crate::limits::EVENT_LIFETIME_MAX;
use crate::time::Timestamp;
use crate::time_zone::TimeZone;

/// Checks the start of an event against its end.
///
/// # Errors
/// A message that states the accepted form.
pub fn check_start(start: Option<Timestamp>, end: Timestamp) -> Result<(), &'static str> {
    let is_valid = start.is_none_or(|start| start < end && end.since(start) <= EVENT_LIFETIME_MAX);
    if is_valid { Ok(()) } else { Err("must be before expires_at, by 366 days at most") }
}

/// Checks the end of an event.
///
/// # Errors
/// A message that states the accepted form.
pub fn check_end(end: Timestamp, now: Timestamp) -> Result<Timestamp, String> {
    if end <= now {
        return Err("must be in the future".to_owned());
    }
    if end > now + EVENT_LIFETIME_MAX {
        return Err("must be at most 366 days from now".to_owned());
    }
    Ok(end)
}

/// A change to an event: `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPatch {
    /// Disable or enable.
    pub is_active: Option<bool>,
    /// A new limit on registrations.
    pub max_guests: Option<MaxGuests>,
    /// A new limit on pending scans; `Some(None)` for the default.
    pub max_pending: Option<Option<MaxGuests>>,
    /// A new credit budget; `Some(None)` removes it.
    pub credit_budget: Option<Option<CreditBudget>>,
    /// Another way in which guests can start.
    pub entry: Option<EventEntry>,
    /// A new start; `Some(None)` removes it.
    pub starts_at: Option<Option<Timestamp>>,
    /// A new venue; `Some(None)` removes it.
    pub place: Option<Option<EventText>>,
    /// A new end.
    pub expires_at: Option<Timestamp>,
    /// A new label.
    pub name: Option<EventText>,
    /// A new webhook URL; `Some(None)` removes it.
    pub webhook_url: Option<Option<WebhookUrl>>,
    /// A new time zone.
    pub time_zone: Option<TimeZone>,
    /// A new organiser; `Some(None)` removes it.
    pub organiser: Option<Option<EventText>>,
    /// A new purpose; `Some(None)` removes it.
    pub purpose: Option<Option<EventText>>,
    /// Another handling of a person who registers again.
    pub on_duplicate: Option<OnDuplicate>,
    /// A door that is opened or closed.
    pub door: Option<DoorChange>,
    /// Changes of the brand, by an operator.
    pub brand: BrandPatch,
    /// Tags: the change applies only if the current terms have one of them.
    pub only_if: Option<Vec<String>>,
}

impl Event {
    /// Returns the terms after a change at `now`.
    ///
    /// # Errors
    /// [`Invalid`] for a limit below the number of registrations, a start or end out of bounds, or too many doors.
    pub fn patched(&self, patch: EventPatch, now: Timestamp) -> Result<EventTerms, Invalid> {
        let EventPatch {
            is_active,
            max_guests,
            max_pending,
            credit_budget,
            entry,
            starts_at,
            place,
            expires_at,
            name,
            webhook_url,
            time_zone,
            organiser,
            purpose,
            on_duplicate,
            door,
            brand,
            only_if: _,
        } = patch;
        let mut invalid = Invalid::none();
        let mut terms = self.terms.clone();
        if let Some(cap) = max_guests {
            if cap.get() < self.counts.registrations {
                invalid.add(
                    "max_guests",
                    format!("must be at least the registration count, which is {}", self.counts.registrations),
                );
            }
            terms.max_guests = cap;
        }
        if let Some(end) = expires_at.filter(|end| *end != terms.expires_at) {
            invalid.check("expires_at", check_end(end, now));
            terms.expires_at = end;
        }
        if starts_at.is_some() || expires_at.is_some() {
            terms.starts_at = starts_at.unwrap_or(terms.starts_at);
            invalid.check("starts_at", check_start(terms.starts_at, terms.expires_at));
        }
        terms.place = place.unwrap_or(terms.place);
        terms.max_pending = max_pending.unwrap_or(terms.max_pending);
        terms.credit_budget = credit_budget.unwrap_or(terms.credit_budget);
        terms.entry = entry.unwrap_or(terms.entry);
        terms.is_active = is_active.unwrap_or(terms.is_active);
        terms.name = name.unwrap_or(terms.name);
        terms.webhook_url = webhook_url.unwrap_or(terms.webhook_url);
        terms.time_zone = time_zone.unwrap_or(terms.time_zone);
        terms.organiser = organiser.unwrap_or(terms.organiser);
        terms.purpose = purpose.unwrap_or(terms.purpose);
        terms.on_duplicate = on_duplicate.unwrap_or(terms.on_duplicate);
        if let Some(change) = door {
            invalid.check("door", guests::apply_door_change(&mut terms.doors, change, terms.expires_at, now));
        }
        terms.brand.apply(brand);
        invalid.or_ok().map(|()| terms)
    }
}
