//! An event and its guests.

use sakshi_domain::event::EventRefusal;

use crate::engine::{Guard, Key, Value};

/// The guards of an event that takes a guest now, with why it takes none when one fails.
pub(super) fn place(event: &Key) -> [(EventRefusal, Guard); 3] {
    [
        (EventRefusal::Disabled, Guard::Equal(event.clone(), "is_active", Value::Integer(1))),
        (EventRefusal::Expired, Guard::Before(event.clone(), "expires_at")),
        (EventRefusal::Full, Guard::Below(event.clone(), "registrations", "max_guests")),
    ]
}
