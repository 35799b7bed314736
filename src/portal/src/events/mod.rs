//! Events in the portal: the list, a new one, one with its counts as they are now, its changes and
//! guests, and its codes for print.

pub(crate) mod create;
pub(crate) mod guests;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod posters;
pub(crate) mod show;

use sakshi_domain::event::EventStatus;

/// How an event stands, in a word or two.
const fn status_label(status: EventStatus) -> &'static str {
    match status {
        EventStatus::Active => "Open",
        EventStatus::Disabled => "Disabled",
        EventStatus::Expired => "Ended",
        EventStatus::AtCapacity => "Full",
    }
}
