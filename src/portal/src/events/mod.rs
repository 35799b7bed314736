//! Events in the portal: the list, a new one, one with its counts as they are now, its changes and
//! guests, and its codes for print.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod posters;
pub(crate) mod show;

use sakshi_domain::event::EventStatus;
use sakshi_domain::time::Timestamp;

/// How an event stands, in a word or two.
const fn status_label(status: EventStatus) -> &'static str {
    match status {
        EventStatus::Active => "Open",
        EventStatus::Disabled => "Disabled",
        EventStatus::Expired => "Ended",
        EventStatus::AtCapacity => "Full",
    }
}

/// A moment in UTC as tables show it: `2026-12-31 18:30`.
pub(super) fn moment(at: Timestamp) -> String {
    input(at).replace('T', " ")
}

/// A moment in UTC as an input of a form has it.
fn input(at: Timestamp) -> String {
    at.to_string().get(..16).unwrap_or_default().to_owned()
}
