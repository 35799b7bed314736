//! An event, its guests who are registered, and those who have started and not answered yet.

use sakshi_domain::ids::{EventId, Partition};

use super::table;
use crate::engine::Key;

table! {
    /// An event of an app.
    EVENT = "event", Expiring {
        client: Text,
        app: Text,
        is_active: Integer,
        expires_at: Integer,
        max_guests: Integer,
        registrations: Integer,
        scans: Integer,
        abandoned: Integer,
    }
}

table! {
    /// Registered guests, numbered from 1. `outcome` is sealed.
    REGISTRATIONS = "registration", List {
        txn: Bytes,
        verified_at: Integer,
        outcome: Bytes,
    }
}

table! {
    /// Scans by the end of their windows.
    WAITING = "event_waiting", Index {}
}

/// The record of an event, in the partition of the caller: an event of another client is not found there.
#[must_use]
pub(crate) fn event(partition: Partition, id: EventId) -> Key {
    Key { table: &EVENT, partition, id: id.as_bytes().to_vec() }
}

/// The guests who are registered for an event.
#[must_use]
pub(crate) fn registrations(partition: Partition, id: EventId) -> Key {
    Key { table: &REGISTRATIONS, partition, id: id.as_bytes().to_vec() }
}

/// The scans of an event that wait.
#[must_use]
pub(crate) fn waiting(partition: Partition, id: EventId) -> Key {
    Key { table: &WAITING, partition, id: id.as_bytes().to_vec() }
}
