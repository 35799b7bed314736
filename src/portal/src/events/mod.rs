//! Events in the portal: the list, new events, an event's current counts, settings and guests, and its codes for print.

mod arrivals;
pub(crate) mod create;
pub(crate) mod guests;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod posters;
pub(crate) mod printed;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod workbook;

use sakshi_domain::event::{Event, EventStatus, StatusReason};
use sakshi_domain::language::Language;
use sakshi_domain::time::Timestamp;
use sakshi_pages::text::Texts;
use sakshi_pages::time_left::date_and_time;
use sakshi_service::Service;

use crate::when::EventTime;

/// The state of an event on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EventState {
    /// Name of the state in the style sheet and in the event stream.
    status: &'static str,
    label: &'static str,
}

impl EventState {
    fn new(event: &Event, service: &Service) -> Self {
        let now = service.clock.now();
        match event.status_reason(now) {
            Some(StatusReason::CreditsExhausted) => return Self { status: "out_of_credits", label: "Out of credits" },
            Some(StatusReason::BudgetSpent) => return Self { status: "budget_spent", label: "Budget spent" },
            None => {}
        }
        let status = event.status(now);
        let label = match status {
            EventStatus::Active => "Open",
            EventStatus::Disabled => "Closed",
            EventStatus::Expired => "Ended",
            EventStatus::AtCapacity => "Full",
        };
        Self { status: status.as_str(), label }
    }
}

/// Formats a time in the event's time zone.
fn event_time(event: &Event, at: Timestamp) -> EventTime {
    EventTime { at, words: date_and_time(at, event.terms.time_zone, Texts::for_language(Language::ENGLISH)) }
}
